"""The names of the room load when they are touched, and reading text loads no torch."""

import subprocess
import sys

import pytest

import regard.data


def test_every_name_is_there() -> None:
    assert all(getattr(regard.data, name) for name in regard.data.__all__)
    assert dir(regard.data) == regard.data.__all__
    with pytest.raises(AttributeError, match="no attribute 'tokenizer'"):
        regard.data.tokenizer  # noqa: B018


def test_text_and_tokens_load_neither_torch_nor_jieba() -> None:
    code = (
        "import sys, regard.data as data\n"
        "data.read_tsv, data.Tokenizer, data.Grammar\n"
        "sys.exit(any(name in sys.modules for name in ('torch', 'rjieba')))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_pictures_load_no_torch() -> None:
    code = (
        "import sys, regard.data as data\n"
        "data.open_image, data.read_captions, data.check_images, data.FeatureCache, data.Scenes\n"
        "sys.exit('torch' in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
