"""Every error regard raises on purpose, and the exit code the command gives it.

```
RegardError                    exit 1 unless a subclass says otherwise
├── UserError (ValueError)     exit 2: the input, a file or a setting is wrong
│   ├── ShapeError             a tensor has the wrong shape
│   ├── MaskError              a mask has the wrong type, shape or polarity
│   ├── MechanismError         parts of an attention that do not go together
│   ├── DataError              a file of data is wrong; carries path and line
│   ├── ConfigError            a config is wrong; carries the field
│   ├── FileFormatError        a model, a checkpoint or a record cannot be trusted or read
│   └── ResumeError            a run cannot go on as it was
├── EnvironmentFault           exit 3: disk, memory, port, a missing extra
│   ├── MissingExtraError      an optional package is not installed
│   └── RunLockedError         another process holds the run folder
├── DivergedError              exit 4: the loss or a gradient is not finite
└── Interrupted                exit 130 or 143: a signal, after saving
```
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class RegardError(Exception):
    """Base of all errors that regard raises on purpose.

    Args:
        message: What is wrong and what to do: `<name> must <condition>; got <value>. <advice>.`
        where: The place that the message is about (a file and line, a field, an option).
    """

    exit_code = 1

    def __init__(self, message: str, *, where: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class UserError(RegardError, ValueError):
    """The input, a file or a setting is wrong."""

    exit_code = 2


class ShapeError(UserError):
    """A tensor has the wrong shape."""


class MaskError(UserError):
    """A mask has the wrong type, shape or polarity."""


class MechanismError(UserError):
    """Parts of an attention that do not go together."""


class DataError(UserError):
    """A file of data is wrong."""


class ConfigError(UserError):
    """A config is wrong."""


class FileFormatError(UserError):
    """A model, a checkpoint or a record cannot be trusted or read."""


class ResumeError(UserError):
    """A run cannot go on as it was."""


class EnvironmentFault(RegardError):
    """The machine cannot do it: disk, memory, port, a missing package."""

    exit_code = 3


class MissingExtraError(EnvironmentFault, ImportError):
    """An optional package is not installed."""


class RunLockedError(EnvironmentFault):
    """Another process holds the run folder."""


class DivergedError(RegardError):
    """The loss or a gradient is not finite."""

    exit_code = 4


class Interrupted(RegardError):
    """A signal ended the work, after it was saved.

    Args:
        message: What was saved and how to go on.
        signal_number: The signal; the exit code is 128 plus this number.
    """

    def __init__(self, message: str, *, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Say which known name a mistyped one resembles, or list them all.

    Args:
        name: What was typed.
        known: The names that exist.

    Returns:
        A sentence without its full stop, to stand after a semicolon.

    Example:
        >>> did_you_mean("additiv", ["additive", "dot"])
        "did you mean 'additive'?"
        >>> did_you_mean("zzz", ["additive", "dot"])
        'use one of: additive, dot'
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f"did you mean '{close[0]}'?" if close else f"use one of: {', '.join(names)}"
