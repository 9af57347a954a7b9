"""From files to batches: text, tokens, pictures, generated problems and deterministic batches.

Names load when they are touched, so that reading text brings in neither torch nor jieba, and
reading pictures no torch.
"""

from __future__ import annotations

import importlib

_NAMES = {
    "ALGORITHMS": "regard.data.algorithmic",
    "Algorithm": "regard.data.algorithmic",
    "CaptionColumns": "regard.data.captions",
    "CaptionedImages": "regard.data.captions",
    "DecidedScene": "regard.data.deciding",
    "DecidingScenes": "regard.data.deciding",
    "Document": "regard.data.documents",
    "DocumentColumns": "regard.data.labelled",
    "Documents": "regard.data.labelled",
    "Encoding": "regard.data.tokens",
    "Example": "regard.data.grammar",
    "FeatureCache": "regard.data.features",
    "Features": "regard.data.features",
    "Framed": "regard.data.framing",
    "Grammar": "regard.data.grammar",
    "ImageReport": "regard.data.checking",
    "LabelColumns": "regard.data.labelled_images",
    "LabelledImages": "regard.data.labelled_images",
    "Pairs": "regard.data.text",
    "Planted": "regard.data.planted",
    "PlantedDocument": "regard.data.planted",
    "Problem": "regard.data.algorithmic",
    "Scene": "regard.data.scenes",
    "Scenes": "regard.data.scenes",
    "Sentence": "regard.data.documents",
    "Sequences": "regard.data.series",
    "SeriesColumns": "regard.data.series",
    "Table": "regard.data.tables",
    "Tokenizer": "regard.data.tokens",
    "as_sequences": "regard.data.series",
    "best_grid": "regard.data.framing",
    "bit_loss": "regard.data.algorithmic",
    "bits_wrong": "regard.data.algorithmic",
    "centre_crop": "regard.data.framing",
    "check_images": "regard.data.checking",
    "cut": "regard.data.framing",
    "decode_image": "regard.data.images",
    "describe": "regard.data.scene_words",
    "encode_document": "regard.data.documents",
    "image_overlap": "regard.data.checking",
    "leave_out_bad": "regard.data.checking",
    "letterbox": "regard.data.framing",
    "loader": "regard.data.batches",
    "open_image": "regard.data.images",
    "overlap": "regard.data.text",
    "overlap_share": "regard.data.framing",
    "packed_plan": "regard.data.batches",
    "pad": "regard.data.batches",
    "plan": "regard.data.batches",
    "read_captions": "regard.data.captions",
    "read_deciding": "regard.data.deciding",
    "read_documents": "regard.data.labelled",
    "read_evidence": "regard.data.planted",
    "read_labelled_images": "regard.data.labelled_images",
    "read_lines": "regard.data.text",
    "read_parallel": "regard.data.text",
    "read_regions": "regard.data.scenes",
    "read_sequences": "regard.data.series",
    "read_table": "regard.data.table_files",
    "read_tsv": "regard.data.text",
    "read_vectors": "regard.data.vectors",
    "shared_images": "regard.data.checking",
    "write_deciding": "regard.data.deciding",
    "write_planted": "regard.data.planted",
    "write_scenes": "regard.data.scenes",
}

__all__ = sorted(_NAMES)  # noqa: PLE0605 - the table is the list


def __getattr__(name: str) -> object:
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'regard.data' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
