"""Shapes are checked while tests run: jaxtyping's import hook over the packages named here."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from jaxtyping import config as jaxtyping_config
from jaxtyping import install_import_hook

CHECKED = ("regard.attention", "regard.models")
UNCHECKED = ("regard.attention.kernels",)  # numba and custom operators fail under the hook

# The tensors of tests are small: threads only get in each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--no-shapes",
        action="store_true",
        help="do not check shapes and types at run time; torch.compile needs that",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--no-shapes"):
        return
    manager = install_import_hook(CHECKED, "beartype.beartype")
    instrumented = manager.hook.should_instrument

    def should_instrument(name: str) -> bool:
        left_out = any(name == p or name.startswith(f"{p}.") for p in UNCHECKED)
        return instrumented(name) and not left_out

    manager.hook.should_instrument = should_instrument
    config.add_cleanup(manager.uninstall)


@pytest.fixture
def without_shapes() -> Iterator[None]:
    """Switch the checks off, so that a test sees the errors that users see."""
    before = jaxtyping_config.jaxtyping_disable
    jaxtyping_config.update("jaxtyping_disable", True)
    yield
    jaxtyping_config.update("jaxtyping_disable", before)
