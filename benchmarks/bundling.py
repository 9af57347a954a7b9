"""Write a model into the package: half precision, a card, and what its folder needs."""

from __future__ import annotations

import shutil
from pathlib import Path

from regard.saving import load_tensors, save_tensors, write_folder
from regard.training.checkpoint import MODEL, versions

BUNDLED = Path(__file__).parent.parent / "src" / "regard" / "bundled"


def write_halved(target: Path, model: Path, card: str) -> int:
    """Write a model in half precision; return how many parameters it has."""
    tensors = load_tensors(model / MODEL)
    halves = {n: t.half() if t.is_floating_point() else t for n, t in tensors.items()}

    def fill(folder: Path) -> None:
        for name in ("config.json", "tokenizer.json"):
            shutil.copyfile(model / name, folder / name)
        save_tensors(folder / MODEL, halves)
        (folder / "card.md").write_text(card, encoding="utf-8")

    write_folder(target, fill, versions=versions(), overwrite=True)
    learnt = [n for n in halves if not n.endswith(("running_mean", "running_var", "_tracked"))]
    return sum(halves[name].numel() for name in learnt)
