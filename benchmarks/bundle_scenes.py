"""Put a captioner that was trained on generated scenes into the package, with its card.

    python benchmarks/bundle_scenes.py FOLDER RUN

FOLDER holds the plain scenes, RUN is one of the runs, as `benchmarks/scenes.py` makes them.
Scores the captioner on the test scenes in float32 and in float16, writes both to
`benchmarks/results/bundle_scenes.json`, and writes `src/regard/bundled/scenes` if half precision
costs no more than 0.1 % of the words.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from bundling import BUNDLED, write_halved
from scenes import COUNTS, SEED, score

from regard.data.captions import read_captions
from regard.data.scene_words import COLOURS, SHAPES
from regard.saving import verify_folder
from regard.training.checkpoint import versions

HERE = Path(__file__).parent
TARGET = BUNDLED / "scenes"
RESULTS = HERE / "results" / "bundle_scenes.json"
CARD = """# Drawn scenes to English, with a look at the picture for every word

Describes small drawings of one or two coloured shapes on a light ground, like those that
`regard new captioning` draws, and shows the cell of the picture that each word comes from. Made
for trying regard out and for looking inside.

- **Knows**: {shapes}; {colours}; left, right, above, below, how many.
- **Does not know**: anything else, three things or small ones among it. Of a photo, a face or
  another drawing it says what coloured shape comes nearest, with no sign of doubt.
- **Model**: a convolutional network with batch normalisation that describes {rows} x {columns}
  cells of a picture resized to 64 x 64, an LSTM (128) that has read the word before when it looks
  (Luong's order), additive score, softmax; {parameters:,} parameters, stored in float16.
- **Data**: {train:,} **generated** scenes (`regard.data.scenes`, seed {data_seed}); nothing was
  taken from anywhere. SHA-256 of the training scenes: {sha256}.
- **{test:,} scenes whose arrangement it has not met** (greedy): {words:.2f} % of the words in their
  place, {captions:.2f} % of the captions whole; for words that name a thing, the cell looked at
  most lies on that thing in {looked:.2f} % of the cases.
- **Licence**: Apache-2.0, weights and code.
- **Made by**: `benchmarks/scenes.py` (soft attention, seed {seed}), `benchmarks/bundle_scenes.py`.
"""


def main() -> None:
    """Score, halve, score again, and write the folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("run", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model = arguments.run / "model"
    verify_folder(model)
    train = read_captions(arguments.folder / "plain", split="train")
    with tempfile.TemporaryDirectory() as folder:
        parameters = write_halved(Path(folder) / "scenes", model, "# Scenes\n")
        report: dict[str, Any] = {
            "command": "python benchmarks/bundle_scenes.py FOLDER RUN",
            "versions": versions(),
            "data": {"train": train.sha256, "scenes": COUNTS, "seed": SEED},
            "float32": score(model, arguments.folder / "plain"),
            "float16": score(Path(folder) / "scenes", arguments.folder / "plain"),
        }
    print(json.dumps(report, indent=1))
    RESULTS.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    found = report["float16"]
    loss = report["float32"]["words"] - found["words"]
    if loss > 0.1:
        raise SystemExit(f"float16 costs {loss:.2f} % of the words; not bundled")
    card = CARD.format(
        shapes=", ".join(shape.plural for shape in SHAPES.values()),
        colours=", ".join(COLOURS),
        rows=8,
        columns=8,
        parameters=parameters,
        train=COUNTS["train"],
        test=COUNTS["test"],
        data_seed=SEED,
        sha256=train.sha256,
        words=found["words"],
        captions=found["captions"],
        looked=found["on the thing"],
        seed=arguments.run.name.rpartition("-")[2],
    )
    write_halved(TARGET, model, card)


if __name__ == "__main__":
    main()
