"""What `regard train`, `evaluate`, `check` and `new` do for translators."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from regard.config import checked, read_config
from regard.data.grammar import Grammar
from regard.data.text import Pairs, overlap
from regard.data.tokens import Tokenizer
from regard.errors import UserError
from regard.models.rescoring import build_model
from regard.saving import make_room, write_file
from regard.tasks.base import TaskKind, choose_device, open_model
from regard.tasks.metrics import Scored, require_sacrebleu, text_scores
from regard.tasks.runs import run_data, set_up, train_run
from regard.tasks.settings import learn_tokenizer
from regard.tasks.translation import Translator, load_translator
from regard.tasks.translation_job import TranslationJob, encode_pairs, model_settings, read_pairs
from regard.tasks.translation_settings import DataSettings, TranslationSettings
from regard.training.loop import Outcome, RunOptions


def train_translation(path: Path, changes: Sequence[str], options: RunOptions) -> Outcome:
    """Train a translator from a config.

    Args:
        path: The config.
        changes: `key=value` pairs that replace what it says.
        options: Folder, resuming, and what may have changed.

    Returns:
        Where the model is and how it scores.

    Raises:
        RegardError: Any of those that `regard.training.train` and reading data raise.
    """
    settings = read_config(path, TranslationSettings, changes=changes)
    if settings.metric != "loss":
        require_sacrebleu()
    job = build_job(settings, root=path.parent)
    return train_run(job, settings, options, root=path.parent)


def build_job(settings: TranslationSettings, *, root: Path) -> TranslationJob:
    """Read the data, learn or take over the tokenizers, and build the model.

    Args:
        settings: The config.
        root: The folder that relative names start from.

    Returns:
        The job, ready to be trained.

    Raises:
        RegardError: The data or a setting is wrong.
    """
    own = settings.training
    set_up(own)
    pairs = read_pairs(settings.data.train, settings.data, root=root)
    dev = read_pairs(settings.data.dev, settings.data, root=root)
    device = choose_device(own.device)
    if settings.init is not None:
        known = _known(settings, root, device)
        settings = settings.model_copy(update={"model": known.settings.model})
        own_settings = model_settings(settings)
        translator = Translator(known.model, known.source, known.target, own_settings)
    else:
        translator = _fresh(settings, pairs, device)
    encoded = encode_pairs(pairs, translator, limit=settings.data.max_tokens)
    return TranslationJob(settings, translator, train_pairs=encoded, dev=dev)


def _known(settings: TranslationSettings, root: Path, device: torch.device) -> Translator:
    """Load the model to continue from, and say what of the config does not count then."""
    name = settings.init or ""
    inside = root / name
    try:
        known = load_translator(open_model(inside if inside.is_dir() else name), device)
    except UserError as error:
        raise UserError(str(error), where="init") from error
    ignored = [part for part in ("tokens", "model") if part in settings.model_fields_set]
    if ignored:
        warnings.warn(
            f"init: {' and '.join(ignored)} of the config are not used: those of {name} are",
            stacklevel=3,
        )
    for side in ("source_language", "target_language"):
        own, other = getattr(settings.data, side), getattr(known.settings, side)
        if own and other and own != other:
            warnings.warn(f"init: {side} is {own}, that of {name} is {other}", stacklevel=3)
    return known


def _fresh(settings: TranslationSettings, pairs: Pairs, device: torch.device) -> Translator:
    source = learn_tokenizer(pairs.sources, settings.tokens.source)
    target = learn_tokenizer(pairs.targets, settings.tokens.target)
    model = build_model(
        settings.model, source_size=source.size, target_size=target.size, padding=Tokenizer.PAD
    )
    return Translator(model.to(device), source, target, model_settings(settings))


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How a translator scores on sentence pairs.

    Args:
        scores: BLEU and chrF, with sacrebleu's signatures.
        written: The translations, in the order of the pairs.
        pairs: The pairs.
    """

    scores: list[Scored]
    written: list[str]
    pairs: Pairs

    def table(self) -> dict[str, Any]:
        """Return what a program wants to know."""
        scores = {one.name: {"score": one.score, "signature": one.signature} for one in self.scores}
        return {**scores, "pairs": len(self.pairs), "sha256": self.pairs.sha256}

    def lines(self) -> list[str]:
        """Say it to a person, a line for each score."""
        scores = [f"{one.name:<5} {one.score:6.2f}   {one.signature}" for one in self.scores]
        return [*scores, f"pairs {len(self.pairs):6}   SHA-256 {self.pairs.sha256}"]


def evaluate_translation(
    model: str,
    files: Sequence[str],
    *,
    beam: int | None = None,
    device: str = "auto",
    reading: Mapping[str, Any] | None = None,
) -> Evaluation:
    """Translate the sources of sentence pairs and score the result.

    Args:
        model: A run's folder, a model's folder, or a bundled name.
        files: A TSV file, or two parallel files; none for the test files of the run's config.
        beam: How many hypotheses are kept; by default the model's.
        device: Where to run.
        reading: Fields of `DataSettings` (columns, header, encoding) that replace the run's.

    Returns:
        Scores and translations.

    Raises:
        UserError: There are no files, or one is wrong.
        MissingExtraError: sacrebleu is not installed.
    """
    require_sacrebleu()
    opened = open_model(model)
    pairs = _test_pairs(model, files, reading or {})
    translator = load_translator(opened, choose_device(device))
    written = [result.text for result in translator(pairs.sources, beam=beam)]
    language = translator.settings.target_language
    return Evaluation(text_scores(written, pairs.targets, language=language), written, pairs)


def _test_pairs(model: str, files: Sequence[str], reading: Mapping[str, Any]) -> Pairs:
    data, root = run_data(Path(model), DataSettings, DataSettings(train="", dev=""))
    data = checked({**data.model_dump(), **reading}, DataSettings, where="evaluate")
    if files:
        return read_pairs(list(files), data, root=Path())
    if data.test is None:
        raise UserError(
            "needs files: a TSV file or two parallel files; this model names no test files.",
            where="evaluate",
        )
    return read_pairs(data.test, data, root=root)


def check_translation(path: Path, changes: Sequence[str]) -> list[str]:
    """Check a config and its data without training.

    Args:
        path: The config.
        changes: `key=value` pairs that replace what it says.

    Returns:
        What was found, line by line; lines about something doubtful begin with "warning: ".

    Raises:
        UserError: Something is wrong that would stop a training.
    """
    settings = read_config(path, TranslationSettings, changes=changes)
    if settings.metric != "loss":
        require_sacrebleu()
    job = build_job(settings, root=path.parent)
    train_pairs = job.data.encoded.pairs
    lines = [_described("train", train_pairs), _described("dev", job.dev)]
    for name, encoded in (("train", job.data.encoded), ("dev", job.dev_encoded)):
        left_out = len(encoded.pairs) - len(encoded)
        if left_out:
            limit = settings.data.max_tokens
            lines.append(f"warning: {left_out} pairs of {name} have more than {limit} tokens")
    lines += _leaks("dev", train_pairs, job.dev)
    if settings.data.test is not None:
        test = read_pairs(settings.data.test, settings.data, root=path.parent)
        lines.append(_described("test", test))
        lines += _leaks("test", train_pairs, test)
        lines += ["warning: test is dev"] if test.sha256 == job.dev.sha256 else []
    sizes = f"{job.translator.source.size} source and {job.translator.target.size} target tokens"
    count = sum(parameter.numel() for parameter in job.model.parameters())
    return [*lines, f"model: {count:,} parameters, {sizes}; {job.steps(0)} steps an epoch"]


def _described(name: str, pairs: Pairs) -> str:
    dropped = f"{pairs.dropped_empty} blank and {pairs.dropped_long} overlong pairs left out"
    return f"{name}: {len(pairs):,} pairs, {dropped}, SHA-256 {pairs.sha256[:16]}"


def _leaks(name: str, train_pairs: Pairs, other: Pairs) -> list[str]:
    shared = overlap(train_pairs, other)
    counts = {"pairs": shared.pairs, "sources": shared.sources, "targets": shared.targets}
    return [
        f"warning: {count} of {shared.total} {kind} of {name} are in train"
        for kind, count in counts.items()
        if count
    ]


_CONFIG = """\
# A translator for the sentences that `regard new translation` wrote beside this file.
# Train it:     regard train {name}
# Change it:    regard train {name} training.epochs=20 model.decoder.order=bahdanau
# Use it:       regard translate --model runs/{run} "Tom chases Jerry"
# Another kind: regard train {name} "model.decoder={{kind='transformer', layers=2}}"
task = "translation"

[data]
train = "train.tsv"        # or ["train.en", "train.zh"]
dev = "dev.tsv"
test = "test.tsv"
source_language = "en"
target_language = "zh"

[tokens.source]
kind = "words"             # words, chinese, characters, bpe or unigram

[tokens.target]
kind = "chinese"

[model]
embedding_dim = 128
dropout = 0.2

[model.encoder]
kind = "gru"               # rnn, gru, lstm, convolution, transformer or embedding
hidden_dim = 128
bidirectional = true

[model.decoder]
kind = "gru"               # rnn, gru, lstm, convolution or transformer
hidden_dim = 128
order = "luong"            # bahdanau, luong, input_feeding or none
attention = "additive"     # a score of `regard list mechanisms`, or none
selection = "softmax"      # a selection of the same list
attention_dim = 128

[training]
epochs = 10
batch_tokens = 256
learning_rate = 0.003
label_smoothing = 0.0
"""


def new_translation(folder: Path, *, overwrite: bool = False) -> list[Path]:
    """Write a config and generated sentence pairs, whose true alignment is known.

    Args:
        folder: Where to write; made where it does not exist.
        overwrite: Whether files that exist may be replaced.

    Returns:
        The files: the config, three TSV files, and the true alignment of the test pairs.

    Raises:
        UserError: A file exists already, or the folder's name is that of a file.
        EnvironmentFault: The folder cannot be made.
    """
    examples = Grammar().sample(6400, seed=1)
    parts = {"train": examples[:6000], "dev": examples[6000:6200], "test": examples[6200:]}
    config = str(folder / "config.toml")
    name, run = (config, folder.resolve().name) if config.isprintable() else ("config.toml", "NAME")
    files = {"config.toml": _CONFIG.format(name=name, run=run)}
    for name, part in parts.items():
        files[f"{name}.tsv"] = "".join(f"{one.source}\t{one.target}\n" for one in part)
    files["test.alignment.txt"] = "".join(_pharaoh(one.sure, one.possible) for one in parts["test"])
    make_room([folder / name for name in files], overwrite=overwrite)
    for name, text in files.items():
        write_file(folder / name, text)
    return [folder / name for name in files]


def _pharaoh(sure: frozenset[tuple[int, int]], possible: frozenset[tuple[int, int]]) -> str:
    links = [f"{s}-{t}" if (s, t) in sure else f"{s}p{t}" for s, t in sorted(possible)]
    return " ".join(links) + "\n"


TASK = TaskKind(
    name="translation",
    summary="Text in one language in, text in another out.",
    load=load_translator,
    train=train_translation,
    evaluate=evaluate_translation,
    check=check_translation,
    new=new_translation,
)
