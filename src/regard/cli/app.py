"""The command itself: its verbs, and how errors become one line and an exit code."""

from __future__ import annotations

import importlib
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO

import click

from regard import __version__
from regard.errors import RegardError, did_you_mean

VERBS = {
    "translate": "Translate text and show where the model looked.",
    "caption": "Describe pictures and show where the model looked for each word.",
    "classify": "Classify documents, pictures or series and show what decided.",
    "answer": "Answer questions about a story and show where the model looked.",
    "view": "Show a saved record in the terminal, or as a picture.",
    "train": "Train a model from a config.",
    "evaluate": "Score a model on files it has not seen.",
    "check": "Check a config and its data without training.",
    "data": "Check a folder of pictures with captions or labels.",
    "new": "Write a config and sample data to begin with.",
    "export": "Write a model as ONNX.",
    "list": "List bundled models, tasks and attention mechanisms.",
}
_LONGEST_LINE = 2000
EXIT_BUG, EXIT_USER, EXIT_ENVIRONMENT, EXIT_INTERRUPT = 1, 2, 3, 130


class _Passed(Exception):
    """Carries an error, its cause, past click, which would handle it in its own way."""


class Verbs(click.Group):
    """A group whose verbs are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the verbs in the order of a first use."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a verb."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"regard.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a verb, or say which one it resembles."""
        name = args[0]
        if name not in VERBS and not name.startswith("-"):
            raise click.UsageError(f"no such command {name!r}; {did_you_mean(name, VERBS)}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a verb; click shall not turn a broken pipe or Ctrl-C into something else."""
        try:
            return super().invoke(ctx)
        except (OSError, KeyboardInterrupt) as error:
            raise _Passed from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="regard", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def app(debug: bool) -> None:
    """Attention you can insert anywhere, train on your own data, and look inside.

    Results go to standard output, everything else to standard error.

    Exit codes: 0 done; 1 a bug in regard; 2 the input; 3 the machine (disk, memory, a missing
    package); 4 training diverged; 130 and 143 stopped by a signal, after saving.
    """


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command and exit with its code.

    Args:
        arguments: The arguments; by default those of the process.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug, given = _without_debug(given)
    _prepare_streams()
    try:
        code = app.main(args=given or ["--help"], prog_name="regard", standalone_mode=False)
        sys.stdout.flush()
    except BaseException as error:  # everything becomes one line and a code
        code = _ended(error, given, debug=debug)
    sys.exit(code if isinstance(code, int) else 0)


def _ended(error: BaseException, given: list[str], *, debug: bool) -> int:
    if isinstance(error, _Passed) and error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, BrokenPipeError):  # the reader has what it wanted
        _drop_output()
        return 0
    if debug and not isinstance(error, SystemExit):
        traceback.print_exception(error)
    code = report(error, where=next((name for name in given if name in VERBS), None))
    _end_output()
    return code


def _without_debug(arguments: list[str]) -> tuple[bool, list[str]]:
    """Take `--debug` from wherever it stands, but not from behind `--`."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = [argument for argument in arguments[:end] if argument != "--debug"]
    return len(options) < end, [*options, *arguments[end:]]


def _end_output() -> None:
    """Write out what there is; Python would do it later, and complain where it cannot."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        _drop_output()


def _drop_output() -> None:
    """Let what is left to be written go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def report(error: BaseException, *, where: str | None = None) -> int:
    """Say in one line what went wrong.

    Args:
        error: The error.
        where: The place to name where the error names none.

    Returns:
        The exit code.
    """
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else EXIT_BUG
    code, line = _explained(error)
    if where is not None and getattr(error, "where", "") is None:
        line = f"{where}: {line}"
    text = " ".join(line.split())[:_LONGEST_LINE]
    sys.stderr.write(f"regard: error: {text}\n")
    return code


def _explained(error: BaseException) -> tuple[int, str]:
    for kind, explain in _EXPLANATIONS:
        if isinstance(error, kind):
            return explain(error)
    if isinstance(error, RuntimeError) and _MEMORY.search(str(error)):  # PyTorch's way to say it
        return _no_memory(error)
    return EXIT_BUG, (
        f"bug: {type(error).__name__}: {error}; this is a bug in regard, run again with --debug"
    )


def _system(error: Any) -> tuple[int, str]:
    where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else "system"
    reason = error.strerror or str(error)
    if isinstance(error, _WRONG_PATHS):
        return EXIT_USER, f"{where}: {reason}; check the path"
    return EXIT_ENVIRONMENT, f"{where}: {reason}; check the disk and what it allows"


def _interrupted(_: BaseException) -> tuple[int, str]:
    return EXIT_INTERRUPT, "signal: interrupted; nothing was left half written"


def _no_memory(_: BaseException) -> tuple[int, str]:
    return EXIT_ENVIRONMENT, "memory: not enough; use smaller batches or a smaller model"


_MEMORY = re.compile("allocate memory|out of memory")
_WRONG_PATHS = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError)


_EXPLANATIONS: list[tuple[Any, Callable[[Any], tuple[int, str]]]] = [
    (RegardError, lambda error: (error.exit_code, str(error))),
    (click.exceptions.Exit, lambda error: (error.exit_code, "stopped")),
    ((KeyboardInterrupt, click.exceptions.Abort), _interrupted),
    (click.ClickException, lambda error: (EXIT_USER, _usage(error))),
    (MemoryError, _no_memory),
    (OSError, _system),
]


def _usage(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    where = context.command_path.removeprefix("regard").strip() if context else ""
    message = error.format_message().rstrip(".")
    message = message[:1].lower() + message[1:]
    if isinstance(error, click.NoSuchOption) and context:
        parameters = context.command.get_params(context)
        known = [name for p in parameters for name in p.opts if name.startswith("--")]
        message = f"no such option {error.option_name}; {did_you_mean(error.option_name, known)}"
    if ";" not in message:
        message += f"; see regard {where} --help".replace("  ", " ")
    return f"{where or 'arguments'}: {message}"


def _prepare_streams() -> None:
    """Write UTF-8 whatever the locale says, and nowhere where a stream is closed."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - open to the end
            setattr(sys, name, nowhere)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    warnings.showwarning = _show_warning


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    sys.stderr.write(f"regard: warning: {' '.join(str(message).split())}\n")
