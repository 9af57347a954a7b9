"""What a model read, what it wrote, and the weights between the two: plain data.

Every picture is drawn from a `Record`, so a terminal, a file and a notebook show the same
thing. A record holds numpy arrays, strings and numbers, and is saved as JSON.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np

from regard.errors import FileFormatError, ShapeError, UserError, did_you_mean
from regard.pictures.picture import Picture
from regard.pictures.texts import Document, Passage, Text, Token
from regard.saving import write_file

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Detail", "Document", "Map", "Passage", "Picture", "Record", "Text", "Token"]

Detail: TypeAlias = str | int | float | None

_ENDINGS = (".json", ".svg", ".html", ".png")


@dataclass(frozen=True, eq=False)
class Map:
    """The weights of one head, layer, hop or step.

    Args:
        name: What a person calls it, such as "layer 2, head 1".
        weights: One row for each written token and one column for each read token; kept as
            a read-only float32 copy.

    Raises:
        ShapeError: The weights are not a matrix.
        UserError: A weight is negative or not finite, or not a number.
    """

    name: str
    weights: NDArray[np.float32]

    def __post_init__(self) -> None:
        weights = _matrix(self.name, self.weights)
        if not np.isfinite(weights).all():
            raise UserError(
                f"weights of map {self.name!r} must be finite; got NaN or infinity. "
                "Look for scores that overflow."
            )
        if weights.size and weights.min() < 0:
            raise UserError(
                f"weights of map {self.name!r} must be 0 or more; got {weights.min():.6g}. "
                "Give the weights, not the scores."
            )
        weights[weights < 1e-30] = 0.0  # below it six digits do not survive float32
        weights.flags.writeable = False
        object.__setattr__(self, "weights", weights)


def _matrix(name: str, weights: ArrayLike) -> NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):
            matrix = np.array(weights, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise UserError(f"weights of map {name!r} must be numbers; got {error}.") from error
    if matrix.ndim != 2:
        raise ShapeError(
            f"weights of map {name!r} must have 2 axes (written, read); got {matrix.ndim}. "
            "Make one map for each head or layer."
        )
    return matrix


@dataclass(frozen=True, eq=False)
class Record:
    """What a model read and wrote, and how much each written token looked at each read one.

    Args:
        task: What the model did, such as "translation".
        read: What was read, whose tokens or cells are the columns of the weights.
        written: The text that was written: the rows of the weights.
        maps: At least one map; their names differ.
        details: Anything else worth keeping, such as a score or a model's name.
        sentence_maps: Where a document was read, maps whose columns are its sentences; the columns
            of `maps` are then words, whose weights are those within their sentences.

    Raises:
        ShapeError: A map does not fit the tokens and cells.
        UserError: There is no map, two maps share a name, or a detail is not plain data.

    Example:
        >>> read = Text("a b", (Token("a", 0, 1), Token("b", 2, 3)))
        >>> written = Text("c", (Token("c", 0, 1),))
        >>> record = Record("translation", read, written, (Map("head 1", [[0.25, 0.75]]),))
        >>> record.strongest(1)
        [[(1, 0.75)]]
    """

    SCHEMA_VERSION: ClassVar[int] = 4

    task: str
    read: Text | Picture
    written: Text
    maps: tuple[Map, ...]
    details: Mapping[str, Detail] = field(default_factory=dict)
    sentence_maps: tuple[Map, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "maps", tuple(self.maps))
        object.__setattr__(self, "sentence_maps", tuple(self.sentence_maps))
        object.__setattr__(self, "details", MappingProxyType(dict(self.details)))
        rows = len(self.written.tokens)
        _check_maps(self.maps, (rows, self.columns))
        if isinstance(self.read, Document):
            _check_maps(self.sentence_maps, (rows, len(self.read.sentences)), "sentence_maps")
        elif self.sentence_maps:
            raise UserError(
                f"sentence_maps must be empty where no document was read; got "
                f"{len(self.sentence_maps)}. Read a Document."
            )
        for name, value in self.details.items():
            _check_detail(name, value)

    @property
    def columns(self) -> int:
        """The number of tokens or cells that were read."""
        return self.read.cells if isinstance(self.read, Picture) else len(self.read.tokens)

    def read_text(self) -> Text:
        """Return the text that was read, for what makes sense of texts only.

        Raises:
            UserError: A picture was read.
        """
        if isinstance(self.read, Picture):
            raise UserError(
                "read must be a text here; got a picture. Use the strip of pictures instead."
            )
        return self.read

    def document(self) -> Document:
        """Return the document that was read, for what makes sense of documents only.

        Raises:
            UserError: Something else was read.
        """
        if not isinstance(self.read, Document):
            kind = "picture" if isinstance(self.read, Picture) else "text without sentences"
            raise UserError(f"read must be a document here; got a {kind}. Draw it as what it is.")
        return self.read

    def sentence_weights(self) -> NDArray[np.float32]:
        """Return the weights of the sentences of a document, the mean over their maps.

        Returns:
            Weights of shape (written, sentences).

        Raises:
            UserError: No document was read.
        """
        self.document()
        mean = np.mean([m.weights for m in self.sentence_maps], axis=0, dtype=np.float64)
        return np.asarray(mean, dtype=np.float32)

    def weights(self, name: str | None = None) -> NDArray[np.float32]:
        """Return one map's weights, or the mean over all maps.

        Args:
            name: The map; the mean when it is not given.

        Returns:
            Weights of shape (written, read).

        Raises:
            UserError: No map has this name.
        """
        if name is None:
            mean = np.mean([m.weights for m in self.maps], axis=0, dtype=np.float64)
            return np.asarray(mean, dtype=np.float32)
        for candidate in self.maps:
            if candidate.name == name:
                return candidate.weights
        known = [m.name for m in self.maps]
        raise UserError(
            f"name must be one of {len(known)} maps; got {name!r}; {did_you_mean(name, known)}"
        )

    def strongest(
        self, count: int = 3, *, name: str | None = None
    ) -> list[list[tuple[int, float]]]:
        """List what each written token looked at most.

        Args:
            count: How many read tokens or cells to list; those of weight 0 are left out.
            name: The map; the mean when it is not given.

        Returns:
            For each written token, pairs of read index and weight, the heaviest first.

        Raises:
            UserError: No map has this name.
        """
        weights = self.weights(name)
        order = np.argsort(-weights, axis=1, kind="stable")[:, : max(count, 0)]
        return [
            [(int(j), float(row[j])) for j in columns if row[j] > 0]
            for row, columns in zip(weights, order, strict=True)
        ]

    def merge_words(self) -> Record:
        """Merge the pieces of each word into one token.

        Weights are summed over the pieces of a word that was read, and averaged over the
        pieces of a word that was written, so that rows that sum to one still do. Chinese,
        Japanese and Thai segments, punctuation and marks stay as they are, and so do the cells
        of a picture.

        Returns:
            A new record; merging it again changes nothing.
        """
        from regard.pictures.words import merge_words  # noqa: PLC0415

        return merge_words(self)

    def to_json(self) -> str:
        """Return the record as JSON, weights rounded to six significant digits.

        Half a surrogate pair, which no valid file can hold, becomes U+FFFD.
        """
        from regard.pictures.codec import encode  # noqa: PLC0415

        return encode(self)

    @classmethod
    def from_json(cls, text: str) -> Record:
        """Read a record from JSON, strictly.

        Args:
            text: What `to_json` returned.

        Returns:
            The record.

        Raises:
            FileFormatError: The text is not a record of a known schema version.
        """
        from regard.pictures.codec import decode  # noqa: PLC0415

        return decode(text)

    def save(self, path: str | Path, *, overwrite: bool = True) -> None:
        """Write the record as data (.json) or as a picture (.svg, .html, .png).

        A PNG needs the extra `png`; a warning names the letters that no font of the system has.

        Args:
            path: The file; its ending chooses the format.
            overwrite: Whether an existing file may be replaced.

        Raises:
            UserError: The ending is unknown, or the file exists and may not be replaced.
            MissingExtraError: The extra `png` is not installed.
            EnvironmentFault: The disk is full, or the folder cannot be written to.
        """
        path = Path(path)
        ending = path.suffix.lower()
        if ending not in _ENDINGS:
            raise UserError(
                f"path must end in {', '.join(_ENDINGS)}; got {path.name!r}. Choose one of them."
            )
        write_file(path, self._drawn(ending), overwrite=overwrite)

    def _drawn(self, ending: str) -> str | bytes:
        if ending == ".json":
            return self.to_json()
        if ending == ".png":
            from regard.pictures import png  # noqa: PLC0415

            return png.render(self)
        from regard.pictures import html, svg  # noqa: PLC0415

        return svg.render(self) if ending == ".svg" else html.render(self)

    @classmethod
    def load(cls, path: str | Path) -> Record:
        """Read a record that was saved as JSON.

        Args:
            path: The file.

        Returns:
            The record.

        Raises:
            UserError: The file cannot be read.
            FileFormatError: The file is not a record.
        """
        try:
            text = Path(path).read_bytes().decode("utf-8-sig")
        except OSError as error:
            raise UserError(f"cannot be read: {error.strerror}.", where=str(path)) from error
        except UnicodeDecodeError as error:
            raise FileFormatError(
                f"must be UTF-8; got another byte at offset {error.start}. Save the record again.",
                where=str(path),
            ) from error
        try:
            return cls.from_json(text)
        except FileFormatError as error:
            raise FileFormatError(error.message, where=str(path)) from error

    def _repr_html_(self) -> str:
        """Show the record in a notebook, shut off from the page around it."""
        from regard.pictures.html import frame  # noqa: PLC0415

        return frame(self)


def _check_maps(maps: tuple[Map, ...], expected: tuple[int, int], name: str = "maps") -> None:
    if not maps:
        raise UserError(f"{name} must hold at least 1 map; got 0. Record the weights of one head.")
    for m in maps:
        if m.weights.shape != expected:
            raise ShapeError(
                f"weights of map {m.name!r} must have shape {expected} (written, read); "
                f"got {m.weights.shape}. Give one row for each written token."
            )
    names = len({m.name for m in maps})
    if names != len(maps):
        raise UserError(
            f"{name} must have {len(maps)} different names; got {names}. Number the heads."
        )


def _check_detail(name: str, value: object) -> None:
    plain = value is None or isinstance(value, (str, int, float))
    if not plain:
        kind = type(value).__name__
        raise UserError(f"details[{name!r}] must be text, a number or None; got a {kind}.")
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"details[{name!r}] must be finite; got {value}. Leave it out.")
    if isinstance(value, int) and abs(value) >= 2**64:
        raise UserError(f"details[{name!r}] must be below 2**64; got more. Give it as text.")
