"""What several verbs share."""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from regard.errors import EnvironmentFault, UserError

_LARGEST_INPUT = 64 << 20  # bytes on standard input, which may never end
_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_ENDS = re.compile("[\x85\u2028\u2029]")
Function = TypeVar("Function", bound=Callable[..., Any])

device_option = click.option(
    "--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:N or mps."
)
threads_option = click.option(
    "--threads",
    type=click.IntRange(1, 1024),
    help="Threads of a matrix product; by default PyTorch's choice.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="JSON, one object a line.")
force_option = click.option("--force", is_flag=True, help="Replace files that exist.")


def load_torch() -> None:
    """Import torch with Ctrl-C held back until it is done: its own import would swallow it."""
    if "torch" in sys.modules or not hasattr(signal, "pthread_sigmask"):
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        importlib.import_module("torch")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def set_threads(threads: int | None) -> None:
    """Set how many threads PyTorch uses, where a number is given."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)


def standard_input() -> bytes:
    """Read standard input to its end.

    Raises:
        UserError: It has too much.
    """
    data = sys.stdin.buffer.read(_LARGEST_INPUT + 1)
    if len(data) > _LARGEST_INPUT:
        raise UserError(
            f"must have at most {_LARGEST_INPUT >> 20} MiB; it has more. Split it, or use --file.",
            where="standard input",
        )
    return data


def write_json(value: object) -> None:
    """Write an object as one line of JSON on standard output.

    Half a surrogate pair becomes U+FFFD, and what some readers take for the end of a line is
    escaped.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    text = _LINE_ENDS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    sys.stdout.write(_SURROGATE.sub("\ufffd", text) + "\n")


def write_lines(*lines: str) -> None:
    """Write lines on standard output."""
    sys.stdout.write("".join(line + "\n" for line in lines))


def check_output(path: Path, *, force: bool, inputs: Sequence[Path] = ()) -> None:
    """Refuse a file that exists, or whose folder does not, before any work is done.

    Args:
        path: The file to be written.
        force: Whether it may be replaced.
        inputs: Files that are read, which it must not be.

    Raises:
        UserError: It exists, it is an input, or its folder does not exist.
        EnvironmentFault: Its folder cannot be written to.
    """
    if any(one.exists() and path.exists() and one.samefile(path) for one in inputs):
        raise UserError("is the input too; choose another name.", where=str(path))
    if path.is_dir():
        raise UserError("is a folder; add a file name.", where=str(path))
    if path.exists() and not force:
        raise UserError("exists already; choose another name, or use --force.", where=str(path))
    if not path.parent.is_dir():
        raise UserError("its folder does not exist; make it first.", where=str(path))
    if not os.access(path.parent, os.W_OK):
        raise EnvironmentFault("its folder cannot be written to.", where=str(path))
