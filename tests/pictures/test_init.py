import pytest

from regard import pictures


def test_every_public_name_is_there():
    assert dir(pictures) == sorted(pictures.__all__)
    for name in pictures.__all__:
        assert callable(getattr(pictures, name))


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="no attribute 'render_pdf'"):
        pictures.render_pdf  # noqa: B018
