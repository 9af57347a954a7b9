"""`regard export`: a trained model for programs without PyTorch."""

from __future__ import annotations

from pathlib import Path

import click

from regard.cli.common import force_option, load_torch, write_lines
from regard.errors import UserError


@click.command("export")
@click.argument("model", metavar="MODEL")
@click.argument("folder", type=click.Path(path_type=Path))
@force_option
def command(*, model: str, folder: Path, force: bool) -> None:
    """Write MODEL (a run, a model's folder or a bundled name) into FOLDER as ONNX.

    A translator becomes encoder.onnx and step.onnx, one step of its decoder, both for any batch
    and any length; its tokenizers; and export.json, which names what goes in and comes out.
    """
    load_torch()
    from regard.tasks import load
    from regard.tasks.translation import Translator
    from regard.tasks.translation_export import export_translator

    loaded = load(model, device="cpu")
    if not isinstance(loaded, Translator):
        raise UserError(
            f"must be a translator to be exported; got a {type(loaded).__name__}. Translators "
            f"alone are exported yet.",
            where=model,
        )
    export_translator(loaded, folder, overwrite=force)
    for path in sorted(folder.iterdir()):
        write_lines(f"{path.name}\t{path.stat().st_size:,} bytes")
