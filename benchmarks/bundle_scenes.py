"""Put a captioner of generated scenes into the package, in half precision, with its card.

    python benchmarks/bundle_scenes.py FOLDER RUN

FOLDER is that of `benchmarks/scenes.py data`, RUN one of its runs. Writes
`src/regard/bundled/scenes` and `benchmarks/results/bundle_scenes.json` if half precision costs no
more than 0.1 % of the words.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path

import torch
from scenes import COUNTS, score

from regard.data.captions import read_captions
from regard.saving import load_tensors, save_tensors, verify_folder, write_folder
from regard.training.checkpoint import MODEL, versions

HERE = Path(__file__).parent
TARGET = HERE.parent / "src" / "regard" / "bundled" / "scenes"
RESULTS = HERE / "results" / "bundle_scenes.json"
CARD = """# Drawn scenes to English: what stands where, and where it looked

Describes drawings of one to three coloured shapes, as `regard.data.scenes` draws them ("a red star
left of an orange circle"), and shows which part of the picture each word came from. Made for trying
regard out: **it can describe nothing else**, and says something about shapes whatever it is shown.

- **Model**: a small convolutional network (8 x 8 cells of a picture of 64 x 64 pixels), an LSTM
  (128) that looks before each word (Bahdanau's order), additive score; {parameters:,} parameters,
  stored in float16.
- **Data**: {train:,} scenes **generated** by `regard.data.scenes` (seed 1): 8 colours, 7 shapes.
  SHA-256 of the captioned pictures: {sha256}.
- **On {test:,} scenes whose arrangement it has not seen**: {words:.2f} % of the words in their
  place, {captions:.2f} % of the captions whole; for words that name a colour or a shape the cell
  looked at most lies on that thing {thing:.2f} % of the time, its centre within its box
  {centre:.2f} %.
- **Licence**: Apache-2.0, as the code; no one else's data was used.
- **Made by**: `benchmarks/scenes.py data`, `benchmarks/scenes.py train` (soft, seed {seed}),
  `benchmarks/bundle_scenes.py`.
"""


def main() -> None:
    """Round the weights, score both, and write the bundled model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("run", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    source = arguments.run / "model"
    verify_folder(source)
    full = score(arguments.run, arguments.folder)
    with tempfile.TemporaryDirectory() as scratch:
        rounded = Path(scratch) / "run"
        tensors = load_tensors(source / MODEL)
        halves = {
            name: tensor.half() if tensor.is_floating_point() else tensor
            for name, tensor in tensors.items()
        }
        names = ("config.json", "tokenizer.json")

        def fill(folder: Path) -> None:
            for name in names:
                shutil.copy(source / name, folder / name)
            save_tensors(folder / MODEL, halves)
            (folder / "card.md").write_text(card, encoding="utf-8")

        card = "# Scenes\n"
        write_folder(rounded / "model", fill, versions=versions())
        half = score(rounded, arguments.folder)
        print("float32", full, "\nfloat16", half)
        if full["words"] - half["words"] > 0.1:
            raise SystemExit("half precision costs too much")
        train = read_captions(arguments.folder / "scenes", split="train")
        card = CARD.format(
            parameters=sum(tensor.numel() for tensor in tensors.values()),
            train=COUNTS["train"],
            test=COUNTS["test"],
            sha256=train.sha256,
            words=half["words"],
            captions=half["captions"],
            thing=half["on the thing"],
            centre=half["centre in its box"],
            seed=arguments.run.name.rpartition("-")[2],
        )
        write_folder(TARGET, fill, versions=versions(), overwrite=True)
    report = {
        "command": "python benchmarks/bundle_scenes.py FOLDER RUN",
        "float32": full,
        "float16": half,
        "versions": {"torch": torch.__version__},
    }
    RESULTS.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
