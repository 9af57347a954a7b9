"""`regard evaluate`: how good a model is on files it has not seen."""

from __future__ import annotations

from pathlib import Path

import click

from regard.cli.common import (
    check_output,
    device_option,
    force_option,
    json_option,
    load_torch,
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
    "--save", type=click.Path(path_type=Path), help="Write what the model said, a line each."
)
@click.option(
    "--source-column",
    help="Of what is read in a TSV file: a number from 0, or a name in its header.",
)
@click.option("--target-column", help="The same for the references or labels.")
@click.option("--header/--no-header", default=None, help="Whether a TSV's first line holds names.")
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
    source_column: str | None,
    target_column: str | None,
    header: bool | None,
    force: bool,
    as_json: bool,
    device: str,
    threads: int | None,
) -> None:
    """Score RUN (a run, a model's folder or a bundled name) on FILES.

    FILES are a TSV file or two parallel files, for a captioner its captions, for a classifier a
    JSONL or TSV file, or a folder that holds a folder of pictures for each label, for a model of
    sequences a table, for one that answers any number of files of stories; by default the test
    files of the run's config.
    """
    if save is not None:
        check_output(save, force=force, inputs=files)
    load_torch()
    set_threads(threads)
    from regard.saving import write_file
    from regard.tasks.base import open_model, task_kind

    kind = task_kind(open_model(model).config["task"])
    given = {"source_column": source_column, "target_column": target_column, "header": header}
    reading = {name: _number(value) for name, value in given.items() if value is not None}
    paths = [str(file) for file in files]
    result = kind.evaluate(model, paths, beam=beam, device=device, reading=reading)
    if save is not None:
        write_file(save, "".join(line + "\n" for line in result.written), overwrite=force)
    if as_json:
        write_json(result.table())
    else:
        write_lines(*result.lines())


def _number(value: str | bool) -> str | int | bool:
    return int(value) if isinstance(value, str) and value.isdecimal() else value
