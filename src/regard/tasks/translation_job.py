"""What the training loop knows of a translator: batches, loss, evaluation."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.config import checked
from regard.data.batches import halves, loader, pad, plan
from regard.data.text import Pairs, read_parallel, read_tsv
from regard.data.tokens import Tokenizer
from regard.errors import ConfigError, DataError
from regard.models.choices import annealed
from regard.models.rescoring import AnySeq2Seq, Seq2SeqPair, sequence_loss
from regard.models.settings import Seq2SeqSettings
from regard.tasks.base import CONFIG
from regard.tasks.metrics import text_scores
from regard.tasks.runs import comparable, first_places
from regard.tasks.settings import DecodingSettings
from regard.tasks.translation import SOURCE_TOKENS, TARGET_TOKENS, Translator
from regard.tasks.translation_settings import DataSettings, ModelSettings, TranslationSettings
from regard.training.job import Loss

_AT_ONCE = 64  # sentences of the development set
_NEWER: dict[str, dict[str, Any]] = {  # what a decoder's settings were before they were there
    "gru": {"selection": "softmax", "num_heads": 1, "attentional": True, "gated": False},
    "lstm": {"selection": "softmax", "num_heads": 1, "attentional": True, "gated": False},
    "transformer": {"attention": "scaled_dot", "selection": "softmax"},
}


class Encoded(NamedTuple):
    """Sentence pairs as ids, and where each came from."""

    sources: list[list[int]]
    targets: list[list[int]]
    indices: list[int]
    pairs: Pairs

    def __len__(self) -> int:
        return len(self.sources)


class Batch(NamedTuple):
    """A batch of sentence pairs.

    Args:
        source: Source tokens.
        inputs: Target tokens that are read, the start mark first.
        outputs: Target tokens that are foretold, the end mark last.
        examples: Which pairs of the data these are.
    """

    source: Tensor
    inputs: Tensor
    outputs: Tensor
    examples: list[int]


class PairDataset(torch.utils.data.Dataset[tuple[int, list[int], list[int]]]):
    """Encoded pairs as a map-style dataset."""

    def __init__(self, encoded: Encoded) -> None:
        self.encoded = encoded

    def __len__(self) -> int:
        return len(self.encoded.sources)

    def __getitem__(self, index: int) -> tuple[int, list[int], list[int]]:
        return index, self.encoded.sources[index], self.encoded.targets[index]

    def where(self, index: int) -> str:
        """Name the file and line of a pair."""
        return self.encoded.pairs.where(self.encoded.indices[index])


def collate(items: Sequence[tuple[int, list[int], list[int]]]) -> Batch:
    """Pad pairs into a batch."""
    targets = [target for _, _, target in items]
    return Batch(
        pad([source for _, source, _ in items], value=Tokenizer.PAD),
        pad([[Tokenizer.BOS, *target] for target in targets], value=Tokenizer.PAD),
        pad([[*target, Tokenizer.EOS] for target in targets], value=Tokenizer.PAD),
        [index for index, _, _ in items],
    )


class TranslationJob:
    """What the training loop needs to know of a translator: see `regard.training.Job`.

    Args:
        settings: The config.
        translator: The model and its tokenizers.
        train_pairs: The training data, encoded.
        dev: The development data.

    Raises:
        DataError: No pair of the development data is short enough.
    """

    def __init__(
        self,
        settings: TranslationSettings,
        translator: Translator,
        *,
        train_pairs: Encoded,
        dev: Pairs,
    ) -> None:
        self.settings, self.translator = settings, translator
        self.model: AnySeq2Seq = translator.model
        self.metric: str = settings.metric
        self.higher_is_better = settings.metric != "loss"
        self.data, self.dev = PairDataset(train_pairs), dev
        self.dev_encoded = encode_pairs(dev, translator, limit=settings.data.max_tokens)
        self.identity = _identity(settings, translator, train_pairs.pairs, dev)
        self._lengths = [
            (len(source), len(target) + 1)
            for source, target in zip(train_pairs.sources, train_pairs.targets, strict=True)
        ]
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
        """Count the target tokens that are foretold: a pair of decoders foretells each twice."""
        times = 2 if isinstance(self.model, Seq2SeqPair) else 1
        return times * int((batch.outputs != Tokenizer.PAD).sum())

    def loss(self, batch: Batch) -> Loss:
        """Compute the cross-entropy of a batch, summed over its target tokens."""
        smoothing = self.settings.training.label_smoothing
        return Loss(self._loss(batch, smoothing), {})

    def split(self, batch: Batch) -> tuple[Batch, Batch] | None:
        """Halve a batch."""
        return halves(batch)

    def describe(self, batch: Batch) -> str:
        """Say which pairs a batch holds."""
        places = [self.data.where(index) for index in batch.examples]
        longest = max(batch.source.shape[1], batch.outputs.shape[1])
        return f"{len(places)} pairs of at most {longest} tokens: {first_places(places)}"

    @torch.no_grad()
    def evaluate(self, poll: Callable[[], None]) -> dict[str, float]:
        """Score the development set: loss per token, perplexity, and greedy BLEU and chrF.

        Pairs longer than `max_tokens` are left out, as in training.
        """
        metrics = self._dev_loss(poll)
        if self.metric == "loss":
            return metrics
        written: list[str] = []
        references: list[str] = []
        search = self.translator.search(beam=1, nbest=1)
        for chosen in self._dev_order(lambda i: len(self.dev_encoded.sources[i])):
            poll()
            found = self.translator.hypotheses(
                [self.dev_encoded.sources[i] for i in chosen], search
            )
            written += [
                self.translator.target.decode(one[0].tokens) if one else "" for one in found
            ]
            references += [self.dev.targets[self.dev_encoded.indices[i]] for i in chosen]
        language = self.settings.data.target_language
        scored = text_scores(written, references, language=language)
        return {**metrics, **{score.name: score.score for score in scored}}

    def write(self, folder: Path) -> None:
        """Write settings, tokenizers and a card beside the weights."""
        own = model_settings(self.settings)
        (folder / CONFIG).write_text(own.model_dump_json(indent=1) + "\n", encoding="utf-8")
        self.translator.source.save(folder / SOURCE_TOKENS)
        self.translator.target.save(folder / TARGET_TOKENS)
        (folder / "card.md").write_text(self._card(), encoding="utf-8")

    def _card(self) -> str:
        data, init = self.identity["data"], self.settings.init
        begun = (
            f"\nIt went on from `{init}`, whose card names its data and licence.\n" if init else ""
        )
        return (
            "# Translation model\n\n"
            f"Trained by `regard train` on {len(self.data):,} sentence pairs "
            f"(SHA-256 {data['train']}), chosen on {len(self.dev):,} (SHA-256 {data['dev']}), "
            f"seed {self.settings.training.seed}.\n" + begun
        )

    def _plan(self, epoch: int) -> list[list[int]]:
        own = self.settings.training
        return plan(
            self._lengths,
            tokens=own.batch_tokens,
            seed=own.seed,
            epoch=epoch,
            max_sentences=own.batch_sentences,
        )

    def _loss(self, batch: Batch, smoothing: float) -> Tensor:
        device = self.translator.device
        source = batch.source.to(device, non_blocking=True)
        inputs, outputs = batch.inputs.to(device), batch.outputs.to(device)
        return sequence_loss(
            self.model, source, inputs, outputs, padding=Tokenizer.PAD, smoothing=smoothing
        )

    def _dev_loss(self, poll: Callable[[], None]) -> dict[str, float]:
        total, count = 0.0, 0
        dataset = PairDataset(self.dev_encoded)
        for chosen in self._dev_order(lambda i: len(self.dev_encoded.targets[i])):
            poll()
            batch = collate([dataset[i] for i in chosen])
            total += float(self._loss(batch, 0.0))
            count += self.size(batch)
        loss = total / count
        return {"loss": loss, "perplexity": math.exp(min(loss, 700.0))}

    def _dev_order(self, length: Callable[[int], int]) -> list[list[int]]:
        order = sorted(range(len(self.dev_encoded)), key=length)
        return [order[start : start + _AT_ONCE] for start in range(0, len(order), _AT_ONCE)]


def model_settings(settings: TranslationSettings) -> ModelSettings:
    """Return the part of a config that a model needs after training.

    Args:
        settings: The config; with `init`, its model is the one that is continued from.

    Raises:
        ConfigError: Its way to search does not go with that model.
    """
    table = {
        "task": "translation",
        "source_language": settings.data.source_language,
        "target_language": settings.data.target_language,
        "max_tokens": settings.data.max_tokens,
        "model": settings.model,
        "decoding": settings.decoding,
    }
    return checked(table, ModelSettings, where="config")


def read_pairs(files: str | list[str], settings: DataSettings, *, root: Path) -> Pairs:
    """Read sentence pairs from a table or from two parallel files.

    Args:
        files: One name, or two.
        settings: Columns and encoding.
        root: The folder that relative names start from.

    Returns:
        The pairs.

    Raises:
        ConfigError: There are neither one nor two names.
        DataError: A file is wrong.
    """
    names = [files] if isinstance(files, str) else files
    paths = [root / name for name in names]
    if len(paths) == 2:
        return read_parallel(paths[0], paths[1], encoding=settings.encoding)
    if len(paths) != 1:
        raise ConfigError(
            f"must name one TSV file or two parallel files; got {len(paths)}.", where="data"
        )
    return read_tsv(
        paths[0],
        source_column=settings.source_column,
        target_column=settings.target_column,
        header=settings.header,
        encoding=settings.encoding,
    )


def encode_pairs(pairs: Pairs, translator: Translator, *, limit: int | None) -> Encoded:
    """Turn pairs into ids.

    Args:
        pairs: The pairs.
        translator: Its tokenizers are used.
        limit: Pairs with a longer side are left out; None keeps all.

    Returns:
        The pairs that are kept, and which they are.

    Raises:
        DataError: None is.
    """
    sources, targets, indices = [], [], []
    for index, (source, target) in enumerate(zip(pairs.sources, pairs.targets, strict=True)):
        ids, wanted = translator.source.encode(source).ids, translator.target.encode(target).ids
        if limit is None or max(len(ids), len(wanted)) <= limit:
            sources.append(ids)
            targets.append(wanted)
            indices.append(index)
    if not sources:
        raise DataError(
            f"at least one pair must have at most {limit} tokens; none has. Raise data.max_tokens.",
            where=pairs.file,
        )
    return Encoded(sources, targets, indices, pairs)


def _identity(
    settings: TranslationSettings, translator: Translator, train_pairs: Pairs, dev: Pairs
) -> dict[str, Any]:
    table = comparable(settings, files=("train", "dev", "test"))
    _leave_out_unused(table)
    table["data"].update(train=train_pairs.sha256, dev=dev.sha256)
    table["tokens"] = {"source": translator.source.sha256, "target": translator.target.sha256}
    return table


def _leave_out_unused(table: dict[str, Any]) -> None:
    """Leave out what is as it was before it could be set: runs begun then still go on."""
    plain = DecodingSettings().model_dump(mode="json")
    known = ("beam", "length_penalty", "minimum_length", "maximum_length")
    table["decoding"] = {
        name: value
        for name, value in table["decoding"].items()
        if name in known or value != plain[name]
    }
    model = table["model"]
    for name in ("rescoring", "reinforce"):
        if model[name] == Seq2SeqSettings().model_dump(mode="json")[name]:
            del model[name]
    decoder = {**model["decoder"]}
    for name, value in _NEWER.get(decoder["kind"], {}).items():
        if decoder.get(name) == value:
            del model["decoder"][name]
