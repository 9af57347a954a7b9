"""A series in a terminal: a line of blocks for each feature, its steps shaded by their weight."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from regard.pictures.blocks import Look, folded
from regard.pictures.colours import paint
from regard.pictures.lettering import cells, fit, isolate, pad
from regard.pictures.series import Chart, Trace, chart

if TYPE_CHECKING:
    from regard.pictures.records import Record

_HEIGHTS = "▁▂▃▄▅▆▇█"
_SHADES = " ░▒▓█"
_LONGEST_NAME = 16
_STEPS = 10
_DEEPEST = 0.8  # of the ramp: blocks must be seen on it


def lines(record: Record, look: Look, name: str | None) -> Iterator[str]:
    """Draw a series: for each feature how high it stands at each step, and the steps' weights.

    The steps of most weight are named below, so that nothing rests on colour; without colour a
    line of shades shows the weights.

    Args:
        record: A record whose `read` is a series.
        look: How the terminal shows things.
        name: The map; the mean when it is not given.

    Yields:
        Lines without their ends; none is wider than the terminal.
    """
    room = look.width - min(_LONGEST_NAME, look.width // 4) - 1
    found = chart(record, columns=room, name=name)
    gutter = look.width - room
    yield isolate(fit(found.heading, look.width))
    yield ""
    for trace in found.traces:
        yield pad(fit(trace.name, gutter - 1), gutter) + _blocks(trace, found, look)
    if look.colour == "none":
        yield pad(fit("weight", gutter - 1), gutter) + _shades(found)
    yield pad("", gutter) + _ends(found)
    yield from folded(f"<- {found.named or '-'}", look.width)
    yield from folded(found.remark, look.width)
    if look.colour != "none":
        yield _legend(found, look)


def _blocks(trace: Trace, found: Chart, look: Look) -> str:
    parts = []
    for column, between in enumerate(trace.ranges):
        block = " "
        if between is not None:
            middle = trace.height((between[0] + between[1]) / 2)
            block = _HEIGHTS[min(int(middle * len(_HEIGHTS)), len(_HEIGHTS) - 1)]
        value = _DEEPEST * min(found.weights[column] / found.top, 1.0)
        parts.append(paint(block, value, depth=look.colour, theme=look.theme))
    return "".join(parts)


def _shades(found: Chart) -> str:
    part = [min(weight / found.top, 1.0) for weight in found.weights]
    return "".join(_SHADES[0 if p < 0.05 else min(1 + int(p * 4), 4)] for p in part)


def _ends(found: Chart) -> str:
    """Name the first and the last step below their columns."""
    if not found.count:
        return "no steps"
    last = str(found.count)
    between = len(found.weights) - 1 - cells(last)
    return f"1{' ' * between}{last}" if between > 0 else "1"


def _legend(found: Chart, look: Look) -> str:
    steps = "".join(
        paint(" ", _DEEPEST * i / (_STEPS - 1), depth=look.colour, theme=look.theme)
        for i in range(_STEPS)
    )
    return f"0 {steps} {fit(f'{found.top:g}', max(look.width - _STEPS - 3, 1))}"
