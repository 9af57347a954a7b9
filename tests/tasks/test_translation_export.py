"""Translators as ONNX: the same words, at any length, without PyTorch."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.data.tokens import Tokenizer
from regard.errors import MissingExtraError, UserError
from regard.models.rescoring import build_model
from regard.models.settings import Seq2SeqSettings
from regard.saving import verify_folder
from regard.tasks.settings import DecodingSettings
from regard.tasks.translation import Translator
from regard.tasks.translation_export import export_translator
from regard.tasks.translation_settings import ModelSettings


def untrained(encoder: dict[str, Any], decoder: dict[str, Any], **more: Any) -> Translator:
    torch.manual_seed(1)
    source = Tokenizer.train(["a b c d e f g"], kind="words")
    target = Tokenizer.train(["猫追狗"], kind="characters")
    table = {"embedding_dim": 8, "encoder": encoder, "decoder": decoder, **more}
    sizes = Seq2SeqSettings.model_validate(table)
    model = build_model(sizes, source_size=source.size, target_size=target.size, padding=0)
    settings = ModelSettings(
        task="translation", source_language="en", target_language="zh", max_tokens=40,
        model=sizes, decoding=DecodingSettings(maximum_length=6),
    )  # fmt: skip
    return Translator(model, source, target, settings, name="untrained")


GRU = {"kind": "gru", "hidden_dim": 6, "layers": 2}
PAIRS = {
    "bigru, bahdanau": (GRU, {"kind": "gru", "hidden_dim": 6, "order": "bahdanau"}),
    "lstm, luong": (
        {"kind": "lstm", "hidden_dim": 6, "bidirectional": False},
        {"kind": "lstm", "hidden_dim": 6, "layers": 2, "order": "luong"},
    ),
    "cnn, input feeding in heads": (
        {"kind": "convolution", "hidden_dim": 8, "layers": 2},
        {"kind": "rnn", "hidden_dim": 8, "order": "input_feeding", "num_heads": 2},
    ),
    "transformer, transformer": (
        {"kind": "transformer", "num_heads": 2, "layers": 2, "hidden_dim": 12},
        {"kind": "transformer", "num_heads": 2, "layers": 2, "hidden_dim": 12},
    ),
}


class Loop:
    """Greedy decoding as a program without PyTorch writes it, from export.json alone."""

    def __init__(self, folder: Path) -> None:
        runtime = pytest.importorskip("onnxruntime")
        self.said = json.loads((folder / "export.json").read_text("utf-8"))
        self.encoder = runtime.InferenceSession(folder / "encoder.onnx")
        self.step = runtime.InferenceSession(folder / "step.onnx")

    def run(self, source: Any, mask: Any, tokens: Any) -> tuple[list[Any], list[Any]]:
        """Read given target tokens; return log-probabilities and weights for each."""
        said, inputs = self.said["step"], {"source": source, "mask": mask}
        made = dict(
            zip(self.said["encoder"]["outputs"], self.encoder.run(None, inputs), strict=True)
        )
        log_probs, weights = [], []
        for place in range(tokens.shape[1]):
            token = tokens[:, : place + 1] if said["reads_all_tokens"] else tokens[:, place]
            given = {said["inputs"][0]: token, "mask": mask, **made}
            outputs = dict(zip(said["outputs"], self.step.run(None, given), strict=True))
            log_probs.append(outputs["log_probs"])
            weights.append(outputs["weights"])
            for name, value in outputs.items():
                if name.endswith("_after"):
                    made[name.removesuffix("_after")] = value
        return log_probs, weights


@pytest.mark.compiled
@pytest.mark.parametrize("pair", ["bigru, bahdanau", "lstm, luong"])
def test_a_second_export_in_one_process_is_as_good_as_the_first(pair: str, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxscript")
    for name in ("first", "second"):
        export_translator(untrained(*PAIRS[pair]), tmp_path / name)
    for name in ("encoder.onnx", "step.onnx"):
        first, second = ((tmp_path / one / name).stat().st_size for one in ("first", "second"))
        assert second == pytest.approx(first, rel=0.02)  # a loop, and no copy for each word


@pytest.mark.compiled
@pytest.mark.parametrize("pair", PAIRS)
def test_parity_at_other_batches_and_lengths(pair: str, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxscript")
    translator = untrained(*PAIRS[pair])
    export_translator(translator, tmp_path / "out")
    verify_folder(tmp_path / "out")
    loop, model = Loop(tmp_path / "out"), translator.model
    for batch, keys in ((3, 5), (1, 1), (2, 12)):
        source = torch.randint(4, translator.source.size, (batch, keys))
        lengths = torch.randint(1, keys + 1, (batch, 1))
        mask = torch.arange(keys) < lengths
        tokens = torch.randint(4, translator.target.size, (batch, 4))
        with torch.no_grad():
            decoded = model(source, mask, tokens)
            expected = model.logits(decoded.features).log_softmax(-1)
        log_probs, weights = loop.run(source.numpy(), mask.numpy(), tokens.numpy())
        for place in range(4):
            assert np.abs(log_probs[place] - expected[:, place].numpy()).max() < 1e-4
            own = decoded.weights[:, :, place].numpy()
            assert weights[place].shape == own.shape
            assert np.abs(weights[place] - own).max(initial=0.0) < 1e-4
        spoilt = torch.where(mask, source, 4)  # what stands in the padding does not matter
        again, _ = loop.run(spoilt.numpy(), mask.numpy(), tokens.numpy())
        assert np.abs(again[-1] - log_probs[-1]).max() < 1e-6


def test_an_existing_folder_stays(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("", encoding="utf-8")
    translator = untrained(*PAIRS["bigru, bahdanau"])
    with pytest.raises(UserError, match="mine"):
        export_translator(translator, tmp_path / "mine", overwrite=True)
    assert [one.name for one in (tmp_path / "mine").iterdir()] == ["file"]


def test_without_the_extra_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(MissingExtraError, match=r"regard\[onnx\]"):
        export_translator(untrained(*PAIRS["bigru, bahdanau"]), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_pair_that_rescores_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    translator = untrained(*PAIRS["bigru, bahdanau"], rescoring=True)
    with pytest.raises(UserError, match="one encoder and one decoder"):
        export_translator(translator, tmp_path / "out")
