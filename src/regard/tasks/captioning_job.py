"""What the training loop knows of a captioner: batches, loss, evaluation."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.attention.losses import doubly_stochastic
from regard.data.batches import halves, loader, mixed_plan, pad, plan
from regard.data.captions import CaptionedImages
from regard.data.tokens import Tokenizer
from regard.errors import DataError
from regard.models.choices import annealed, choice_loss
from regard.models.decoder import Decoded
from regard.models.seq2seq import Seq2Seq, token_loss
from regard.tasks.base import CONFIG
from regard.tasks.caption_metrics import bleu, cider_d, rouge_l
from regard.tasks.captioning import TOKENS, Captioner
from regard.tasks.captioning_settings import CaptioningModelSettings, CaptioningSettings
from regard.tasks.runs import comparable, first_places
from regard.training.job import Loss

_AT_ONCE = 64  # pictures of the development set
_CHARACTERS = ("zh", "ja", "th", "lo", "km")  # languages that set no words apart


class Batch(NamedTuple):
    """A batch of captions and their pictures.

    Args:
        source: What the model reads of each caption's picture; descriptions in the precision in
            which they are kept.
        inputs: Tokens that are read, the start mark first.
        outputs: Tokens that are foretold, the end mark last.
        examples: Which captions of the data these are.
    """

    source: Tensor
    inputs: Tensor
    outputs: Tensor
    examples: list[int]


class Example(NamedTuple):
    """A caption: its picture, which of the picture's captions it is, and its tokens."""

    image: int
    caption: int
    ids: list[int]


class CaptionDataset(torch.utils.data.Dataset[tuple[int, Tensor, list[int]]]):
    """Captions with what the model reads of their pictures, as a map-style dataset.

    Args:
        images: The pictures and their captions.
        examples: The captions, encoded.
        read: From a picture's place to what the model reads of it.
    """

    def __init__(
        self,
        images: CaptionedImages,
        examples: Sequence[Example],
        read: Callable[[int], Tensor],
    ) -> None:
        self.images, self.examples, self.read = images, examples, read

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, index: int) -> tuple[int, Tensor, list[int]]:
        example = self.examples[index]
        return index, self.read(example.image), example.ids

    def where(self, index: int) -> str:
        """Name the file and line of a caption."""
        example = self.examples[index]
        return self.images.where(example.image, example.caption)


def collate(items: Sequence[tuple[int, Tensor, list[int]]]) -> Batch:
    """Put captions into a batch."""
    targets = [ids for _, _, ids in items]
    return Batch(
        torch.stack([source for _, source, _ in items]),
        pad([[Tokenizer.BOS, *ids] for ids in targets], value=Tokenizer.PAD),
        pad([[*ids, Tokenizer.EOS] for ids in targets], value=Tokenizer.PAD),
        [index for index, _, _ in items],
    )


class CaptioningJob:
    """What the training loop needs to know of a captioner: see `regard.training.Job`.

    Args:
        settings: The config.
        captioner: The model, what describes pictures, and the tokenizer.
        data: The training data.
        dev: The development data, every caption an example.
    """

    def __init__(
        self,
        settings: CaptioningSettings,
        captioner: Captioner,
        *,
        data: CaptionDataset,
        dev: CaptionDataset,
    ) -> None:
        self.settings, self.captioner = settings, captioner
        self.model: Seq2Seq = captioner.model
        self.metric: str = settings.metric
        self.higher_is_better = settings.metric != "loss"
        self.data, self.dev = data, dev
        self.identity = _identity(settings, captioner, data.images, dev.images)
        self._lengths = [(len(example.ids) + 1,) for example in data.examples]
        self._steps = len(self._plan(0))

    def steps(self, epoch: int) -> int:
        """Count the batches of an epoch; every epoch has as many: lengths alone bound them."""
        return self._steps

    def batches(self, epoch: int, start: int) -> Generator[Batch, None, None]:
        """Load the batches of an epoch from a place on."""
        loaded = loader(
            self.data,
            self._plan(epoch),
            start=start,
            workers=self.settings.training.workers,
            collate=collate,
            timeout=300,  # seconds; a worker that says nothing for so long hangs
        )
        total = self._steps * self.settings.training.epochs
        share = self.settings.model.reinforce.drawn
        first = epoch * self._steps + start
        yield from annealed(self.model, loaded, lambda step: share((first + step) / total))

    def size(self, batch: Batch) -> int:
        """Count the tokens that are foretold."""
        return int((batch.outputs != Tokenizer.PAD).sum())

    def loss(self, batch: Batch) -> Loss:
        """Compute the loss of a batch, summed over its tokens."""
        return Loss(self._loss(batch, self.settings.training.label_smoothing), {})

    def split(self, batch: Batch) -> tuple[Batch, Batch] | None:
        """Halve a batch."""
        return halves(batch)

    def describe(self, batch: Batch) -> str:
        """Say which captions a batch holds."""
        places = [self.data.where(index) for index in batch.examples]
        longest = batch.outputs.shape[1]
        return f"{len(places)} captions of at most {longest} tokens: {first_places(places)}"

    @torch.no_grad()
    def evaluate(self, poll: Callable[[], None]) -> dict[str, float]:
        """Score the development set: loss per token, perplexity, and greedy captions' scores."""
        metrics = self._dev_loss(poll)
        if self.metric == "loss":
            return metrics
        images = self.dev.images
        written: list[str] = []
        for start in range(0, len(images), _AT_ONCE):
            poll()
            places = range(start, min(start + _AT_ONCE, len(images)))
            sources = self.captioner.on_device(torch.stack([self.dev.read(i) for i in places]))
            search = self.captioner.search(beam=1, nbest=1)
            found = self.captioner.hypotheses(sources, search)
            written += [self.captioner.tokenizer.decode(one[0].tokens) for one in found]
        return {**metrics, **scores(written, images.captions, self.settings.data.language)}

    def write(self, folder: Path) -> None:
        """Write settings, tokenizer and a card beside the weights."""
        own = model_settings(self.settings)
        (folder / CONFIG).write_text(own.model_dump_json(indent=1) + "\n", encoding="utf-8")
        self.captioner.tokenizer.save(folder / TOKENS)
        (folder / "card.md").write_text(self._card(), encoding="utf-8")

    def _card(self) -> str:
        data = self.identity["data"]
        return (
            "# Captioner\n\n"
            f"Trained by `regard train` on {len(self.data):,} captions of "
            f"{len(self.data.images):,} pictures (SHA-256 {data['train']}), chosen on "
            f"{len(self.dev.images):,} (SHA-256 {data['dev']}), "
            f"seed {self.settings.training.seed}.\n"
        )

    def _plan(self, epoch: int) -> list[list[int]]:
        own = self.settings.training
        # A describer that is trained computes with the means of a batch.
        make = mixed_plan if self.captioner.sees_pixels else plan
        return make(
            self._lengths,
            tokens=own.batch_tokens,
            seed=own.seed,
            epoch=epoch,
            max_sentences=own.batch_sentences,
        )

    def _loss(self, batch: Batch, smoothing: float) -> Tensor:
        device = self.captioner.device
        source = self.captioner.on_device(batch.source)
        inputs, outputs = batch.inputs.to(device), batch.outputs.to(device)
        decoded: Decoded = self.model(source, self.captioner.mask(len(source)), inputs)
        loss = token_loss(
            self.model, decoded.features, outputs, padding=Tokenizer.PAD, smoothing=smoothing
        )
        loss = loss + choice_loss(self.model, decoded, outputs, padding=Tokenizer.PAD)
        share = self.settings.doubly_stochastic
        if share and self.model.training and decoded.weights.shape[1]:
            loss = loss + share * self._unread(decoded.weights, outputs)
        return loss

    def _unread(self, weights: Tensor, outputs: Tensor) -> Tensor:
        """Ask that every cell, but not the sentinel, be looked at in the end."""
        rows, columns = self.captioner.grid
        steps = (outputs != Tokenizer.PAD).unsqueeze(1).expand(weights.shape[:3])
        return doubly_stochastic(weights[..., : rows * columns], steps=steps) / weights.shape[1]

    def _dev_loss(self, poll: Callable[[], None]) -> dict[str, float]:
        total, count = 0.0, 0
        order = sorted(range(len(self.dev)), key=lambda i: len(self.dev.examples[i].ids))
        for start in range(0, len(order), _AT_ONCE):
            poll()
            batch = collate([self.dev[i] for i in order[start : start + _AT_ONCE]])
            total += float(self._loss(batch, 0.0))
            count += self.size(batch)
        loss = total / count
        return {"loss": loss, "perplexity": math.exp(min(loss, 700.0))}


def caption_words(text: str, language: str | None) -> list[str]:
    """Cut a caption into what is scored: lower-case words without punctuation, or characters.

    Args:
        text: The caption.
        language: Its language; those without spaces are cut into characters.

    Returns:
        The words.

    Example:
        >>> caption_words("A red-brown dog, running.", "en"), caption_words("一只狗。", "zh")
        (['a', 'red', 'brown', 'dog', 'running'], ['一', '只', '狗'])
    """
    primary = (language or "").replace("_", "-").partition("-")[0].lower()
    pattern = r"\w" if primary in _CHARACTERS else r"\w+"
    return re.findall(pattern, text.lower())


def scores(
    written: Sequence[str], references: Sequence[Sequence[str]], language: str | None
) -> dict[str, float]:
    """Score captions against several references each.

    Args:
        written: The captions.
        references: The references of each.
        language: Language of both.

    Returns:
        BLEU-1 to BLEU-4 (with the brevity penalty), BLEU-4 without it, ROUGE-L and CIDEr-D, in
        percent.
    """
    ours = [caption_words(one, language) for one in written]
    theirs = [[caption_words(one, language) for one in several] for several in references]
    found = bleu(ours, theirs)
    each = cider_d(ours, theirs)
    numbered = {f"bleu{size}": score for size, score in enumerate(found.scores, start=1)}
    return {
        **numbered,
        "bleu": found.scores[-1],
        "bleu4_without_penalty": found.without_penalty[-1],
        "rouge_l": rouge_l(ours, theirs),
        "cider": 100.0 * sum(each) / len(each),
    }


def encode_captions(
    images: CaptionedImages, tokenizer: Tokenizer, *, limit: int | None
) -> list[Example]:
    """Turn captions into ids.

    Args:
        images: The pictures and their captions.
        tokenizer: The tokenizer.
        limit: Captions with more tokens are left out; None keeps all.

    Returns:
        The captions that are kept.

    Raises:
        DataError: None is.
    """
    found = []
    for image, several in enumerate(images.captions):
        for caption, text in enumerate(several):
            ids = tokenizer.encode(text).ids
            if limit is None or len(ids) <= limit:
                found.append(Example(image, caption, ids))
    if not found:
        raise DataError(
            f"at least one caption must have at most {limit} tokens; none has. Raise "
            "data.max_tokens.",
            where=images.file,
        )
    return found


def model_settings(settings: CaptioningSettings) -> CaptioningModelSettings:
    """Return the part of a config that a model needs after training."""
    return CaptioningModelSettings(
        task="captioning",
        language=settings.data.language,
        model=settings.model,
        decoding=settings.decoding,
    )


def _identity(
    settings: CaptioningSettings,
    captioner: Captioner,
    images: CaptionedImages,
    dev: CaptionedImages,
) -> dict[str, Any]:
    table = comparable(settings, files=("train", "dev", "test", "images", "cache"))
    table["data"].update(train=images.sha256, dev=dev.sha256)
    table["tokens"] = captioner.tokenizer.sha256
    return table
