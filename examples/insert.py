"""Put attention into three models that were not written for it, and see what it looks at.

    python examples/insert.py

An LSTM that goes by its last step, a small network of convolutions that goes by the mean of its
grid, and an encoder of Hugging Face (if transformers is installed; of random weights). The first
two are trained for some seconds on sequences and pictures of which a single place decides; then
attention is inserted and they are trained as long again, beside a copy without. A line for each
says how many answers are right without and with it, and how often the largest weight lies on the
place that decides.
"""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Callable

import torch
from torch import Tensor, nn

import regard

STEPS, BATCH = 150, 64
Draw = Callable[[torch.Generator], tuple[Tensor, Tensor, Tensor]]


class Reader(nn.Module):
    """Says a label of a sequence of tokens, by the last step of an LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        self.lstm = nn.LSTM(16, 32, batch_first=True)
        self.output = nn.Linear(32, 4)

    def forward(self, tokens: Tensor) -> Tensor:
        states, _ = self.lstm(self.embedding(tokens))
        return self.output(states[:, -1])


class Viewer(nn.Module):
    """Says a label of a picture, by the mean over the grid of its features."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
        )
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.output = nn.Linear(32, 4)

    def forward(self, pictures: Tensor) -> Tensor:
        return self.output(self.pool(self.features(pictures)).flatten(1))


def sequences(generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Draw sequences of 40 tokens; one of the first 20 is a token from 16 on, which decides."""
    tokens = torch.randint(0, 16, (BATCH, 40), generator=generator)
    labels = torch.randint(0, 4, (BATCH,), generator=generator)
    places = torch.randint(0, 20, (BATCH,), generator=generator)
    tokens[torch.arange(BATCH), places] = 16 + labels
    return tokens, labels, places


def pictures(generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Draw noise of 24 x 24 pixels; in one of 8 x 8 patches a bar lies that decides."""
    drawn = torch.randn(BATCH, 1, 24, 24, generator=generator)
    labels = torch.randint(0, 4, (BATCH,), generator=generator)
    rows, columns = torch.randint(0, 3, (2, BATCH), generator=generator)
    bars = torch.full((4, 8, 8), -0.5)
    bars[0, 3:5, :] = bars[1, :, 3:5] = 1.5
    bars[2] = torch.where(torch.eye(8) > 0, 1.5, -0.5)
    bars[3] = bars[2].flip(0)
    for k, (row, column) in enumerate(zip(rows.tolist(), columns.tolist(), strict=True)):
        drawn[k, 0, 8 * row : 8 * row + 8, 8 * column : 8 * column + 8] = bars[labels[k]]
    return drawn, labels, 3 * rows + columns


def trained(model: nn.Module, draw: Draw, seed: int) -> None:
    """Train for a while."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        x, labels, _ = draw(generator)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), labels).backward()
        optimizer.step()


@torch.no_grad()
def right(model: nn.Module, x: Tensor, labels: Tensor) -> float:
    """Count right answers, in percent."""
    return 100 * float((model(x).argmax(1) == labels).float().mean())


def weights_of(insertion: regard.inside.Insertion, model: nn.Module, x: Tensor) -> Tensor:
    """Read the weights of an inserted pooling while the model reads."""
    found: list[Tensor] = []

    def keep(_module: object, _args: object, attended: regard.Attended) -> None:
        found.append(attended.weights)

    handle = insertion.module.attention.register_forward_hook(keep)
    with torch.no_grad():
        model(x)
    handle.remove()
    return found[0]


def of_time(seed: int) -> tuple[float, float, float]:
    """Insert attention after an LSTM; return right answers without and with, and looks."""
    torch.manual_seed(seed)
    model = Reader()
    x, labels, places = sequences(torch.Generator().manual_seed(seed + 1))
    trained(model, sequences, seed)
    plain = copy.deepcopy(model)
    trained(plain, sequences, seed + 2)
    insertion = regard.insert(model, after="lstm", sample=x)
    trained(model, sequences, seed + 2)
    looked = weights_of(insertion, model, x).argmax(1)
    near = (looked - places).abs() <= 2  # an LSTM may remember a step or two
    return right(plain, x, labels), right(model, x, labels), 100 * float(near.float().mean())


def of_a_grid(seed: int) -> tuple[float, float, float]:
    """Insert attention after convolutions; return the same."""
    torch.manual_seed(seed)
    model = Viewer()
    x, labels, patches = pictures(torch.Generator().manual_seed(seed + 1))
    trained(model, pictures, seed)
    plain = copy.deepcopy(model)
    trained(plain, pictures, seed + 2)
    insertion = regard.insert(model, after="features", sample=x)
    trained(model, pictures, seed + 2)
    looked = weights_of(insertion, model, x).argmax(1)  # of 12 x 12 cells, 4 x 4 of them a patch
    patch = 3 * (looked // 12 // 4) + looked % 12 // 4
    return (
        right(plain, x, labels),
        right(model, x, labels),
        100 * float((patch == patches).float().mean()),
    )


def of_bert() -> tuple[bool, int, int]:
    """Insert self-attention into BERT: is all as it was, and how much is left to train."""
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4)).eval()
    ids = torch.arange(16).reshape(2, 8)
    before = model(ids).last_hidden_state
    insertion = regard.insert(model, after="encoder.layer.0", attention="self", sample=ids)
    same = torch.equal(model(ids).last_hidden_state, before)
    alone = sum(parameter.numel() for parameter in insertion.train_alone())
    return same, alone, sum(parameter.numel() for parameter in model.parameters())


def main() -> None:
    """Insert it three times."""
    for name, example in {"LSTM": of_time, "convolutions": of_a_grid}.items():
        without, attending, looks = example(1)
        print(f"{name}: {without:.0f} % right without, {attending:.0f} % with attention")
        print(f"    {looks:.0f} % of the largest weights lie on the place that decides")
    if importlib.util.find_spec("transformers"):
        same, alone, total = of_bert()
        print(f"BERT: says the same at first: {same}; trains {alone:,} of {total:,} numbers")


if __name__ == "__main__":
    main()
