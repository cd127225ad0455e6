"""What a GPU lacks for weights in a format, by the datasheets."""

from __future__ import annotations

import pytest

from paramcalc.deploy import hardware
from paramcalc.deploy.arithmetic import lack
from paramcalc.deploy.serving import machine
from paramcalc.errors import InputError
from tests.conftest import preset


@pytest.mark.parametrize(
    ("gpu", "dtype", "says"),
    [
        ("t4", "bf16", "t4-16gb has no bf16"),  # Turing: FP16, INT8, INT4 alone
        ("t4", "fp16", None),
        ("t4", "fp8", None),  # unpacked to fp16
        ("v100-sxm-32gb", "bf16", "v100-sxm-32gb has no bf16"),
        ("v100-sxm-32gb", "int8", "v100-sxm-32gb has no int8"),
        ("h100", "mxfp4", None),
    ],
)
def test_what_a_gpu_lacks(gpu: str, dtype: str, says: str | None) -> None:
    unit, fmt = hardware.find(gpu), preset("llama3-8b").format(dtype)
    assert lack(unit, fmt) == lack(unit, fmt, timed=False) == says
    if says is None:
        assert machine(unit, fmt, 60, 80, 0).peak > 0
    else:
        with pytest.raises(InputError):
            machine(unit, fmt, 60, 80, 0)


def test_without_rates_only_times_are_missed() -> None:
    apple, fmt = hardware.find("m3-ultra-512gb"), preset("llama3-8b").format("bf16")
    assert lack(apple, fmt, timed=False) is None
    assert lack(apple, fmt) == "m3-ultra-512gb has no published rates"
    only = hardware.find("h100")._replace(name="only", peaks={"int8": 10**15})
    said = lack(only, preset("llama3-8b").format("int8"))
    assert said == "only has no bf16 or fp16 for what int8 leaves in 16 bits"
    assert lack(only, preset("llama3-8b").format("int8"), timed=False) is None
