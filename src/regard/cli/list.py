"""`regard list`: what there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click

from regard.cli.common import write_lines


@click.command("list")
@click.argument("what", default="all", type=click.Choice(["all", "models", "tasks", "mechanisms"]))
def command(what: str) -> None:
    """List bundled models, tasks, and attention mechanisms."""
    listings = {"models": _models, "tasks": _tasks, "mechanisms": _mechanisms}
    chosen = listings if what == "all" else {what: listings[what]}
    for heading, listing in chosen.items():
        if what == "all":
            write_lines(f"{heading}:")
        lines = list(listing())
        width = max([12, *(len(name) for name, _ in lines)])
        write_lines(*(f"  {name:<{width}} {line}" for name, line in lines))


def _models() -> Iterator[tuple[str, str]]:
    from regard.tasks.base import bundled_models

    for name, folder in bundled_models().items():
        card = folder / "card.md"
        lines = card.read_text(encoding="utf-8").splitlines() if card.is_file() else []
        yield name, next((line.strip("# ") for line in lines if line.strip()), "")


def _tasks() -> Iterator[tuple[str, str]]:
    from regard.tasks.base import TASKS, task_kind

    for name in TASKS:
        yield name, task_kind(name).summary


def _mechanisms() -> Iterator[tuple[str, str]]:
    from regard.attention import SCORES, SELECTIONS, TERMS, Function
    from regard.attention.pooling import POOLINGS
    from regard.attention.presets import PRESETS

    kinds: dict[str, Mapping[str, object]] = {
        "score": {**SCORES, "(a function)": Function},
        "term": TERMS,
        "selection": SELECTIONS,
        "pooling": POOLINGS,
        "preset": PRESETS,
    }
    for kind, parts in kinds.items():
        for name, part in parts.items():
            yield name, f"{kind:<10} {_first_line(part)}"


def _first_line(thing: object) -> str:
    return (thing.__doc__ or "").strip().split("\n")[0]
