import pytest
import torch
from torch.autograd import forward_ad

from regard.attention.kernels import choosing, cpu
from regard.errors import ConfigError


@pytest.mark.parametrize(("setting", "kernel"), [("auto", cpu), ("cpu", cpu), ("reference", None)])
def test_the_setting_decides(monkeypatch, setting, kernel):
    monkeypatch.setenv("REGARD_KERNEL", setting)
    assert choosing.kernel([torch.ones(2)]) is kernel


def test_without_a_setting_the_device_decides(monkeypatch):
    monkeypatch.delenv("REGARD_KERNEL", raising=False)
    assert choosing.kernel([torch.ones(2)]) is cpu
    assert choosing.kernel([torch.ones(2, dtype=torch.float64)]) is None
    assert choosing.kernel([torch.ones(2, device="meta")]) is None


def test_an_unknown_setting_is_named(monkeypatch):
    monkeypatch.setenv("REGARD_KERNEL", "cpuu")
    with pytest.raises(ConfigError, match=r"REGARD_KERNEL must be .*; got 'cpuu': .*cpu"):
        choosing.kernel([torch.ones(2)])


def test_plain_tensors():
    plain = torch.ones(2)
    assert choosing.plain([plain, torch.nn.Parameter(plain)])
    assert not choosing.plain([torch.ones(2, dtype=torch.complex64).conj().imag])
    seen = []
    torch.func.vmap(lambda x: seen.append(choosing.plain([x])) or x)(plain)
    with forward_ad.dual_level():
        seen.append(choosing.plain([plain]))
    assert seen == [False, False]
    assert choosing.plain([plain])
