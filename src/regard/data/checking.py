"""Look through pictures before a training: what cannot be opened, and what stands twice."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from regard.data.captions import CaptionedImages
from regard.data.images import ENDINGS, open_image
from regard.data.listed import Images
from regard.errors import DataError, UserError

Listed = TypeVar("Listed", bound=Images)

MAX_BAD = 0.001
"""Share of the pictures that a training may leave out because they cannot be opened."""


@dataclass(frozen=True, slots=True)
class BadImage:
    """A picture that cannot be opened.

    Args:
        name: Its name in the folder.
        where: The line that names it.
        reason: What is wrong with it.
    """

    name: str
    where: str
    reason: str

    def __str__(self) -> str:
        named = self.where if self.where.endswith(self.name) else f"{self.where}: {self.name}"
        return f"{named}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Twin:
    """Two pictures with the same bytes.

    Args:
        first: The name of one.
        second: The name of the other.
        splits: The split of each.
    """

    first: str
    second: str
    splits: tuple[str, str]


@dataclass(frozen=True, slots=True)
class ImageReport:
    """What was found in a folder of pictures that something is said of.

    Args:
        file: The file that says it, or the folder.
        images: How many pictures it names.
        summary: How much is said of them, in words.
        splits: How many pictures each split has.
        bad: Pictures that cannot be opened.
        leaks: Pictures of one split whose bytes stand in another split, too.
        twins: Pictures whose bytes stand twice in the same split.
        doubts: What is doubtful in what is said, and how often.
        unnamed: Pictures in the folder of which nothing is said.
        what: What one says of a picture: "caption" or "label".
        sha256: Hash of the names, the pictures' bytes and what is said of them.
        max_bad: Share of bad pictures that is put up with.
    """

    file: str
    images: int
    summary: str
    splits: Mapping[str, int]
    bad: tuple[BadImage, ...]
    leaks: tuple[Twin, ...]
    twins: tuple[Twin, ...]
    doubts: Mapping[str, int]
    unnamed: int
    what: str
    sha256: str
    max_bad: float

    @property
    def ok(self) -> bool:
        """Whether no more pictures are bad than is put up with."""
        return len(self.bad) <= self.max_bad * self.images

    def lines(self) -> list[str]:
        """Say it to a person.

        Returns:
            A line for the whole, one for each bad picture, and lines about something doubtful,
            which begin with "warning: ".
        """
        return [
            f"{self.file}: {self.images:,} images, {self.summary}, SHA-256 {self.sha256[:16]}",
            *(f"{name}: {count:,} images" for name, count in sorted(self.splits.items())),
            *(f"bad: {bad}" for bad in self.bad),
            *self._leak_lines(),
            *_warnings(
                {
                    "images have the same bytes as another of their split": len(self.twins),
                    **self.doubts,
                    f"images in the folder have no {self.what}": self.unnamed,
                }
            ),
        ]

    def _leak_lines(self) -> Iterator[str]:
        pairs: dict[tuple[str, ...], list[Twin]] = defaultdict(list)
        for twin in self.leaks:
            pairs[tuple(sorted(twin.splits))].append(twin)
        for splits, twins in sorted(pairs.items()):
            both = " and in ".join(name or "no split" for name in splits)
            example = f"{twins[0].first} is {twins[0].second}"
            yield f"warning: {len(twins)} images stand in {both} ({example})"


@dataclass(frozen=True, slots=True)
class ImageOverlap:
    """How much of one set of pictures is known from another.

    Args:
        images: Pictures whose bytes stand in both.
        captions: Captions that stand in both.
        total: Pictures of the set that was looked at.
    """

    images: int
    captions: int
    total: int


def check_images(images: Images, *, max_bad: float = MAX_BAD) -> ImageReport:
    """Open every picture, and count what is bad, what leaks and what stands twice.

    Args:
        images: The pictures, with all their splits.
        max_bad: Share of bad pictures that is put up with, from 0 to 1.

    Returns:
        What was found; `report.ok` says whether it will do.

    Raises:
        UserError: `max_bad` is out of range.
    """
    if not 0 <= max_bad <= 1:
        raise UserError(f"max_bad must be from 0 to 1; got {max_bad}. Use {MAX_BAD}.")
    reasons = _reasons(images)
    splits: dict[str, int] = defaultdict(int)
    for split in images.splits:
        splits[split] += 1
    twins = list(_twins(images))
    return ImageReport(
        file=images.file,
        images=len(images),
        summary=images.summary,
        splits={name: count for name, count in splits.items() if name},
        bad=tuple(
            BadImage(images.names[i], images.where(i), reason) for i, reason in reasons.items()
        ),
        leaks=tuple(twin for twin in twins if twin.splits[0] != twin.splits[1]),
        twins=tuple(twin for twin in twins if twin.splits[0] == twin.splits[1]),
        doubts=images.doubts,
        unnamed=sum(name not in images.known for name in _pictures(images.root)),
        what=images.KIND.one,
        sha256=images.sha256,
        max_bad=max_bad,
    )


def leave_out_bad(images: Listed, report: ImageReport) -> Listed:
    """Leave out the pictures that cannot be opened, if they are few.

    Args:
        images: The pictures.
        report: What `check_images` found in them.

    Returns:
        The others.

    Raises:
        DataError: More are bad than the report puts up with, or none is left.
    """
    bad = {one.name for one in report.bad}
    if not report.ok or len(bad) == len(images):
        first = report.bad[0]
        raise DataError(
            f"at most {report.max_bad:.2%} of the images may be bad; got {len(bad)} of "
            f"{report.images:,}, the first in {first} "
            "`regard data check` lists them; mend them, or raise data.max_bad to leave them out.",
            where=images.file,
        )
    return images.select([i for i, name in enumerate(images.names) if name not in bad])


def image_overlap(train: CaptionedImages, other: CaptionedImages) -> ImageOverlap:
    """Count what a development or test set shares with the training set.

    Args:
        train: The training pictures.
        other: The pictures that should be new.

    Returns:
        Counts over `other`. That short captions of generated pictures stand in both is no fault.
    """
    said = {caption for captions in train.captions for caption in captions}
    return ImageOverlap(
        images=shared_images(train, other),
        captions=sum(caption in said for captions in other.captions for caption in captions),
        total=len(other),
    )


def shared_images(train: Images, other: Images) -> int:
    """Count the pictures of a set whose bytes stand in the training set, too.

    Args:
        train: The training pictures.
        other: The pictures that should be new.

    Returns:
        How many of `other`.
    """
    known = set(train.digests)
    return sum(digest in known for digest in other.digests)


def _reasons(images: Images) -> dict[int, str]:
    found: dict[str, str | None] = {}
    for path, digest in zip(images.paths, images.digests, strict=True):
        if digest in found:
            continue
        try:
            open_image(path)
            found[digest] = None
        except DataError as error:
            found[digest] = error.message
    told = {i: found[digest] for i, digest in enumerate(images.digests)}
    return {i: reason for i, reason in told.items() if reason is not None}


def _twins(images: Images) -> Iterator[Twin]:
    first: dict[tuple[str, str], str] = {}
    by_digest: dict[str, list[str]] = defaultdict(list)
    for name, digest, split in zip(images.names, images.digests, images.splits, strict=True):
        if (digest, split) in first:
            yield Twin(first[digest, split], name, (split, split))
            continue
        for other in by_digest[digest]:
            yield Twin(first[digest, other], name, (other, split))
        first[digest, split] = name
        by_digest[digest].append(split)


def _pictures(root: Path) -> Iterator[str]:
    for folder, _, files in os.walk(root):
        for name in files:
            if name.lower().endswith(ENDINGS):
                yield (Path(folder) / name).relative_to(root).as_posix()


def _warnings(counts: Mapping[str, int]) -> list[str]:
    return [f"warning: {count} {what}" for what, count in counts.items() if count]
