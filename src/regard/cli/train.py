"""`regard train`: a model from a config."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import click

from regard.cli.common import json_option, load_torch, write_json, write_lines


@click.command("train")
@click.argument("config", type=click.Path(path_type=Path))
@click.argument("changes", nargs=-1, metavar="[KEY=VALUE]...")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="The run's folder; by default runs/NAME, after the config or its folder.",
)
@click.option("--resume", is_flag=True, help="Go on from the newest checkpoint in that folder.")
@click.option(
    "--allow-change",
    "allowed",
    multiple=True,
    metavar="FIELD",
    help="Go on although this field has changed; may be repeated.",
)
@click.option("--device", help="auto, cpu, cuda, cuda:N or mps; replaces training.device.")
@click.option("--threads", type=click.IntRange(1, 1024), help="Replaces training.threads.")
@click.option("--seed", type=click.IntRange(0), help="Replaces training.seed.")
@click.option("--quiet", is_flag=True, help="Show neither progress nor evaluations.")
@json_option
def command(  # noqa: PLR0913 - one argument for each option
    *,
    config: Path,
    changes: tuple[str, ...],
    output: Path | None,
    resume: bool,
    allowed: tuple[str, ...],
    device: str | None,
    threads: int | None,
    seed: int | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Train a model from CONFIG, a TOML file; KEY=VALUE replaces what it says.

    Checkpoints are saved on the way and when Ctrl-C or SIGTERM stops the training; --resume goes on
    as if it had never stopped, to the last bit.
    """
    load_torch()
    from regard.tasks.base import config_kind
    from regard.training import RunOptions

    given = {"device": device, "threads": threads, "seed": seed}
    shortcuts = [f"training.{name}={_toml(v)}" for name, v in given.items() if v is not None]
    # `regard new` calls every config config.toml: its folder's name tells them apart.
    name = config.resolve().parent.name if config.stem == "config" else config.stem
    folder = Path("runs") / (name or "config") if output is None else output
    options = RunOptions(folder, resume=resume, allow_change=allowed, quiet=quiet)
    outcome = config_kind(config).train(config, [*changes, *shortcuts], options)
    if as_json:
        numbers = {n: v if math.isfinite(v) else None for n, v in outcome.metrics.items()}
        write_json({"model": str(outcome.folder), "steps": outcome.steps, "metrics": numbers})
        return
    scores = "  ".join(f"{name} {value:.4g}" for name, value in outcome.metrics.items())
    sys.stderr.write(f"{outcome.steps} steps  {scores}\n")
    write_lines(str(outcome.folder))


def _toml(value: str | int) -> str:
    return json.dumps(value)  # a string of JSON is one of TOML
