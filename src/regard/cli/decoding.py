"""Options that change how what a model writes is searched for or drawn."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from regard.errors import UserError

if TYPE_CHECKING:
    import torch

    from regard.tasks.settings import DecodingSettings

Function = TypeVar("Function", bound=Callable[..., Any])

_DRAWING = ("temperature", "top_k", "top_p", "seed")
_OPTIONS = {
    "coverage_penalty": click.option(
        "--coverage-penalty",
        type=float,
        help="How much a source word or cell that was overlooked costs.",
    ),
    "block_ngrams": click.option(
        "--block-ngrams", type=int, help="Write no run of so many tokens twice."
    ),
    "sample": click.option(
        "--sample", is_flag=True, default=None, help="Draw at random instead of searching."
    ),
    "seed": click.option(
        "--seed", type=click.IntRange(0, 2**63 - 1), help="Of what is drawn; by default 0."
    ),
    "temperature": click.option(
        "--temperature", type=float, help="Below 1 what is likely is drawn more often."
    ),
    "top_k": click.option("--top-k", type=int, help="Draw from so many of the likeliest tokens."),
    "top_p": click.option(
        "--top-p", type=float, help="Draw from the likeliest tokens of this probability together."
    ),
}


class _Writer(Protocol):
    """What writes: a translator or a captioner."""

    @property
    def settings(self) -> Any:
        """Settings that hold how it decodes."""

    def searching(self, decoding: DecodingSettings) -> Any:
        """Return one of the same model that decodes in another way."""


Writer = TypeVar("Writer", bound=_Writer)


def search_options(nbest: str) -> Callable[[Function], Function]:
    """Return the options that say how to search: `beam` and `nbest`.

    Args:
        nbest: What `--nbest` gives.
    """

    def added(function: Function) -> Function:
        function = click.option("--nbest", type=click.IntRange(1, 1000), default=1, help=nbest)(
            function
        )
        return click.option(
            "--beam", type=click.IntRange(1, 1000), help="Hypotheses kept at each step."
        )(function)

    return added


def decoding_options(function: Function) -> Callable[..., Any]:
    """Add the options; those that are given arrive as `decoding`, a dictionary."""

    @functools.wraps(function)
    def collected(**given: Any) -> Any:
        changes = {name: given.pop(name) for name in _OPTIONS}
        decoding = {name: value for name, value in changes.items() if value is not None}
        return function(decoding=decoding, **given)

    command: Callable[..., Any] = collected
    for option in reversed(_OPTIONS.values()):
        command = option(command)
    return command


def check_decoding(decoding: Mapping[str, Any], beam: int | None) -> None:
    """Refuse options that do not go together, before a model is loaded.

    Args:
        decoding: What `decoding_options` collected.
        beam: The beam that was asked for.

    Raises:
        UserError: A beam and drawing.
    """
    if decoding.get("sample") and beam is not None:
        raise UserError("draws at random, and --beam searches; leave one out.", where="--sample")


def changed(writer: Writer, decoding: Mapping[str, Any], command: str) -> Writer:
    """Return a translator or captioner that decodes as the options say.

    Args:
        writer: The translator or captioner.
        decoding: What `decoding_options` collected.
        command: What the command is called.

    Raises:
        UserError: A value is out of range, or an option counts for nothing.
    """
    from regard.config import checked
    from regard.tasks.settings import DecodingSettings

    changes = {name: value for name, value in decoding.items() if name != "seed"}
    table = {**writer.settings.decoding.model_dump(), **changes}
    settings = checked(table, DecodingSettings, where=command)
    alone = [name for name in _DRAWING if name in decoding]
    if alone and not settings.sample:
        option = "--" + alone[0].replace("_", "-")
        raise UserError("counts only where outputs are drawn; add --sample.", where=option)
    found: Writer = writer.searching(settings) if changes else writer
    return found


def drawn_from(decoding: Mapping[str, Any]) -> torch.Generator:
    """Return the one generator of all inputs: what is drawn does not depend on their parts.

    Args:
        decoding: What `decoding_options` collected.
    """
    import torch

    return torch.Generator().manual_seed(decoding.get("seed", 0))
