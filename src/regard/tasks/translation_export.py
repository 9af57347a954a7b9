"""A translator as two ONNX graphs: its encoder, and one step of its decoder."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.data.tokens import Tokenizer
from regard.errors import MissingExtraError, UserError
from regard.models.exporting import EncoderGraph, PrefixGraph, StepGraph, graphs
from regard.models.seq2seq import Seq2Seq
from regard.saving import write_folder
from regard.tasks.translation import SOURCE_TOKENS, TARGET_TOKENS, Translator

FORMAT_VERSION = 1
ENCODER, STEP, NAMES = "encoder.onnx", "step.onnx", "export.json"
_SAMPLES = ((2, 7), (3, 9))  # batches and lengths, by which the axes that vary are seen

Tensors = tuple[Tensor, ...]
_Names = tuple[tuple[str, ...], tuple[str, ...]]  # of what goes in, and of what comes out


def export_translator(translator: Translator, folder: Path, *, overwrite: bool = False) -> None:
    """Write a translator as ONNX: encoder, one step of the decoder, tokenizers, names.

    Both graphs take any batch and any length; padding is masked. `export.json` says in which order
    tensors go in and come out, and which token begins and ends a sentence. Greedy decoding is to
    call the encoder once, then the step with the begin token and with what it said likeliest,
    until that is the end token.

    Args:
        translator: The translator, on any device; it is written for float32.
        folder: Where to write.
        overwrite: Whether a folder that regard wrote may be replaced.

    Raises:
        UserError: It is a pair of models that rescore each other.
        MechanismError: The attention depends on earlier steps, or draws.
        MissingExtraError: The extra `onnx` is not installed.
    """
    _require_onnx()
    model = translator.model
    if not isinstance(model, Seq2Seq):
        raise UserError(
            f"model must be one encoder and one decoder to be exported; got a "
            f"{type(model).__name__}. Export a model that was trained without rescoring."
        )
    samples = [_sample(translator, *sizes) for sizes in _SAMPLES]
    encoder, step = graphs(model, *samples[0])

    def fill(written: Path) -> None:
        _write(encoder, samples, written / ENCODER, _encoder_names(encoder))
        inputs = [_step_inputs(encoder, step, *sample) for sample in samples]
        names = _step_names(encoder, step)
        _write(step, inputs, written / STEP, names)
        translator.source.save(written / SOURCE_TOKENS)
        translator.target.save(written / TARGET_TOKENS)
        said = _said(translator, encoder, names, cached=isinstance(step, StepGraph))
        (written / NAMES).write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")

    versions = {"torch": torch.__version__, "onnx": version("onnx")}
    write_folder(folder, fill, versions=versions, overwrite=overwrite)


def _sample(translator: Translator, batch: int, keys: int) -> Tensors:
    """Make source tokens and a mask, the last row the shortest."""
    device = translator.device
    source = torch.full((batch, keys), Tokenizer.UNK, device=device)
    lengths = torch.arange(keys, keys - batch, -1, device=device)
    return source, torch.arange(keys, device=device) < lengths.unsqueeze(1)


def _encoder_names(encoder: EncoderGraph) -> _Names:
    return ("source", "mask"), encoder.names


def _step_names(encoder: EncoderGraph, step: StepGraph | PrefixGraph) -> _Names:
    if isinstance(step, PrefixGraph):
        return ("tokens", "mask", *encoder.names), ("log_probs", "weights")
    after = tuple(f"{name}_after" for name in step.layout.changing)
    return ("token", "mask", *encoder.names), ("log_probs", "weights", *after)


def _step_inputs(
    encoder: EncoderGraph, step: StepGraph | PrefixGraph, source: Tensor, mask: Tensor
) -> Tensors:
    with torch.no_grad():
        made: Tensors = encoder(source, mask)
    batch, keys = source.shape
    size = (batch, keys - 2) if isinstance(step, PrefixGraph) else (batch,)
    return source.new_full(size, Tokenizer.BOS), mask, *made


def _said(
    translator: Translator, encoder: EncoderGraph, names: _Names, *, cached: bool
) -> dict[str, Any]:
    settings = translator.settings
    inputs, outputs = _encoder_names(encoder)
    return {
        "format_version": FORMAT_VERSION,
        "task": "translation",
        "source_language": settings.source_language,
        "target_language": settings.target_language,
        "max_tokens": settings.max_tokens,
        "begin": Tokenizer.BOS,
        "end": Tokenizer.EOS,
        "padding": Tokenizer.PAD,
        "encoder": {"inputs": inputs, "outputs": outputs},
        "step": {"inputs": names[0], "outputs": names[1], "reads_all_tokens": not cached},
    }


def _write(graph: nn.Module, samples: list[Tensors], path: Path, names: _Names) -> None:
    """Write a graph in one file, for any batch and length.

    Which axes vary is seen from two samples. The exporter takes the lengths behind a recurrent
    layer for fixed, though nothing in the graph rests on them: they are named after it.
    """
    dynamic = torch.export.Dim.DYNAMIC
    shapes = [dict.fromkeys(axes, dynamic) for axes in _varying(samples)]
    given = (*shapes[:2], tuple(shapes[2:])) if isinstance(graph, StepGraph) else tuple(shapes)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # nobody asked for torchvision
    graph.eval()
    with warnings.catch_warnings(), torch.no_grad(), _looked_up_anew():
        warnings.simplefilter("ignore")
        outputs = [graph(*sample) for sample in samples]
        program = torch.onnx.export(
            graph,
            samples[0],
            input_names=names[0],
            output_names=names[1],
            dynamic_shapes=given,
            dynamo=True,
            verbose=False,
        )
    if program is None:
        raise UserError("model must be exportable; got no graph. Export another model.")
    proto: Any = program.model_proto
    del proto.graph.value_info[:]
    for values, several in ((proto.graph.input, samples), (proto.graph.output, outputs)):
        for value, axes in zip(values, _varying(several), strict=True):
            for axis in axes:
                dim = value.type.tensor_type.shape.dim[axis]
                dim.dim_param = "batch" if axis == 0 else _length(value.name)
    path.write_bytes(proto.SerializeToString())


@contextmanager
def _looked_up_anew() -> Iterator[None]:
    """Let PyTorch find what its recurrent operators are made of, before an export and after.

    For the time of an export it lends them loops, but what was looked up earlier stays in their
    caches: the second GRU of a process would be written for the length of the sample alone, and
    one that is compiled later would be given the loop of the export.
    """
    operators = (torch.ops.aten.gru.input, torch.ops.aten.lstm.input)
    for operator in operators:
        operator._dispatch_cache.clear()
    try:
        yield
    finally:
        for operator in operators:
            operator._dispatch_cache.clear()


def _length(name: str) -> str:
    return "tokens" if name == "tokens" else "keys"


def _varying(samples: list[Tensors]) -> list[list[int]]:
    """List for each tensor the axes on which two samples differ."""
    pairs = zip(*samples, strict=True)
    return [
        [axis for axis, (a, b) in enumerate(zip(one.shape, other.shape, strict=True)) if a != b]
        for one, other in pairs
    ]


def _require_onnx() -> None:
    try:
        import onnx  # noqa: F401, PLC0415 - an extra
        import onnxscript  # noqa: F401, PLC0415
    except ImportError:
        raise MissingExtraError(
            "onnx and onnxscript must be installed to export a model. "
            "Run: pip install 'regard[onnx]'"
        ) from None
