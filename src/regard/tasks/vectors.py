"""Embeddings that begin with vectors from a file."""

from __future__ import annotations

from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.normalisation import SPACE_MARK
from regard.data.tokens import Tokenizer
from regard.data.vectors import read_vectors
from regard.errors import UserError


def fill_embedding(weight: Float[Tensor, "words dim"], tokenizer: Tokenizer, path: Path) -> int:
    """Put the vectors of a file into an embedding.

    A word is looked for as it is spelled, then in small letters; one that the file does not have
    stays as it was drawn.

    Args:
        weight: The embedding's matrix; changed in place.
        tokenizer: Its words.
        path: The file.

    Returns:
        How many words the file has.

    Raises:
        DataError: The file is wrong.
        UserError: Its vectors are of another size.
    """
    spelled = [piece.removeprefix(SPACE_MARK) for piece in tokenizer.vocabulary.pieces]
    found = read_vectors(path, {*spelled, *(word.lower() for word in spelled)})
    if found.dim != weight.shape[1]:
        raise UserError(
            f"embedding_dim must be the size of the vectors, {found.dim}; got {weight.shape[1]}. "
            "Change it.",
            where="model.embedding_dim",
        )
    count = 0
    with torch.no_grad():
        for place, word in enumerate(spelled, start=tokenizer.size - len(spelled)):
            vector = found.vectors.get(word, found.vectors.get(word.lower()))
            if vector is not None:
                weight[place] = torch.from_numpy(vector).to(weight.device)
                count += 1
    return count
