"""Memory networks: a question looks for its answer among the sentences of a story."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor, nn

from regard.config import Strict
from regard.errors import MechanismError, ShapeError
from regard.memory.hops import DEVIATION, Hops, Rectified, Update
from regard.models.encoder_settings import Share, Size


class MemoryNetworkSettings(Strict):
    """A memory network.

    Args:
        embedding_dim: Size of the vectors of words and sentences.
        hops: How many times the memory is read.
        tying: "adjacent": the values of a hop are embedded as the keys of the next, the question
            as the first keys, answers as the last values; "layerwise": all hops share their
            embeddings, and a matrix stands between them; "untied": every hop has its own.
        encoding: "position" tells the order of the words in a sentence; "bag" does not.
        temporal: Whether the model learns how long ago a sentence was told.
        memory: How many sentences, the last ones, are kept.
        noise: In training, empty places come between the sentences of a story, at most this share
            of them, so that how long ago is not learnt by heart.
        rectified: Whether a ReLU follows each hop: for "none", "half" or "all" of the features.
        key_value: Whether each hop has a matrix over the sum of state and reading, as key-value
            memory networks have.
    """

    embedding_dim: Size = 20
    hops: Annotated[int, Field(ge=1, le=100)] = 3
    tying: Literal["adjacent", "layerwise", "untied"] = "adjacent"
    encoding: Literal["bag", "position"] = "position"
    temporal: bool = True
    memory: Annotated[int, Field(ge=1, le=10_000)] = 50
    noise: Share = 0.1
    rectified: Rectified = "none"
    key_value: bool = False

    @property
    def update(self) -> Update:
        """How a hop makes the next query."""
        if self.key_value:
            return "matrices"
        return "matrix" if self.tying == "layerwise" else "sum"


class Asked(NamedTuple):
    """A batch of questions about stories, each distinct sentence in it once.

    Args:
        sentences: The words of each distinct sentence, 0 being padding.
        memory: For each question the sentences before it, the newest first, as rows of
            `sentences`; 0 where a slot is empty.
        questions: The row of each question's own text.
        values: What stands in the slots as values, where it is something else than the keys.
    """

    sentences: Int[Tensor, "distinct words"]
    memory: Int[Tensor, "batch slots"]
    questions: Int[Tensor, " batch"]
    values: Int[Tensor, "batch slots"] | None = None


class MemoryReading(NamedTuple):
    """What a memory network makes of questions.

    Args:
        logits: A score for each answer.
        weights: The weight of every slot in every hop, the newest sentence first.
    """

    logits: Float[Tensor, "restarts batch answers"]
    weights: Float[Tensor, "restarts batch hops slots"]


class MemoryNetwork(nn.Module):
    """An end-to-end memory network, several restarts of it in parallel.

    A sentence is `m_i = Σ_j l_j ⊙ A x_ij + T_i`, the sum over its words, each feature weighted by
    the word's place (or not: bag of words), with a vector for how long ago it was told; the
    question is embedded the same way; `Hops` reads the memory, and the answer is
    `softmax(W u_{K+1})`. The weights by place are `l_kj = 1 + 4 (k - (d+1)/2) (j - (J+1)/2) / (dJ)`
    for feature `k` of `d` and word `j` of `J`, twice those of the paper, as in its authors' code.

    Of a batch each distinct sentence, and of its sentences each distinct word, is embedded once,
    and all restarts are computed together: every parameter has a leading axis for them.

    Args:
        settings: What it is made of.
        words: How many words it knows, answers and padding included.
        answers: Which of those are the answers to choose from.
        restarts: How many models, drawn apart.

    Raises:
        MechanismError: There is no answer, or one is no word.

    References:
        Sukhbaatar et al., End-to-end memory networks, 2015; Miller et al., Key-value memory
        networks for directly reading documents, 2016.
    """

    answers: Tensor
    chosen: Tensor

    def __init__(
        self,
        settings: MemoryNetworkSettings,
        *,
        words: int,
        answers: tuple[int, ...],
        restarts: int = 1,
    ) -> None:
        super().__init__()
        if not answers or not all(0 < answer < words for answer in answers):
            raise MechanismError(
                f"answers must be ids from 1 to {words - 1}, at least one; got {len(answers)}. "
                "Name the words that can be answers."
            )
        self.settings, self.restarts = settings, restarts
        self._words, self._keys, self._values = words, *_tables(settings)
        dim, count = settings.embedding_dim, 1 + max(*self._keys, *self._values)
        adjacent = settings.tying == "adjacent"
        shape = (restarts, words, dim)
        self.embeddings = _drawn(count, shape)
        places = (restarts, settings.memory, dim)
        self.places = _drawn(count if settings.temporal else 0, places)
        self.question = None if adjacent else nn.Parameter(torch.empty(shape))
        own = (restarts, len(answers), dim)
        self.output = None if adjacent else nn.Parameter(torch.empty(own))
        self.hops = Hops(
            dim,
            hops=settings.hops,
            update=settings.update,
            rectified=settings.rectified,
            restarts=restarts,
        )
        self.register_buffer("answers", torch.tensor(answers), persistent=False)
        self.register_buffer("chosen", torch.zeros((), dtype=torch.int64))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters anew, and choose the first restart."""
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=DEVIATION)
        self.chosen.zero_()

    def forward(self, asked: Asked, *, linear: bool = False) -> MemoryReading:
        """Answer questions.

        Args:
            asked: The questions and their stories.
            linear: Whether the softmax over the memory is left out.

        Returns:
            A score for each answer, and the weights of all hops.

        Raises:
            ShapeError: A story has more sentences than the memory, or the axes are wrong.
        """
        self._check(asked)
        bags = _Bags(asked.sentences, position=self.settings.encoding == "position")
        filled = asked.memory > 0
        values = asked.memory if asked.values is None else asked.values
        told = self._told(filled)
        embedded = [bags.embed(table) for table in self.embeddings]
        keys = {k: self._slots(embedded[k], k, asked.memory, told) for k in {*self._keys}}
        read = keys if values is asked.memory else {}
        read |= {
            v: self._slots(embedded[v], v, values, told) for v in {*self._values} if v not in read
        }
        first = embedded[0] if self.question is None else bags.embed(self.question)
        state, weights = self.hops(
            first[:, asked.questions],
            [keys[k] for k in self._keys],
            [read[v] for v in self._values],
            filled,
            linear=linear,
        )
        output = self.embeddings[-1][:, self.answers] if self.output is None else self.output
        return MemoryReading(state @ output.transpose(1, 2), weights)

    def restart(self, index: int) -> MemoryNetwork:
        """Take one restart out, as a model of its own.

        Args:
            index: Which, from 0.

        Returns:
            The model; its parameters are copies.

        Raises:
            MechanismError: There is no such restart.
        """
        if not 0 <= index < self.restarts:
            raise MechanismError(
                f"index must be from 0 to {self.restarts - 1}; got {index}. Count the restarts."
            )
        answers = tuple(self.answers.tolist())
        single = MemoryNetwork(self.settings, words=self._words, answers=answers)
        single.to(self.answers.device).train(self.training)
        with torch.no_grad():
            for own, every in zip(single.parameters(), self.parameters(), strict=True):
                own.copy_(every[index : index + 1])
        return single

    def _slots(
        self, embedded: Tensor, table: int, rows: Tensor, told: Tensor | None
    ) -> Float[Tensor, "restarts batch slots dim"]:
        slots = embedded[:, rows]
        return slots if told is None else slots + self.places[table][:, told]

    def _told(self, filled: Bool[Tensor, "batch slots"]) -> Int[Tensor, "batch slots"] | None:
        """How long ago each sentence was told, empty places counted in training."""
        if not self.settings.temporal:
            return None
        batch, slots = filled.shape
        if not (self.training and self.settings.noise):
            return torch.arange(slots, device=filled.device).expand(batch, slots)
        return noised(filled.sum(dim=1), slots, self.settings.noise).clamp_(
            max=self.settings.memory - 1
        )

    def _check(self, asked: Asked) -> None:
        sentences, memory, questions, values = asked
        if sentences.dim() != 2 or memory.dim() != 2 or questions.shape != memory.shape[:1]:
            raise ShapeError(
                "sentences, memory and questions must have shapes (distinct, words), "
                f"(batch, slots) and (batch,); got {tuple(sentences.shape)}, "
                f"{tuple(memory.shape)} and {tuple(questions.shape)}. Pad them."
            )
        if memory.shape[1] > self.settings.memory:
            raise ShapeError(
                f"memory must have at most {self.settings.memory} slots; got {memory.shape[1]}. "
                "Keep the last sentences."
            )
        if values is not None and values.shape != memory.shape:
            raise ShapeError(
                f"values must have the shape of memory, {tuple(memory.shape)}; got "
                f"{tuple(values.shape)}. Give each key one value."
            )


def _drawn(count: int, shape: tuple[int, ...]) -> nn.ParameterList:
    return nn.ParameterList(nn.Parameter(torch.empty(shape)) for _ in range(count))


def _tables(settings: MemoryNetworkSettings) -> tuple[list[int], list[int]]:
    """Which embedding each hop takes for its keys, and which for its values."""
    hops = range(settings.hops)
    if settings.tying == "adjacent":
        return [*hops], [hop + 1 for hop in hops]
    if settings.tying == "layerwise":
        return [0] * len(hops), [1] * len(hops)
    return [2 * hop for hop in hops], [2 * hop + 1 for hop in hops]


class _Bags:
    """Sentences as counts of the distinct words among them, to be multiplied with embeddings."""

    def __init__(self, sentences: Tensor, *, position: bool) -> None:
        distinct, places = torch.unique(sentences, return_inverse=True)
        self.distinct = distinct
        real = (sentences > 0).float()
        shape = (len(sentences), len(distinct))
        self.counts = real.new_zeros(shape).scatter_add_(1, places, real)
        self.shifts = None
        if position:
            lengths = real.sum(dim=1, keepdim=True)
            number = torch.arange(1, sentences.shape[1] + 1, device=sentences.device)
            shift = real * (number - (lengths + 1) / 2) / lengths.clamp(min=1.0)
            self.shifts = real.new_zeros(shape).scatter_add_(1, places, shift)

    def embed(
        self, table: Float[Tensor, "restarts words dim"]
    ) -> Float[Tensor, "restarts distinct dim"]:
        used = table[:, self.distinct]
        bags = self.counts.to(table.dtype) @ used
        if self.shifts is None:
            return bags
        dim = table.shape[-1]
        feature = torch.arange(1, dim + 1, device=table.device, dtype=table.dtype)
        return bags + (self.shifts.to(table.dtype) @ used) * (feature - (dim + 1) / 2) * (4 / dim)


def noised(counts: Int[Tensor, " batch"], slots: int, share: float) -> Int[Tensor, "batch slots"]:
    """Draw how long ago sentences were told, empty places having come between them.

    A story of `n` sentences gets `0 .. ⌈share · n⌉` empty places, drawn evenly, at places drawn
    evenly, from PyTorch's global generator.

    Args:
        counts: How many sentences each story has.
        slots: How many slots there are.
        share: Most empty places, as a share of the sentences.

    Returns:
        The place of each sentence, ascending; what is behind a story's sentences means nothing.
    """
    most = (counts * share).ceil()
    drawn = torch.rand(len(counts), device=counts.device)
    total = counts + (drawn * (most + 1)).floor().clamp(max=most).long()
    width = int(total.max()) if len(total) else 0
    width = max(width, slots)
    keys = torch.rand(len(counts), width, device=counts.device)
    beyond = torch.arange(width, device=counts.device) >= total.unsqueeze(1)
    rank = keys.masked_fill(beyond, 2.0).argsort(dim=1).argsort(dim=1)
    empty = rank >= counts.unsqueeze(1)
    return empty.to(torch.int8).argsort(dim=1, stable=True)[:, :slots]


class Clipping:
    """Bound the gradient of each restart, for each parameter by itself, as it is computed.

    A gradient that is not finite becomes zero: one restart that diverges stops none of the others.

    Args:
        model: The model; hooks stay on its parameters.
        limit: Largest norm; 0 bounds nothing.

    Attributes:
        factor: What gradients are multiplied with behind that; 1 unless it is set.
    """

    def __init__(self, model: MemoryNetwork, limit: float) -> None:
        self.limit, self.factor = limit, 1.0
        for parameter in model.parameters():
            parameter.register_post_accumulate_grad_hook(  # type: ignore[no-untyped-call]
                self._bound
            )

    def _bound(self, parameter: Tensor) -> None:
        gradient = parameter.grad
        if gradient is None:
            return
        norms = gradient.flatten(1).norm(dim=1)
        finite = torch.isfinite(norms)
        scale = torch.full_like(norms, self.factor)
        if self.limit:
            scale = scale * (self.limit / norms.clamp(min=1e-30)).clamp(max=1.0)
        shape = (-1, *[1] * (gradient.dim() - 1))
        if not bool(finite.all()):
            gradient.masked_fill_(~finite.view(shape), 0.0)
        gradient.mul_(scale.masked_fill(~finite, 0.0).view(shape))
