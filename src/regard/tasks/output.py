"""What a task hands back: what a model said, how likely it is, and where it looked for it."""

from __future__ import annotations

import html
from dataclasses import dataclass
from pathlib import Path

from regard.errors import UserError
from regard.pictures.records import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """Something a model said, with where it looked.

    Args:
        looked: The record, or None where the model has no attention.
        truncated: Whether the input was cut, or the output forced to end.
    """

    looked: Record | None
    truncated: bool = False

    @property
    def record(self) -> Record:
        """What was read, what was written, and the weights between.

        Raises:
            UserError: The model has no attention: it looked nowhere.
        """
        if self.looked is None:
            raise UserError(
                'record must come from a model with attention; got one of attention "none". '
                "Use another model."
            )
        return self.looked

    def save(self, path: str | Path, *, overwrite: bool = True) -> None:
        """Save the picture or the numbers, by the ending: see `Record.save`.

        Args:
            path: The file.
            overwrite: Whether it may be replaced.

        Raises:
            UserError: The ending is unknown, the file exists, or the model has no attention.
            EnvironmentFault: The disk is full, or the folder cannot be written to.
        """
        self.record.save(path, overwrite=overwrite)

    def _repr_html_(self) -> str:
        return html.escape(repr(self)) if self.looked is None else self.looked._repr_html_()


@dataclass(frozen=True, slots=True, kw_only=True)
class Output(Looked):
    """A text that a model wrote; see `Looked` for the record.

    Args:
        text: The text.
        tokens: Its tokens.
        score: Its logarithmic probability over the length penalty, with the coverage penalty;
            n-best lists are sorted by it.
        log_prob: Its logarithmic probability; from a pair of decoders the sum of both.
    """

    text: str
    tokens: tuple[str, ...]
    score: float
    log_prob: float

    def _repr_html_(self) -> str:
        return html.escape(self.text) if self.looked is None else self.looked._repr_html_()
