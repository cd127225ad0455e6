"""What is chosen for a planner: layouts, the fewest GPUs, changes that really make it fit."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from paramcalc.deploy import choices, hardware
from paramcalc.deploy.engine import Engine
from paramcalc.deploy.figures import GIB
from paramcalc.deploy.fit import MOST_GPUS, Deployment, Load
from paramcalc.deploy.parallel import Layout
from paramcalc.errors import InputError
from tests.conftest import preset

H100 = hardware.find("h100").visible_bytes


def test_layouts_stay_in_a_node() -> None:
    ledger = preset("llama3-70b").ledger
    assert [(x.tp, x.pp) for x in choices.layouts(ledger, 16)] == [(8, 2), (4, 4), (2, 8), (1, 16)]
    assert [(x.tp, x.pp) for x in choices.layouts(ledger, 6)] == [(2, 3), (1, 6)]
    assert list(choices.layouts(ledger, 97)) == []
    assert choices.chosen(preset("gpt2"), 8) == Layout(tp=4, pp=2)  # 12 heads
    with pytest.raises(InputError, match=r"^gpus = 97: no tp up to 8 and pp"):
        choices.chosen(preset("llama3-70b"), 97)


def test_fewest() -> None:
    """Llama 3 70B in 16 bits is 131.4 GiB: two GPUs of 80 have no room left beside it."""
    small = Engine(max_seqs=1, reserve=0)
    kinds = {
        "a": (H100, Engine()),
        "b": (2 * H100 + 30 * GIB, Engine()),
        "c": (2**60, Engine()),
        "d": (GIB, Engine()),
        "e": (H100, small),  # 71.3 GiB for 65.7 of weights, 1.25 of cache and a step's 1.4
    }
    load = Load(8192)
    found = choices.fewest(preset("llama3-70b"), load, kinds, "bf16", "bf16")
    sizes = {name: d and d.layout.gpus for name, d in found.items()}
    assert sizes == {"a": 3, "b": 1, "c": 1, "d": None, "e": 2}
    three = found["a"]
    assert three is not None
    assert three.fits(load, H100)
    for size in (1, 2):
        for layout in choices.layouts(preset("llama3-70b").ledger, size):
            assert not Deployment(preset("llama3-70b"), layout).fits(load, H100)


@pytest.mark.parametrize(
    ("name", "load"), [("llama3.1-70b", Load(32_768, 16)), ("gpt2-xl", Load(1024, 3000))]
)
def test_no_number_of_gpus_in_a_node_nor_of_nodes_is_passed_over(name: str, load: Load) -> None:
    """80 layers in 5 stages are enough where 4 are not: the changes and the table say 5. Beyond
    eight, GPUs come by the eight."""
    model = preset(name)
    for size in [*range(2, 8), *range(8, MOST_GPUS, 8)]:
        held = [
            layout
            for layout in choices.layouts(model.ledger, size)
            if Deployment(model, layout).fits(load, H100)
        ]
        if held:
            break
    (more,) = [
        change
        for change in choices.changes(Deployment(model, Layout()), load, H100)
        if change.option == "--gpus"
    ]
    assert more.value.split()[0] == str(size)
    found = choices.fewest(model, load, {"h100": (H100, Engine())}, "bf16", "bf16")["h100"]
    assert found is not None
    assert found.layout == held[0]


CASES = [
    ("qwen3-32b", Layout(), "bf16", "bf16", Load(32_000)),
    ("llama3-70b", Layout(), "bf16", "bf16", Load(8192)),
    ("llama3-70b", Layout(tp=2, dp=2), "bf16", "fp32", Load(8192, 64)),
    ("llama3-8b", Layout(), "Q8_0", "bf16", Load(8192, 64)),
    ("llama3-70b", Layout(), "Q8_0", "bf16", Load(8192)),
    ("gpt-oss-120b", Layout(), "mxfp4", "bf16", Load(131_072, 32)),
    ("deepseek-v3", Layout(tp=1, dp=8, ep=8), "fp8-block", "bf16", Load(131_072, 64)),
    ("deepseek-v3", Layout(tp=8, pp=2), "fp8-block", "bf16", Load(131_072, 64)),
]


@pytest.mark.parametrize(("name", "layout", "dtype", "kv", "load"), CASES)
def test_each_change_makes_it_fit(
    name: str, layout: Layout, dtype: str, kv: str, load: Load
) -> None:
    d = Deployment(preset(name), layout, dtype, kv)
    assert not d.fits(load, H100)
    found = choices.changes(d, load, H100)
    assert found
    for change in found:
        changed: dict[str, Any] = {"layout": layout, "dtype": dtype, "kv": kv, "load": load}
        engine = Engine()
        match change.option:
            case "--utilization":
                engine = Engine(Fraction(change.value))
            case "--max-seqs":
                engine = Engine(max_seqs=int(change.value))
            case "--kv-dtype":
                changed["kv"] = change.value
            case "--batch":
                changed["load"] = load._replace(batch=int(change.value))
            case "--context":
                changed["load"] = load._replace(context=int(change.value))
            case "--dtype":
                changed["dtype"] = change.value
            case "--gpus":
                gpus, *words = change.value.split()
                sizes = {k[2:]: int(v) for k, v in zip(words[::2], words[1::2], strict=True)}
                changed["layout"] = Layout(**sizes)
                assert changed["layout"].gpus == int(gpus)
        other = Deployment(preset(name), changed["layout"], changed["dtype"], changed["kv"], engine)
        assert other.fits(changed["load"], H100), change
        if change.option in ("--batch", "--context"):  # the most that fits
            over = changed["load"]._replace(**{change.option[2:]: int(change.value) + 1})
            assert not other.fits(over, H100)


def options(*case: Any) -> list[str]:
    name, layout, dtype, kv, load = case
    found = choices.changes(Deployment(preset(name), layout, dtype, kv), load, H100)
    return [f"{change.option} {change.value}" for change in found]


def test_the_least_intrusive_first() -> None:
    qwen = options("qwen3-32b", Layout(), "bf16", "bf16", Load(32_000))
    assert [line.split()[0] for line in qwen] == [
        "--utilization",
        "--max-seqs",
        "--kv-dtype",
        "--context",
        "--dtype",
        "--gpus",
    ]
    # 70.6e9 weights in 6.56 bits are 58 GB of the engine's 76
    assert "--dtype Q6_K" in options("llama3-70b", Layout(), "Q8_0", "bf16", Load(8192))
    # a 4-bit release has no smaller format; a context of a hundredth is no help
    small = options("gpt-oss-120b", Layout(), "mxfp4", "bf16", Load(131_072, 64))
    assert not [line for line in small if line.startswith(("--dtype", "--context"))]


def test_arithmetic_that_the_gpu_has() -> None:
    d = Deployment(preset("llama3-70b"), Layout())
    offered = choices.changes(d, Load(8192), H100, ["int8"])
    assert "--dtype" not in [change.option for change in offered]


def test_changes_of_replicas_keep_them() -> None:
    (more,) = [
        line
        for line in options(
            "deepseek-v3", Layout(dp=8, ep=8), "fp8-block", "bf16", Load(131_072, 64)
        )
        if line.startswith("--gpus")
    ]
    assert "--dp 8" in more
    assert "--ep" in more
