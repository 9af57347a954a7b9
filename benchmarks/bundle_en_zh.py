"""Put a trained English-Chinese model into the package, in half precision, with its card.

    python benchmarks/bundle_en_zh.py DATA RUN

Scores the model on the test set in float32 and in float16, writes both figures and those of the
grammar's sentences to `benchmarks/results/bundle_en_zh.json`, and writes `src/regard/bundled/en-zh`
if half precision costs no more than 0.05 BLEU.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch
from tatoeba import GENERATED, held_out

from regard.data.grammar import Example, Grammar
from regard.data.text import Pairs, read_tsv
from regard.saving import load_tensors, save_tensors, verify_folder, write_folder
from regard.tasks import load
from regard.tasks.metrics import text_scores
from regard.tasks.translation import Translation, Translator
from regard.training.checkpoint import MODEL, versions

HERE = Path(__file__).parent
TARGET = HERE.parent / "src" / "regard" / "bundled" / "en-zh"
RESULTS = HERE / "results" / "bundle_en_zh.json"
CARD = """# English to Chinese, by words, with additive attention

Translates short everyday English sentences into simplified Chinese and shows which word came from
which. Made for trying regard out and for looking inside; it is small and makes mistakes.

- **Model**: bidirectional GRU encoder (2 x 256), GRU decoder (256) that looks after each step
  (Luong's order), additive score (Bahdanau's), tied output; words on both sides, characters for
  unknown words; {parameters:,} parameters, stored in float16.
- **Data**: {train:,} sentence pairs. {tatoeba:,} are from Tatoeba by way of manythings.org,
  licence CC BY 2.0 FR, with thanks to Tatoeba's contributors (tatoeba.org). {generated:,} are
  **generated** by the grammar in `regard.data.grammar`, because neither "Jerry" nor 追逐 occurs in
  Tatoeba. SHA-256 of the training pairs: {sha256}.
- **Held-out Tatoeba** ({pairs:,} pairs, split by a hash of the English side): BLEU {greedy} greedy,
  {beam} with beam 5 ({signature}); chrF {chrf} with beam 5.
- **"Tom chases Jerry" sentences** of the grammar ({grid:,}: every person, verb and other person,
  in two forms; {held_out:,} of them held out of training): {text} % translated exactly
  ({text_held} % of those held out), and in {looked} % of these every name and verb looks most at
  its own word.
- **Not for**: long sentences, names and words it has not seen, anything that matters.
- **Licence**: the weights, CC BY 2.0 FR as the data; the code, Apache-2.0.
- **Made by**: `benchmarks/tatoeba.py`, `benchmarks/en_zh.py` (system "bundled", seed {seed}),
  `benchmarks/bundle_en_zh.py`.
"""


def looks_right(example: Example, result: Translation) -> bool:
    """Say whether every aligned word looks most at its own word."""
    best = result.record.weights().argmax(axis=1)
    if len(result.tokens) != len(example.target_words):
        return False
    spans, place = [], 0
    for word in example.source_words:
        place = example.source.index(word, place)
        spans.append((place, place + len(word)))
        place += len(word)
    tokens = result.record.read.tokens
    return all(
        spans[source][0] <= tokens[int(best[target])].start < spans[source][1]
        for source, target in example.sure
    )


def score(translator: Translator, test: Pairs) -> dict[str, Any]:
    """Score a model on the test set, greedily and with beam 5."""
    row: dict[str, Any] = {}
    for name, beam in (("greedy", 1), ("beam 5", 5)):
        written = [result.text for result in translator(test.sources, beam=beam)]
        for one in text_scores(written, test.targets, language="zh"):
            row[f"{one.name} {name}"] = round(one.score, 2)
            row[f"{one.name} signature"] = one.signature
    return row


def score_grid(translator: Translator) -> dict[str, float]:
    """Translate every person, verb and other person; score the text and the looks."""
    grammar = Grammar()
    examples, unseen = grammar.transitive_grid(), held_out(grammar)
    results = translator([example.source for example in examples], batch_size=256)
    rows = [
        (example.source in unseen, result.text == example.target, looks_right(example, result))
        for example, result in zip(examples, results, strict=True)
    ]
    for example, row, result in zip(examples, rows, results, strict=True):
        if not row[1]:
            print("wrong:", example.source, result.text)
        elif not row[2]:
            print("looks elsewhere:", example.source, result.text)
    right = [row for row in rows if row[1]]
    return {
        "sentences": len(rows),
        "held out": sum(row[0] for row in rows),
        "text": round(100 * len(right) / len(rows), 2),
        "text of held out": round(100 * sum(r[0] for r in right) / sum(r[0] for r in rows), 2),
        "looks right": round(100 * sum(row[2] for row in right) / len(right), 2),
    }


def main() -> None:
    """Score, halve, score again, and write the folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("run", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model = arguments.run / "model"
    verify_folder(model)
    train, test = (read_tsv(arguments.data / f"{part}.tsv") for part in ("train", "test"))
    full = load(model, device="cpu")
    halves = {name: tensor.half() for name, tensor in load_tensors(model / MODEL).items()}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "en-zh"
        _write(place, model, halves, card="# English to Chinese\n")
        half = load(place, device="cpu")
        report = {
            "command": "python benchmarks/bundle_en_zh.py DATA RUN",
            "versions": versions(),
            "data": {"train": train.sha256, "test": test.sha256},
            "float32": score(full, test),
            "float16": score(half, test),
            "grammar": score_grid(half),
        }
    print(json.dumps(report, indent=1))
    RESULTS.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    loss = report["float32"]["bleu beam 5"] - report["float16"]["bleu beam 5"]
    if loss > 0.05:
        raise SystemExit(f"float16 costs {loss:.2f} BLEU; not bundled")
    parameters = sum(tensor.numel() for tensor in halves.values())
    _write(TARGET, model, halves, card=_card(report, parameters, (train, test), arguments.run))


def _card(report: dict[str, Any], parameters: int, data: tuple[Pairs, Pairs], run: Path) -> str:
    train, test = data
    generated = GENERATED  # benchmarks/tatoeba.py appends them
    scores, grammar = report["float16"], report["grammar"]
    return CARD.format(
        parameters=parameters,
        train=len(train),
        tatoeba=len(train) - generated,
        generated=generated,
        sha256=train.sha256,
        pairs=len(test),
        greedy=scores["bleu greedy"],
        beam=scores["bleu beam 5"],
        chrf=scores["chrf beam 5"],
        signature=scores["bleu signature"],
        grid=grammar["sentences"],
        held_out=grammar["held out"],
        text=grammar["text"],
        text_held=grammar["text of held out"],
        looked=grammar["looks right"],
        seed=run.name.rpartition("-")[2],
    )


def _write(target: Path, model: Path, tensors: dict[str, torch.Tensor], *, card: str) -> None:
    def fill(folder: Path) -> None:
        for name in ("config.json", "tokenizer.source.json", "tokenizer.target.json"):
            shutil.copyfile(model / name, folder / name)
        save_tensors(folder / MODEL, tensors)
        (folder / "card.md").write_text(card, encoding="utf-8")

    write_folder(target, fill, versions=versions(), overwrite=True)


if __name__ == "__main__":
    main()
