"""Which words a label hangs on, by the gradient: what attention is held against."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.func import functional_call

from regard.models.documents import DocumentModel

_EMBEDDING = "words.encoder.embedding.weight"


def word_gradients(
    model: DocumentModel,
    tokens: Int[Tensor, " words"],
    words: Int[Tensor, " sentences"],
    sentences: Int[Tensor, " documents"],
    labels: Int[Tensor, " documents"],
    *,
    padding: int = 0,
) -> Float[Tensor, " words"]:
    """Return how much the score of a label hangs on each word: `|∂ logit / ∂ x_i · x_i|`.

    It is what the score would lose, to first order, were the word's vector zero. The model should
    be in evaluation; its parameters get no gradient.

    Args:
        model: The model.
        tokens: The words of all sentences, one after the other.
        words: How many of them each sentence has.
        sentences: How many sentences each document has.
        labels: The label of each document whose score counts.
        padding: The word that stands for none.

    Returns:
        A number for each word, 0 or more.

    References:
        Simonyan et al., Deep inside convolutional networks, 2014; Jain and Wallace, Attention is
        not explanation, 2019 (against attention).
    """
    embedding = model.get_parameter(_EMBEDDING).detach()
    first = padding + 1
    # Every word gets a row of its own in the table, so that the gradient of the table is that of
    # the words; the row of padding stays first, where the model looks for it.
    vectors = embedding[tokens].requires_grad_()
    own = torch.arange(len(tokens), device=tokens.device) + first
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        table = torch.cat([embedding.new_zeros(first, embedding.shape[1]), vectors])
        read = functional_call(model, {_EMBEDDING: table}, (own, words, sentences))
        score = read.logits.gather(1, labels.unsqueeze(1)).sum()
        # Where there is no word at all the score does not even know of them.
        (gradient,) = torch.autograd.grad(score, vectors, materialize_grads=True)
    product: Tensor = (gradient * vectors.detach()).sum(dim=1)
    return product.abs()
