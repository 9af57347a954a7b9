"""Train a step on documents laid out flat, and on the same padded into a cube.

    python benchmarks/document_layout.py reviews.jsonl

The cube is padded to the longest sentence of the longest document of a batch, as most public code
of hierarchical attention has it. Prints seconds of a training step for both, their ratio, how much
of each is padding, the largest difference of the results, and how much memory a step of ever more
documents takes in a process of its own; writes `benchmarks/results/document_layout.json`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from regard.data.documents import Document, encode_document
from regard.data.labelled import DocumentColumns, read_documents
from regard.data.tokens import Tokenizer
from regard.models.documents import DocumentModel, DocumentModelSettings, build_document_model
from regard.models.ragged import buckets

RESULTS = Path(__file__).parent / "results" / "document_layout.json"
DOCUMENTS = 32  # of a batch
ROUNDS = 3
SIZES = (8, 16, 32, 64)  # of batches whose memory is measured


class Batch(NamedTuple):
    """Documents, flat and as a cube."""

    tokens: Tensor
    words: Tensor
    sentences: Tensor
    cells: Tensor
    real: Tensor


def laid_out(documents: Sequence[Document]) -> Batch:
    """Lay documents out both ways."""
    counts = [[len(sentence.ids) for sentence in one.sentences] for one in documents]
    longest, widest = max(map(len, counts)), max(max(own, default=0) for own in counts)
    cells = torch.zeros(len(documents), longest, widest, dtype=torch.int64)
    real = torch.zeros_like(cells, dtype=torch.bool)
    for d, document in enumerate(documents):
        for s, sentence in enumerate(document.sentences):
            cells[d, s, : len(sentence.ids)] = torch.tensor(sentence.ids)
            real[d, s, : len(sentence.ids)] = True
    words = torch.tensor([count for own in counts for count in own])
    return Batch(cells[real], words, torch.tensor([len(own) for own in counts]), cells, real)


def flat(model: DocumentModel, batch: Batch) -> Tensor:
    """Read a batch as it is read."""
    logits: Tensor = model(batch.tokens, batch.words, batch.sentences).logits
    return logits


def cube(model: DocumentModel, batch: Batch) -> Tensor:
    """Read a batch as a padded cube; every sentence has a word."""
    mask = batch.real.flatten(0, 1)
    states = model.words.encoder(batch.cells.flatten(0, 1), mask).memory
    vectors = model.words.pooling(states, mask).context.unflatten(0, batch.real.shape[:2])
    there = batch.real.any(dim=2)
    pooled = model.sentences.pooling(model.sentences.encoder(vectors, there).memory, there)
    logits: Tensor = model.output(model.dropout(pooled.context))
    return logits


def seconds(
    read: Callable[[DocumentModel, Batch], Tensor], model: DocumentModel, batches: list[Batch]
) -> float:
    """Time forward and backward of all batches."""
    begun = time.perf_counter()
    for batch in batches:
        model.zero_grad()
        read(model, batch).square().sum().backward()
    return time.perf_counter() - begun


LAYOUTS = {"flat": flat, "cube": cube}


def peak(layout: str, words: int, batch: Batch) -> float:
    """Take a step in a process of its own; return by how many MB its memory rose at the most."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    settings = DocumentModelSettings(dropout=0.0)
    model = build_document_model(settings, words=words, labels=2, padding=0)
    before = status("VmRSS")
    LAYOUTS[layout](model, batch).square().sum().backward()
    return status("VmHWM") - before


def status(name: str) -> float:
    """Read a size of this process, in MB; the kernel's `ru_maxrss` would be that of the parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def memory(documents: Sequence[Document], words: int) -> dict[str, dict[str, float]]:
    """Measure the memory of batches of different size."""
    rows: dict[str, dict[str, float]] = {}
    for count in SIZES:
        batch = laid_out(documents[:count])
        row = {"words": float(len(batch.tokens)), "cells of the cube": float(batch.cells.numel())}
        for layout in LAYOUTS:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                row[f"{layout} MB"] = round(pool.apply(peak, (layout, words, batch)), 1)
        rows[f"{count} documents"] = row
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="labelled documents")
    parser.add_argument("--label", type=int, default=None)
    parser.add_argument("--text", type=int, default=None)
    parser.add_argument("--batches", type=int, default=8)
    own = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    found = read_documents(own.file, columns=DocumentColumns(own.text, own.label)).without_blank()
    order = torch.randperm(len(found))[: own.batches * DOCUMENTS].tolist()
    found = found.select(order)
    tokenizer = Tokenizer.train(found.texts, kind="words", lowercase=True, minimum_frequency=2)
    documents = [encode_document(tokenizer, text) for text in found.texts]
    batches = [laid_out(documents[i : i + DOCUMENTS]) for i in range(0, len(documents), DOCUMENTS)]
    settings = DocumentModelSettings(dropout=0.0)
    model = build_document_model(settings, words=tokenizer.size, labels=2, padding=0)
    with torch.no_grad():
        gap = max(float((flat(model, b) - cube(model, b)).abs().max()) for b in batches)
    times = {"flat": [], "cube": []}
    for _ in range(ROUNDS):  # in turns, so that the machine's mood is shared
        times["flat"].append(seconds(flat, model, batches))
        times["cube"].append(seconds(cube, model, batches))
    best = {name: min(values) / len(batches) for name, values in times.items()}
    words = sum(len(b.tokens) for b in batches)
    bucketed = sum(bucket.mask.numel() for b in batches for bucket in buckets(b.words))
    report = {
        "command": "python benchmarks/document_layout.py FILE",
        "data": {"documents": len(found), "words": words, "sha256": found.sha256},
        "versions": {"torch": torch.__version__},
        "seconds of a step": best,
        "times faster": best["cube"] / best["flat"],
        "cells for each word": {
            "flat": bucketed / words,
            "cube": sum(b.cells.numel() for b in batches) / words,
        },
        "largest difference": gap,
        "memory of a step": memory(documents, tokenizer.size),
    }
    print(json.dumps(report, indent=1))
    RESULTS.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
