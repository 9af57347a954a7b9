"""Run the conformance suite over every mechanism here, and over other libraries' layers.

    python benchmarks/conformance.py ours
    python benchmarks/conformance.py peers

`ours` examines every score with every selection, in one head and in several, in float64, float32,
bfloat16 and float16. `peers` examines the layers of `benchmarks/peers.py` in float32, and in the
types that single checks ask for; it wants an environment with keras and x-transformers beside
regard (`pip install keras x-transformers`). Both add to `benchmarks/results/conformance.json`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from regard.attention import SCORES, SELECTIONS, Attention, MultiHead
from regard.attention.building import sizes_of
from regard.errors import MechanismError
from regard.testing import CHECKS, Report, check_attention

RESULTS = Path(__file__).parent / "results" / "conformance.json"
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
SIZES = {"query_dim": 4, "key_dim": 4, "hidden_dim": 6}


def mechanism(score: str, selection: str, heads: int | None) -> Attention | MultiHead:
    """Build a pair by name, in one head or in several."""
    if heads is not None:
        return MultiHead(heads, 4 * heads, score=score, selection=selection)
    sizes = {name: SIZES[name] for name in sizes_of(SCORES[score])}
    return Attention(score, selection, **sizes)


def outcomes(report: Report) -> Counter[str]:
    """Count what the checks found."""
    return Counter(outcome.status for outcome in report.outcomes)


def ours() -> dict[str, Any]:
    """Examine every pair, and count."""
    total: Counter[str] = Counter()
    table: dict[str, str] = {}
    failures: list[str] = []
    start = time.perf_counter()
    for (score, selection), heads in itertools.product(
        itertools.product(SCORES, SELECTIONS), (None, 2)
    ):
        name = f"{score} x {selection}" + ("" if heads is None else f", {heads} heads")
        try:
            attention = mechanism(score, selection, heads)
        except MechanismError as error:
            table[name] = f"means nothing: {error}"
            continue
        report = check_attention(attention, dtypes=DTYPES, raises=False)
        counts = outcomes(report)
        total += counts
        table[name] = f"{counts['passed']} passed, {counts['failed']} failed"
        failures += [f"{name}: {o}" for o in report.outcomes if o.status == "failed"]
    examined = sum("passed" in line for line in table.values())
    share = 100.0 * total["passed"] / (total["passed"] + total["failed"])
    print(f"{examined} mechanisms, {len(CHECKS) - 1} checks, {len(DTYPES)} types:")
    print(f"{total['passed']:,} passed, {total['failed']:,} failed: {share:.2f} %")
    print(f"{total['skipped']:,} had nothing to say; {time.perf_counter() - start:.0f} s")
    for line in failures:
        print(line)
    return {
        "command": "python benchmarks/conformance.py ours",
        "versions": {"torch": torch.__version__, "python": sys.version.split()[0]},
        "mechanisms": examined,
        "counts": dict(total),
        "table": table,
        "failures": failures,
    }


def peers() -> dict[str, Any]:
    """Examine other libraries' layers, and list what each fails."""
    from peers import PEERS, version

    table: dict[str, Any] = {}
    for name, (package, make, left_out) in PEERS.items():
        asked = [check for check, one in CHECKS.items() if one.default and check not in left_out]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            report = check_attention(make(), query_dim=8, key_dim=8, checks=asked, raises=False)
        counts = outcomes(report)
        failed = {o.check: o.reason for o in report.outcomes if o.status == "failed"}
        source = f"{package} {version(package)}"
        table[name] = {"version": source, **counts, "not asked": left_out, "fails": failed}
        print(
            f"\n{name} ({source}): {counts['passed']} passed, {counts['failed']} failed, "
            f"{counts['skipped']} had nothing to say, {len(left_out)} not asked"
        )
        for check, reason in failed.items():
            print(f"    {check}: {reason[:110]}")
    return {"command": "python benchmarks/conformance.py peers", "table": table}


def main() -> None:
    """Run one part and add it to the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["ours", "peers"])
    part = parser.parse_args().part
    torch.set_num_threads(1)
    found = ours() if part == "ours" else peers()
    results = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    results[part] = found
    RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
