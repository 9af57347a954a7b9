"""A record as one HTML page that needs no network, and as a frame in a notebook."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from regard.pictures import series_html
from regard.pictures.codec import round_weights
from regard.pictures.colours import STOPS
from regard.pictures.covers import DIM, HAZE, LIT
from regard.pictures.document_html import page_data
from regard.pictures.gaze import gazes, unit
from regard.pictures.heads import rows_of
from regard.pictures.lettering import is_right_to_left, visible
from regard.pictures.packing import pack
from regard.pictures.picture import Picture
from regard.pictures.series import Series
from regard.pictures.texts import Document
from regard.pictures.words import groups_of

if TYPE_CHECKING:
    from regard.pictures.records import Record, Text

_UNPACKED = 60_000  # weights that are written out, so that a page can be read; more are packed
_DIGITS = 4  # what a person compares on a screen; it halves the size of a long text


def render(record: Record) -> str:
    """Draw a record as one interactive HTML page.

    Pointing at a word shows what it looked at, or what looked at it: in a matrix, or in the
    picture that was read. Of a document the strongest sentences are shown, their words shaded; of
    a series its chart. The page carries its data, style and script; a content security policy
    lets nothing else in. Texts are put in as text.

    Args:
        record: The record.

    Returns:
        A complete HTML document.
    """
    series = isinstance(record.read, Series)
    style, script, body = _chart(record) if series else _parts(_kind(record), unit(record))
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(_title(record))}</title>\n"
        '<link rel="icon" href="data:,">\n'
        f"<style>{style}</style>\n</head>\n"
    )
    if series:  # all is drawn already
        return f"{head}{body}</body>\n</html>\n"
    data = f'<script type="application/json" id="data">{_data(record)}</script>\n'
    return f"{head}{body}{data}<script>{script}</script>\n</body>\n</html>\n"


def _chart(record: Record) -> tuple[str, str, str]:
    return _asset("page.css") + series_html.STYLE, "", series_html.body(record)


def _kind(record: Record) -> str:
    if isinstance(record.read, Document):
        return "document"
    return "picture" if isinstance(record.read, Picture) else "matrix"


@cache
def _parts(kind: str, what: str = "word") -> tuple[str, str, str]:
    """Put the page together: what all pages share, and the view of this kind."""
    if kind == "document":  # one text with sentences: a page of its own
        own = (_asset(f"document.{ending}") for ending in ("css", "js", "html"))
        style, script, body = own
        return _asset("page.css") + style, script, body
    style = _asset("page.css") + (_asset("picture.css") if kind == "picture" else "")
    script = _asset("page.js").replace("  /* view */\n", _asset(f"{kind}.js"))
    body = _asset("page.html")
    _, *pieces = re.split(r"<!-- (\w+) -->\n", _asset(f"{kind}.html"))
    for name, piece in zip(pieces[::2], pieces[1::2], strict=True):
        said = piece.replace("word", what) if kind == "picture" else piece
        body = body.replace(f"<!-- {name} -->\n", said)
    return style, script, body


def frame(record: Record, *, height: int = 640) -> str:
    """Draw a record for a notebook: the page in a frame that cannot touch the notebook.

    Args:
        record: The record.
        height: Of the frame, in pixels.

    Returns:
        An iframe element that carries the page.
    """
    return (
        f'<iframe title="{escape(_title(record))}" sandbox="allow-scripts" width="100%" '
        f'height="{height}" style="border:0" srcdoc="{escape(render(record))}"></iframe>'
    )


def _title(record: Record) -> str:
    read = record.read
    name = (read.name or "a picture") if isinstance(read, Picture) else read.text
    return f"{visible(record.task)}: {visible(name)} → {visible(record.written.text)}"


@cache
def _asset(name: str) -> str:
    return files("regard.pictures").joinpath("page", name).read_text(encoding="utf-8")


def _digest(source: str) -> str:
    digest = hashlib.sha256(source.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _data(record: Record) -> str:
    details = {visible(key): _shown(value) for key, value in record.details.items()}
    data: dict[str, object] = {"task": visible(record.task), "details": details, "ramps": STOPS}
    data |= page_data(record) if isinstance(record.read, Document) else _views(record)
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _views(record: Record) -> dict[str, object]:
    if isinstance(record.read, Picture):
        return _all_views(record)
    rows = [{"name": visible(name), "maps": maps} for name, maps in rows_of(record)]
    count = sum(one.weights.size for one in record.maps)
    views = _all_views(record) if count <= _UNPACKED else _packed(record)
    return {"rows": rows, **views}


def _packed(record: Record) -> dict[str, object]:
    """Pack the weights of the pieces; the page merges those of a word as `merge_words` does."""
    words = record.merge_words()
    names = [{"name": visible(one.name)} for one in record.maps]
    view = {"written": _side(record.written), "read": _side(record.read_text()), "maps": names}
    packed = pack(np.stack([one.weights for one in record.maps]))
    if _sizes(words) == _sizes(record):
        return {"views": [view], "packed": packed}
    groups = {"written": groups_of(record.written), "read": groups_of(record.read_text())}
    merged = {"written": _side(words.written), "read": _side(words.read_text()), "maps": names}
    return {"views": [{**merged, "groups": groups}, view], "packed": packed}


def _all_views(record: Record) -> dict[str, object]:
    words = record.merge_words()
    merged = _sizes(words) != _sizes(record)
    views = [_view(words), _view(record)] if merged else [_view(record)]
    if not isinstance(record.read, Picture):
        return {"views": views}
    return {"views": views, "picture": _picture(record.read), "unit": unit(record)}


def _picture(picture: Picture) -> dict[str, object]:
    copy = base64.b64encode(picture.data).decode("ascii")
    return {
        "name": picture.name and visible(picture.name),
        "width": picture.width,
        "height": picture.height,
        "rows": picture.rows,
        "columns": picture.columns,
        "sentinel": picture.sentinel,
        "area": picture.area,
        "whole": picture.box is None,
        "source": f"data:{picture.media_type};base64,{copy}",
        "veil": {"dim": DIM, "lit": LIT, "haze": HAZE},
    }


def _sizes(record: Record) -> tuple[int, int]:
    return record.columns, len(record.written.tokens)


def _shown(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else visible(str(value))


def _view(record: Record) -> dict[str, object]:
    read = record.read
    view = _both(record)
    if isinstance(read, Picture):
        names = [None, *(m.name for m in record.maps)]
        keys = ["mean", *map(str, range(len(record.maps)))]
        said = (gazes(record, name).verdict for name in names)
        view["verdicts"] = dict(zip(keys, said, strict=True))
    return view


def _both(record: Record) -> dict[str, object]:
    read = record.read
    return {
        "read": _cells(read) if isinstance(read, Picture) else _side(read),
        "written": _side(record.written),
        "maps": [
            {"name": visible(m.name), "weights": round_weights(m.weights, _DIGITS)}
            for m in record.maps
        ],
    }


def _side(text: Text) -> dict[str, object]:
    return {
        "language": text.language and visible(text.language),
        "direction": "rtl" if is_right_to_left(text.text) else "ltr",
        "tokens": list(_tokens(text)),
    }


def _cells(picture: Picture) -> dict[str, object]:
    named = ((picture.cell(i), picture.place(i)) for i in range(picture.cells))
    tokens = [{"text": cell, "place": place if place != cell else ""} for cell, place in named]
    return {"language": None, "direction": "ltr", "tokens": tokens}


def _tokens(text: Text) -> Iterator[dict[str, object]]:
    """Yield each token with what stands before it in the text."""
    reached = 0
    for index, token in enumerate(text.tokens):
        mark = token.start == token.end
        gap = text.text[reached : token.start]
        if (mark or token.start < reached) and index:
            gap = gap or " "
        reached = max(reached, token.end)
        yield {"gap": _gap(gap), "text": visible(token.text), "mark": mark}


def _gap(text: str) -> str:
    if text.isspace():
        return "\n" if "\n" in text else " "
    return visible(text) if text else ""
