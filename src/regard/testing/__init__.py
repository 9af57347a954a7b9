"""Conformance: one call that says whether an attention does what an attention must.

Example:
    >>> import torch
    >>> from regard.testing import check_attention
    >>> def mean(query, key, value=None, *, mask=None):
    ...     weights = query.new_ones(*query.shape[:-1], key.shape[1]).softmax(dim=-1)
    ...     return weights @ (key if value is None else value), weights
    >>> report = check_attention(mean, raises=False)
    >>> report.ok, "masked_weights_are_zero" in report.failed
    (False, True)
"""

from regard.testing.conformance import CHECKS, Check, check_attention
from regard.testing.report import Outcome, Report
from regard.testing.subject import CheckFailed, NotApplicable, Subject

__all__ = [
    "CHECKS",
    "Check",
    "CheckFailed",
    "NotApplicable",
    "Outcome",
    "Report",
    "Subject",
    "check_attention",
]
