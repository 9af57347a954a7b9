"""Measure how long `regard --help` and `import regard` take, in fresh processes.

    python benchmarks/startup.py

Prints the median of 15 runs after a warm-up, beside that of an empty Python process, and what heavy
packages were loaded; writes `benchmarks/results/startup.json`.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

RUNS = 15
HEAVY = ("torch", "numpy", "click", "rich", "PIL", "tokenizers", "numba", "pydantic")
LOADED = f"import sys, regard; print([m for m in {HEAVY!r} if m in sys.modules])"


def median(command: list[str]) -> float:
    """Run a command some times and give the median in milliseconds."""
    times = []
    for _ in range(RUNS + 1):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(1000 * (time.perf_counter() - start))
    return round(statistics.median(times[1:]), 1)


def main() -> None:
    """Measure and print."""
    command = shutil.which("regard")
    if command is None:
        raise SystemExit("regard is not installed here")
    empty = median([sys.executable, "-c", "pass"])
    imported = median([sys.executable, "-c", "import regard"])
    loaded = subprocess.run(
        [sys.executable, "-c", LOADED], check=True, capture_output=True, text=True
    )
    report = {
        "command": "python benchmarks/startup.py",
        "empty process ms": empty,
        "import regard ms": round(imported - empty, 1),
        "import regard, whole process ms": imported,
        "regard --help, whole process ms": median([command, "--help"]),
        "loaded by import regard": loaded.stdout.strip(),
    }
    print(json.dumps(report, indent=1))
    path = Path(__file__).parent / "results" / "startup.json"
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
