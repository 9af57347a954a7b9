"""Embeddings that begin with vectors from a file."""

from pathlib import Path

import pytest
import torch

from regard.data.tokens import Tokenizer
from regard.errors import UserError
from regard.tasks.vectors import fill_embedding


def test_words_that_the_file_has(tmp_path: Path) -> None:
    tokenizer = Tokenizer.train(["The cat sat. (cat)"], kind="words")
    file = tmp_path / "vectors.txt"
    file.write_text("the 1 2\ncat 3 4\nSat 5 6\n")
    weight = torch.zeros(tokenizer.size, 2)
    assert fill_embedding(weight, tokenizer, file) == 3  # The, cat behind a space and without

    def vector(text: str) -> list[float]:
        return weight[tokenizer.encode(text, whole=True).ids[-1]].tolist()

    assert vector("The") == [1.0, 2.0]
    assert vector("a cat") == vector("(cat") == [3.0, 4.0]
    assert vector("sat") == [0.0, 0.0]
    with pytest.raises(UserError, match=r"embedding_dim must be the size .* 2; got 3"):
        fill_embedding(torch.zeros(tokenizer.size, 3), tokenizer, file)
