"""The table of checks, and running them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

import torch

from regard.attention import Traits
from regard.errors import MechanismError, did_you_mean
from regard.testing import contract, holes, precision, sampling, steps, weights
from regard.testing.report import Outcome, Report
from regard.testing.subject import CheckFailed, NotApplicable, Subject, subject_of


@dataclass(frozen=True, slots=True)
class Check:
    """One demand on an attention.

    Args:
        run: Raises `CheckFailed` where the demand is not met, `NotApplicable` where it has no
            meaning.
        every_dtype: Whether it is run in every type asked for, or once because it chooses its own.
        default: Whether it is run unless others are named.
    """

    run: Callable[[Subject], None]
    every_dtype: bool = True
    default: bool = True

    @property
    def meaning(self) -> str:
        """What it demands, in one sentence."""
        return (self.run.__doc__ or "").strip().splitlines()[0]


def _table(
    functions: Iterable[Callable[[Subject], None]], *, every_dtype: bool
) -> dict[str, Check]:
    return {function.__name__: Check(function, every_dtype) for function in functions}


CHECKS: dict[str, Check] = {
    **_table(weights.CHECKS, every_dtype=True),
    **_table(holes.CHECKS, every_dtype=True),
    **_table(contract.CHECKS, every_dtype=True),
    **_table(steps.CHECKS, every_dtype=True),
    **_table(sampling.CHECKS, every_dtype=True),
    **_table(precision.CHECKS, every_dtype=False),
    "gradients_through_steps_are_right": Check(
        steps.gradients_through_steps_are_right, every_dtype=False
    ),
    "training_gradients_are_right": Check(sampling.training_gradients_are_right, every_dtype=False),
    "gradients_reach_the_inputs": Check(precision.gradients_reach_the_inputs),
    "compiled_agrees": Check(precision.compiled_agrees, every_dtype=False, default=False),
}


def check_attention(
    attention: Callable[..., Any],
    *,
    query_dim: int | None = None,
    key_dim: int | None = None,
    traits: Traits | None = None,
    dtypes: Collection[torch.dtype] = (torch.float32,),
    checks: Collection[str] | None = None,
    raises: bool = True,
) -> Report:
    """Examine an attention of any make: yours, PyTorch's, or regard's.

    It is called as `attention(query, key, value, *, mask)` with `query (batch, queries,
    query_dim)`, keys and values `(batch, keys, dim)`, and a bool mask, True = may attend, of
    shape `(batch, keys)` or `(batch or 1, queries, keys)`. It returns a tuple that begins with
    the context and the weights; weights may have heads second. A copy in evaluation mode is
    examined; the random state is left as it was.

    Checks that need a module, `prepare` or weights without heads are skipped where there is
    none. `CHECKS` lists all of them with their meaning; `compiled_agrees` is run only by name.

    Args:
        attention: What to examine.
        query_dim: Size of the queries; by default `attention.query_dim`, else 4.
        key_dim: Size of the keys; by default `attention.key_dim`, else that of the queries.
        traits: What holds for it; by default `attention.traits`, else those of a softmax.
        dtypes: Types to examine it in.
        checks: Names of the checks to run; by default all but the slow ones.
        raises: Whether a failure raises an error; otherwise the report tells.

    Returns:
        What each check found.

    Raises:
        AssertionError: A check failed; the message lists all that did.
        MechanismError: A check is unknown, or sizes contradict the attention.

    Example:
        >>> import regard
        >>> report = check_attention(regard.Attention("dot"), checks=["padding_changes_nothing"])
        >>> print(report)
        Attention: 1 passed, 0 failed, 0 skipped
    """
    chosen = _chosen(checks)
    if not chosen or not dtypes:
        raise MechanismError(
            f"checks and dtypes must name at least one; got {len(chosen)} and {len(dtypes)}. "
            "Leave them out for all checks in float32."
        )
    subject = subject_of(attention, query_dim=query_dim, key_dim=key_dim, traits=traits)
    with torch.random.fork_rng(enabled=True, devices=[]):
        torch.manual_seed(0)
        outcomes = tuple(_run(subject, chosen, dtypes))
    name = getattr(attention, "__name__", type(attention).__name__)
    report = Report(name, outcomes)
    if raises and not report.ok:
        raise AssertionError(str(report))
    return report


def _chosen(names: Collection[str] | None) -> dict[str, Check]:
    if names is None:
        return {name: check for name, check in CHECKS.items() if check.default}
    for name in names:
        if name not in CHECKS:
            known = did_you_mean(name, CHECKS)
            raise MechanismError(f"checks must be known; got {name!r}: {known}")
    return {name: check for name, check in CHECKS.items() if name in set(names)}


def _run(
    subject: Subject, chosen: dict[str, Check], dtypes: Collection[torch.dtype]
) -> Iterable[Outcome]:
    for place, dtype in enumerate(dtypes):
        for name, check in chosen.items():
            if check.every_dtype or place == 0:
                yield _outcome(subject.copied(dtype), name, check)


def _outcome(subject: Subject, name: str, check: Check) -> Outcome:
    dtype = str(subject.dtype).removeprefix("torch.") if check.every_dtype else "any type"
    try:
        check.run(subject)
    except NotApplicable as reason:
        return Outcome(name, dtype, "skipped", str(reason))
    except CheckFailed as reason:
        return Outcome(name, dtype, "failed", str(reason))
    except Exception as error:
        line = (str(error).strip().splitlines() or [""])[0]
        return Outcome(name, dtype, "failed", f"{type(error).__name__}: {line}")
    return Outcome(name, dtype, "passed")
