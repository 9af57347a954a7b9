"""A series as one HTML page: its chart, and its numbers in a table; nothing runs in it."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from regard.pictures import series_svg
from regard.pictures.gaze import number
from regard.pictures.lettering import visible
from regard.pictures.series import Series

if TYPE_CHECKING:
    from regard.pictures.records import Record

STYLE = """
.chart { overflow-x: auto; border: 1px solid var(--line); border-radius: 12px; background: #fff; }
.chart svg { display: block; margin: 0 auto; forced-color-adjust: none; }
"""

_MOST_ROWS = 2000  # of the table


def body(record: Record) -> str:
    """Return the body of a page: a chart for the mean and for each map, and a table.

    Args:
        record: A record whose `read` is a series.

    Returns:
        Elements; every text in them is text.
    """
    names = [None, *(m.name for m in record.maps)] if len(record.maps) > 1 else [None]
    # Of several gradients with one name any may be taken: they are all alike.
    charts = "".join(
        f'<div class="chart">{series_svg.render(record, name=name)}</div>\n' for name in names
    )
    details = ", ".join(
        f"{visible(key)} {visible(_shown(value))}" for key, value in record.details.items()
    )
    return (
        "<body>\n<main>\n"
        f"<header><h1>{escape(visible(record.task))}</h1>"
        f'<p id="details">{escape(details)}</p></header>\n'
        f"{charts}<details><summary>Numbers</summary>"
        f'<div id="table"><table>{"".join(_rows(record))}</table></div></details>\n'
        "</main>\n"
    )


def _rows(record: Record) -> Iterator[str]:
    read = record.read
    if not isinstance(read, Series):
        return
    weights = record.weights().mean(axis=0).tolist() if len(record.written.tokens) else []
    yield _row("th", ["step", *read.features, "weight"])
    for step, row in enumerate(read.values[:_MOST_ROWS]):
        cells = ["" if value is None else f"{value:g}" for value in row]
        weight = number(weights[step]) if weights else ""
        yield _row("td", [str(step + 1), *cells, weight])
    if len(read.values) > _MOST_ROWS:
        yield _row("td", [f"… {len(read.values) - _MOST_ROWS} more"])


def _row(kind: str, cells: list[str]) -> str:
    shown = (escape(visible(cell)) if cell else "" for cell in cells)
    return "<tr>" + "".join(f"<{kind}>{cell}</{kind}>" for cell in shown) + "</tr>\n"


def _shown(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
