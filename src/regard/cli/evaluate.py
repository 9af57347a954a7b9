"""`regard evaluate`: how good a model is on files it has not seen."""

from __future__ import annotations

from pathlib import Path

import click

from regard.cli.common import (
    check_output,
    device_option,
    force_option,
    json_option,
    set_threads,
    threads_option,
    write_json,
    write_lines,
)


@click.command("evaluate")
@click.argument("model", metavar="RUN")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--beam", type=click.IntRange(1, 1000), help="Hypotheses kept at each step.")
@click.option(
    "--save", type=click.Path(path_type=Path), help="Write the translations, a line each."
)
@force_option
@json_option
@device_option
@threads_option
def command(  # noqa: PLR0913 - one argument for each option
    *,
    model: str,
    files: tuple[Path, ...],
    beam: int | None,
    save: Path | None,
    force: bool,
    as_json: bool,
    device: str,
    threads: int | None,
) -> None:
    """Score RUN (a run, a model's folder or a bundled name) on FILES.

    FILES are a TSV file or two parallel files; by default the test files of the run's config.
    """
    if save is not None:
        check_output(save, force=force, inputs=files)
    set_threads(threads)
    from regard.saving import write_file
    from regard.tasks.base import open_model, task_kind

    kind = task_kind(open_model(model).config["task"])
    result = kind.evaluate(model, [str(file) for file in files], beam=beam, device=device)
    if save is not None:
        write_file(save, "".join(line + "\n" for line in result.written), overwrite=force)
    if as_json:
        write_json(result.table())
    else:
        write_lines(*result.lines())
