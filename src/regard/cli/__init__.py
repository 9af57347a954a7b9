"""The command `regard`: one file for each verb.

What the verbs need is imported when they run, so that `regard --help` loads no torch.
"""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command with the arguments of the process, and exit."""
    from regard.cli.app import run

    run()
