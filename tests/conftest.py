"""Shapes are checked while tests run: jaxtyping's import hook over the packages named here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from jaxtyping import config as jaxtyping_config
from jaxtyping import install_import_hook

CHECKED = ("regard.attention", "regard.memory", "regard.models")
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


REVERSAL = """\
task = "translation"
metric = "loss"

[data]
train = "train.tsv"
dev = "dev.tsv"
test = "test.tsv"
source_language = "en"
target_language = "en"
max_tokens = 12

[model]
embedding_dim = 32
dropout = 0.0
encoder = {kind = "gru", hidden_dim = 32}
decoder = {kind = "gru", hidden_dim = 32, attention_dim = 32, order = "bahdanau"}

[training]
epochs = 8
batch_tokens = 100
learning_rate = 0.01
label_smoothing = 0.0
evaluate_epochs = 100
threads = 1
device = "cpu"

[decoding]
beam = 3
maximum_length = 14
"""


@pytest.fixture(scope="session")
def reversal_run(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """A translator that has learnt to reverse six letters: `folder`, `config` and `run`.

    Nothing may be written into its folders.
    """
    from regard.data.generated import reversal
    from regard.tasks.translation_training import train_translation
    from regard.training import RunOptions

    folder: Path = tmp_path_factory.mktemp("reversal")
    for seed, (name, count) in enumerate({"train": 300, "dev": 20, "test": 20}.items(), start=1):
        pairs = reversal(count, minimum_length=2, maximum_length=6, symbols=6, seed=seed)
        lines = "".join(f"{source}\t{target}\n" for source, target in pairs)
        (folder / f"{name}.tsv").write_text(lines, encoding="utf-8")
    config = folder / "config.toml"
    config.write_text(REVERSAL, encoding="utf-8")
    train_translation(config, [], RunOptions(folder / "run", quiet=True))
    return SimpleNamespace(folder=folder, config=config, run=folder / "run")
