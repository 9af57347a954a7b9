"""Draw what every attention mechanism makes of one example.

    python examples/mechanisms.py FOLDER

One English sentence and its Chinese translation, with queries and keys made by hand: a key is a
direction of its own for each English word, and a query holds the score that its Chinese word
should give to each of them, so that the plain dot product is exactly the table `SCORES_WANTED`.
Every score, term, selection and pooling that `regard list mechanisms` names is run on those same
vectors. Where a mechanism has parameters, they too are set by hand, so that what the formula does
can be seen; nothing is trained. One picture for each is written into FOLDER as
`<kind>-<name>.svg`, and a line for each is printed: what each word looked at most.

Scores are drawn under the softmax, terms added to the dot product, selections over the dot
product. Mechanisms that go step by step read the Chinese words from left to right.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import regard
from regard.attention import (
    SCORES,
    SELECTIONS,
    TERMS,
    Mechanism,
    Score,
    Selection,
    Sum,
    Term,
    scores,
    selections,
)
from regard.attention.pooling import (
    POOLINGS,
    AttentionPooling,
    FeedForwardAttention,
    MultiHeadPooling,
    StepAttention,
)
from regard.pictures import Map, Record, Text, Token

DIM = 8
SEED = 38  # what is drawn at random is drawn with it
ENGLISH = ("Tom", "saw", "the", "cat", "that", "slept")
CHINESE = ("汤姆", "看见", "了", "睡觉", "的", "猫")

# A column for each English word, a row for each Chinese one.
SCORES_WANTED = (
    (3.0, 0.6, 0.0, 0.9, 0.0, 0.0),
    (0.5, 2.6, 0.0, 0.4, 0.0, 1.6),
    (0.0, 2.0, 0.4, 0.0, 0.6, 1.4),
    (0.0, 1.5, 0.0, 0.7, 0.3, 2.9),
    (0.0, 0.3, 1.5, 0.6, 2.1, 0.8),
    (1.2, 0.0, 1.8, 2.7, 0.4, 0.0),
)
# The seventh feature of a query says where in the English sentence its word may be looked for, from
# -0.5 to 0.5; the keys hold zeros there, so that only LocalPredictive takes notice.
PLACES = (-0.5, -0.17, -0.12, 0.4, 0.12, 0.03)

KEYS = torch.eye(DIM)[: len(ENGLISH)].unsqueeze(0)  # (1, keys, dim)
QUERIES = torch.zeros(1, len(CHINESE), DIM)
QUERIES[0, :, : len(ENGLISH)] = torch.tensor(SCORES_WANTED)
QUERIES[0, :, len(ENGLISH)] = torch.tensor(PLACES)


def text_of(words: tuple[str, ...], space: str, language: str | None) -> Text:
    """Join words to a text that knows where each of them stands."""
    tokens, start = [], 0
    for word in words:
        tokens.append(Token(word, start, start + len(word)))
        start += len(word) + len(space)
    return Text(space.join(words), tuple(tokens), language)


SOURCE = text_of(ENGLISH, " ", "en")
TARGET = text_of(CHINESE, "", "zh")


def filled(part: Any, values: Mapping[str, Tensor]) -> Any:
    """Set all parameters of a part, by their names."""
    part.load_state_dict(values)
    return part


def row(*numbers: float) -> Tensor:
    """Make a matrix of one row."""
    return torch.tensor([numbers])


# An additive layer whose projections are near the identity: feature h of the hidden layer compares
# feature h of query and key, and answers where both are large.
ADDITIVE = {
    "query_projection.weight": 0.5 * torch.eye(DIM),
    "key_projection.weight": torch.eye(DIM),
    "key_projection.bias": torch.full((DIM,), -2.0),
    "vector": torch.full((DIM,), 3.5),
}
INSIDE = {f"additive.{name}": value for name, value in ADDITIVE.items()}


def bilinear() -> Score:
    """Let a query for "cat" find its article nearly as well."""
    matrix = torch.eye(DIM)
    matrix[ENGLISH.index("cat"), ENGLISH.index("the")] = 0.25
    return filled(scores.Bilinear(DIM, DIM), {"key_projection.weight": matrix})


def location() -> Score:
    """Give each place the feature of its number, later places less of it."""
    strengths = torch.linspace(1.2, 0.4, len(ENGLISH))
    matrix = torch.zeros(len(ENGLISH), DIM)
    matrix[:, : len(ENGLISH)] = torch.diag(strengths)
    return filled(scores.Location(DIM, max_keys=len(ENGLISH)), {"projection.weight": matrix})


def location_sensitive() -> Score:
    """Favour the word after the one that was read last: the kernel looks one place back."""
    score = scores.LocationSensitive(DIM, DIM, hidden_dim=DIM, channels=1, kernel_size=3)
    located = {
        "convolution.weight": torch.tensor([[[1.0, 0.0, 0.0]]]),
        "location_projection.weight": torch.full((DIM, 1), 0.3),
    }
    return filled(score, {**INSIDE, **located})


def coverage() -> Score:
    """Turn from what was read: the more weight a word has had, the lower its score."""
    covered = {"coverage_projection.weight": torch.full((DIM, 1), -0.7)}
    return filled(scores.Coverage(DIM, DIM, hidden_dim=DIM), {**INSIDE, **covered})


def nearness(query: Tensor, key: Tensor) -> Tensor:
    """Score by the distance between query and key, a function of one's own."""
    return -2.5 * torch.cdist(query, key)


def relative_bias() -> Term:
    """Count words that stand earlier for less, and later ones for what they score."""
    table = torch.tensor([-3.0, -2.0, -1.0, 0.0, 0.0, 0.0, 0.0])
    return filled(scores.RelativeBias(max_distance=3), {"bias": table})


def local_predictive() -> Selection:
    """Foretell the place from the seventh feature of the query."""
    looks_at = torch.zeros(1, DIM)
    looks_at[0, len(ENGLISH)] = 1.0
    return filled(
        selections.LocalPredictive(DIM, hidden_dim=1, half_width=2),
        {"hidden.weight": looks_at, "place.weight": row(8.0)},
    )


# How much each English word tells, whoever asks.
TELLING = row(1.2, 2.2, 0.0, 2.6, 0.3, 1.8, 0.0, 0.0)


def attention_pooling() -> nn.Module:
    """Ask for the words that tell something, with a vector that was set by hand."""
    return filled(
        AttentionPooling(DIM),
        {
            "attention.score.hidden.weight": torch.eye(DIM),
            "attention.score.hidden.bias": torch.zeros(DIM),
            "attention.score.vector.weight": TELLING,
        },
    )


def feed_forward() -> nn.Module:
    """Ask for the same words; tanh sets a bound to how much more one can weigh than another."""
    return filled(
        FeedForwardAttention(DIM),
        {
            "attention.score.projection.weight": TELLING,
            "attention.score.projection.bias": torch.full((1,), -1.0),
        },
    )


def multihead() -> nn.Module:
    """Ask in one head for the first half of the words, in the other for the second."""
    plain = {
        f"attention.{name}_projection.{kind}": torch.eye(DIM) if kind == "weight" else nothing
        for nothing in (torch.zeros(DIM),)
        for name in ("query", "key", "value", "out")
        for kind in ("weight", "bias")
    }
    return filled(MultiHeadPooling(DIM, 2), {**plain, "query": 2.0 * TELLING[0]})


def step() -> nn.Module:
    """Let each feature weigh the steps by what it holds there."""
    steps = len(CHINESE)
    return filled(
        StepAttention(steps), {"dense.weight": torch.eye(steps), "dense.bias": torch.zeros(steps)}
    )


# What there is to draw, and one way to build each part for the example. `Function` is no name in
# `SCORES`: a function is given as it is.
KINDS: dict[str, Mapping[str, type[nn.Module]]] = {
    "score": {**SCORES, "function": scores.Function},
    "term": TERMS,
    "selection": SELECTIONS,
    "pooling": POOLINGS,
}
RECIPES: dict[str, dict[str, Callable[[], Any]]] = {
    "score": {
        "additive": lambda: filled(scores.Additive(DIM, DIM, hidden_dim=DIM), ADDITIVE),
        "dot": scores.Dot,
        "scaled_dot": scores.ScaledDot,
        "bilinear": bilinear,
        "cosine": lambda: scores.Cosine(strength=5.0),
        "rotary": lambda: scores.Rotary(base=10.0),
        "location": location,
        "location_sensitive": location_sensitive,
        "coverage": coverage,
        "uniform": scores.Uniform,
        "function": lambda: scores.Function(nearness),
    },
    "term": {
        "relative_bias": relative_bias,
        "alibi": lambda: scores.ALiBi(slope=0.5),
    },
    "selection": {
        "softmax": lambda: selections.Softmax(temperature=0.5),
        "hardmax": selections.Hardmax,
        "sampled": selections.Sampled,
        "gumbel_softmax": lambda: selections.GumbelSoftmax(temperature=0.5),
        "sparsemax": selections.Sparsemax,
        "entmax": selections.Entmax,
        "sigmoid": lambda: selections.Sigmoid(bias=-2.0),
        "top_k": lambda: selections.TopK(2),
        "local_monotonic": lambda: selections.LocalMonotonic(half_width=1),
        "local_predictive": local_predictive,
        "monotonic": lambda: selections.Monotonic(noise=0.0),
    },
    "pooling": {
        "attention_pooling": attention_pooling,
        "feed_forward": feed_forward,
        "multihead": multihead,
        "step": step,
    },
}


def part_of(kind: str, name: str) -> Any:
    """Build a part for the example, by its kind and name.

    Raises:
        KeyError: There is no recipe for it.
    """
    if name not in RECIPES.get(kind, {}):
        raise KeyError(f"RECIPES must say how to build the {kind} {name!r}; it has no entry for it")
    return RECIPES[kind][name]()


def weights_of(attention: Mechanism) -> Tensor:
    """Read the English words for every Chinese one, step by step where the mechanism does so.

    Modules begin in training mode and stay there, so that what draws does draw.
    """
    generator = torch.Generator().manual_seed(SEED)
    if attention.traits.stateful:
        prepared = attention.prepare(KEYS)
        return regard.unroll(attention, QUERIES, prepared, generator=generator).weights[0]
    return attention(QUERIES, KEYS, generator=generator).weights[0]


def pooled(pooling: nn.Module) -> tuple[Text, Text, Tensor]:
    """Run a pooling: over the English words, or over the steps of the Chinese ones."""
    if isinstance(pooling, StepAttention):
        features = text_of((*ENGLISH, "place", "unused"), " ", None)
        return TARGET, features, pooling(QUERIES).weights[0].T  # (features, steps)
    if isinstance(pooling, MultiHeadPooling):
        heads = text_of(("first", "second"), " ", None)
        return SOURCE, heads, pooling(KEYS).weights[0]  # (heads, keys)
    return SOURCE, text_of(("all",), "", None), pooling(KEYS).weights


def record_of(kind: str, name: str) -> Record:
    """Run one mechanism on the example and keep what it looked at."""
    part = part_of(kind, name)
    if kind == "pooling":
        read, written, weights = pooled(part)
    else:
        read, written = SOURCE, TARGET
        weights = weights_of(attention_with(part))
    return Record(f"{kind} {name}", read, written, (Map(name, weights.detach().numpy()),))


def attention_with(part: Score | Term | Selection) -> regard.Attention:
    """Put a part among plain ones: the dot product, the softmax."""
    if isinstance(part, Term):
        return regard.Attention(Sum(scores.Dot(), part))
    if isinstance(part, Selection):
        return regard.Attention(scores.Dot(), part)
    return regard.Attention(part)


def records() -> Iterator[tuple[str, Record]]:
    """Run every mechanism there is: what its picture is called, and the record."""
    for kind, parts in KINDS.items():
        for name in parts:
            yield f"{kind}-{name}", record_of(kind, name)


def line_of(record: Record) -> str:
    """Say what each row looked at most."""
    read = [token.text for token in record.read.tokens]
    best = [read[found[0][0]] if found else "nothing" for found in record.strongest(1)]
    rows = [token.text for token in record.written.tokens]
    return " ".join(f"{word}={looked}" for word, looked in zip(rows, best, strict=True))


def main() -> None:
    """Draw all of them into a folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for stem, record in records():
        record.save(folder / f"{stem}.svg")
        print(f"{stem:<28} {line_of(record)}")


if __name__ == "__main__":
    main()
