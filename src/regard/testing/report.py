"""What an examination found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one check found.

    Args:
        check: The name of the check.
        dtype: The type it was run in, such as `float32`.
        status: Whether it passed, failed, or had nothing to say.
        reason: Why it failed or was skipped, in one line.
    """

    check: str
    dtype: str
    status: Literal["passed", "failed", "skipped"]
    reason: str = ""

    def __str__(self) -> str:
        reason = f": {self.reason}" if self.reason else ""
        return f"{self.check} ({self.dtype}) {self.status}{reason}"


@dataclass(frozen=True, slots=True)
class Report:
    """What all checks found.

    Args:
        subject: What was examined.
        outcomes: What each check found, in order.
    """

    subject: str
    outcomes: tuple[Outcome, ...]

    @property
    def ok(self) -> bool:
        """Whether no check failed."""
        return not self.failed

    @property
    def passed(self) -> tuple[str, ...]:
        """Names of the checks that passed in every type they were run in."""
        failed = {*self.failed, *self.skipped}
        return tuple(name for name in self._named("passed") if name not in failed)

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the checks that failed in some type."""
        return self._named("failed")

    @property
    def skipped(self) -> tuple[str, ...]:
        """Names of the checks that had nothing to say in some type."""
        return self._named("skipped")

    def _named(self, status: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(o.check for o in self.outcomes if o.status == status))

    def __str__(self) -> str:
        counts = [
            f"{len(names)} {status}"
            for status, names in (
                ("passed", self.passed),
                ("failed", self.failed),
                ("skipped", self.skipped),
            )
        ]
        lines = [f"{self.subject}: {', '.join(counts)}"]
        failed = [outcome for outcome in self.outcomes if outcome.status == "failed"]
        lines += [f"  {outcome}" for outcome in failed]
        if len(failed) > len(self.outcomes) / 2:
            lines.append(
                "Most checks failed. The call is attention(query, key, mask=mask); are query_dim "
                "and key_dim given, and right?"
            )
        return "\n".join(lines)
