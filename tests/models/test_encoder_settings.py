"""Encoders from settings, over tokens and over vectors."""

import pytest
import torch
from pydantic import TypeAdapter, ValidationError

from regard.models.encoder_settings import EncoderSettings, build_encoder, token_embedding
from regard.models.encoders import Vectors

KINDS = {
    "embedding": {},
    "convolution": {"hidden_dim": 6, "layers": 2},
    "rnn": {"hidden_dim": 3},
    "gru": {"hidden_dim": 3, "bidirectional": False},
    "lstm": {"hidden_dim": 3},
    "transformer": {"num_heads": 2, "layers": 1, "hidden_dim": 8},
}
READER = TypeAdapter(EncoderSettings)


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_are_read_as_tokens_are(kind: str) -> None:
    part = READER.validate_python({"kind": kind, **KINDS[kind]})
    torch.manual_seed(0)
    embedding = token_embedding(9, 4, 0)
    over_tokens = build_encoder(part, embedding, dropout=0.0).eval()
    over_vectors = build_encoder(part, Vectors(4), dropout=0.0).eval()
    own = over_tokens.state_dict()
    over_vectors.load_state_dict({n: own[n] for n in over_vectors.state_dict()})
    tokens = torch.randint(1, 9, (3, 5))
    mask = torch.arange(5) < torch.tensor([[5], [2], [0]])
    expected = over_tokens(tokens, mask)
    found = over_vectors(embedding(tokens), mask)
    assert found.memory.shape[-1] == over_vectors.out_dim == over_tokens.out_dim
    torch.testing.assert_close(found.memory, expected.memory)
    torch.testing.assert_close(found.final, expected.final)


def test_vectors_are_scaled() -> None:
    vectors = torch.ones(1, 2, 4)
    assert Vectors(4, scale=0.5)(vectors).tolist() == (vectors * 0.5).tolist()


def test_a_width_must_be_odd() -> None:
    with pytest.raises(ValidationError, match="width must be odd; got 4"):
        READER.validate_python({"kind": "convolution", "width": 4})
