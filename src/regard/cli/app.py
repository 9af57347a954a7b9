"""The command itself: its verbs, and how errors become one line and an exit code."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TextIO

import click

from regard import __version__
from regard.errors import RegardError, did_you_mean

VERBS = {
    "translate": "Translate text and show where the model looked.",
    "train": "Train a model from a config.",
    "evaluate": "Score a model on files it has not seen.",
    "check": "Check a config and its data without training.",
    "new": "Write a config and sample data to begin with.",
    "list": "List bundled models, tasks and attention mechanisms.",
}
EXIT_BUG, EXIT_USER, EXIT_ENVIRONMENT, EXIT_INTERRUPT = 1, 2, 3, 130


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
    _prepare_streams()
    try:
        code = app.main(args=given, prog_name="regard", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has what it wanted. Python would complain again when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except BaseException as error:  # everything becomes one line and a code
        if "--debug" in given and not isinstance(error, SystemExit):
            raise
        code = report(error)
    sys.exit(code if isinstance(code, int) else 0)


def report(error: BaseException) -> int:
    """Say in one line what went wrong.

    Args:
        error: The error.

    Returns:
        The exit code.
    """
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else EXIT_BUG
    code, line = _explained(error)
    text = " ".join(line.split())
    sys.stderr.write(f"regard: error: {text}\n")
    return code


def _explained(error: BaseException) -> tuple[int, str]:
    for kind, explain in _EXPLANATIONS:
        if isinstance(error, kind):
            return explain(error)
    return EXIT_BUG, (
        f"bug: {type(error).__name__}: {error}; this is a bug in regard, run again with --debug"
    )


def _system(error: Any) -> tuple[int, str]:
    reason = error.strerror or str(error)
    return EXIT_ENVIRONMENT, f"{error.filename or 'system'}: {reason}; check the disk"


_EXPLANATIONS: list[tuple[Any, Callable[[Any], tuple[int, str]]]] = [
    (RegardError, lambda error: (error.exit_code, str(error))),
    (click.exceptions.Exit, lambda error: (error.exit_code, "stopped")),
    ((KeyboardInterrupt, click.exceptions.Abort), lambda _: (EXIT_INTERRUPT, "interrupted")),
    (click.ClickException, lambda error: (EXIT_USER, _usage(error))),
    (MemoryError, lambda _: (EXIT_ENVIRONMENT, "memory: not enough; use smaller batches")),
    (OSError, _system),
]


def _usage(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    where = context.command_path.removeprefix("regard").strip() if context else ""
    message = error.format_message().rstrip(".")
    message = message[:1].lower() + message[1:]
    if isinstance(error, click.NoSuchOption) and context:
        known = [name for p in context.command.params for name in p.opts if name.startswith("--")]
        message = f"no such option {error.option_name}; {did_you_mean(error.option_name, known)}"
    if ";" not in message:
        message += f"; see regard {where} --help".replace("  ", " ")
    return f"{where or 'arguments'}: {message}"


def _prepare_streams() -> None:
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
