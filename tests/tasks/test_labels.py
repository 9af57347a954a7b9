"""Labels whatever is labelled: probabilities, what is said, the loss."""

import math

import numpy as np
import pytest
import torch

from regard.tasks.labels import (
    balancing_weights,
    label_loss,
    label_probabilities,
    label_targets,
    verdicts,
)

KNOWN = ["cat", "dog", "owl"]


def test_probabilities() -> None:
    logits = torch.tensor([[0.0, math.log(3.0), -100.0]])
    assert label_probabilities(logits, several=False)[0] == pytest.approx([0.25, 0.75, 0.0])
    assert label_probabilities(logits, several=True)[0] == pytest.approx([0.5, 0.75, 0.0])


def test_what_is_said() -> None:
    (one,) = verdicts(np.array([[0.2, 0.5, 0.3]]), KNOWN, several=False)
    assert (one.label, one.probability, one.labels) == ("dog", 0.5, ("dog",))
    assert one.probabilities == {"cat": 0.2, "dog": 0.5, "owl": 0.3}
    assert one.written.text == "dog"
    both, none = verdicts(np.array([[0.9, 0.1, 0.5], [0.1, 0.2, 0.3]]), KNOWN, several=True)
    assert both.labels == ("cat", "owl")
    assert both.written.text == "cat, owl"
    assert [both.written.text[t.start : t.end] for t in both.written.tokens] == ["cat", "owl"]
    assert (none.label, none.labels, none.written.text) == ("owl", (), "owl")


def test_the_loss_by_hand() -> None:
    logits = torch.tensor([[0.0, 0.0, 0.0], [0.0, math.log(2.0), 0.0]])
    targets = label_targets([[0], [1]], 3)
    assert targets.tolist() == [[1, 0, 0], [0, 1, 0]]
    plain = label_loss(logits, targets, several=False, smoothing=0.0, weights=None)
    assert plain.item() == pytest.approx(math.log(3) + math.log(2))
    weights = torch.tensor([2.0, 1.0, 1.0])
    weighed = label_loss(logits, targets, several=False, smoothing=0.0, weights=weights)
    assert weighed.item() == pytest.approx(2 * math.log(3) + math.log(2))
    both = label_targets([[0, 2]], 3)
    several = label_loss(torch.zeros(1, 3), both, several=True, smoothing=0.0, weights=None)
    assert several.item() == pytest.approx(3 * math.log(2))
    smooth = label_loss(torch.ones(1, 3), both, several=True, smoothing=0.2, weights=None)
    expected = 2 * (math.log1p(math.e) - 0.9) + (math.log1p(math.e) - 0.1)
    assert smooth.item() == pytest.approx(expected, rel=1e-5)


def test_rare_labels_count_as_much_as_frequent_ones() -> None:
    weights = balancing_weights([[0]] * 9 + [[1]], 2, several=False)
    assert (weights * torch.tensor([9.0, 1.0])).tolist() == pytest.approx([5.0, 5.0])
    pull = balancing_weights([[0], [], [], []], 1, several=True)
    assert pull.tolist() == [3.0]  # one that holds against three that do not
