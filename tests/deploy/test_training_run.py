"""FLOPs, time, energy and money of runs; published runs beside them."""

from __future__ import annotations

from fractions import Fraction

import pytest

import paramcalc
from paramcalc.deploy import hardware, optimizers, training_figures
from paramcalc.deploy.lora import Lora
from paramcalc.deploy.parallel import Layout
from paramcalc.deploy.recipe import Recipe
from paramcalc.deploy.training import Plan
from paramcalc.deploy.training_run import Run
from paramcalc.errors import InputError

TRILLION = 10**12
H100_PEAK = 989_400_000_000_000


def run(model: str, layout: Layout | None = None, how: Recipe | None = None, **more: object) -> Run:
    plan = Plan(paramcalc.load(model), layout or Layout(), how or Recipe(seq=8192))
    return Run(plan, hardware.find("h100"), **more)  # type: ignore[arg-type]


def llama_405b(**more: object) -> Run:
    layout = Layout(tp=8, pp=16, dp=128)
    how = Recipe(seq=8192, global_batch=2048)
    return run("llama3.1-405b", layout, how, tokens=15_600 * 10**9, **more)


def test_llama_3_405b() -> None:
    """arXiv:2407.21783: 3.8e25 FLOPs (6 N D) on 15.6T tokens; 16,384 H100 at 41% MFU in steps of
    2,048 sequences of 8,192 (table 4); the model card says 30.84M GPU-hours, which hold stops, the
    longer contexts and the shorter batches of the start: ours is a seventh less."""
    found = llama_405b(mfu=Fraction(41, 100))
    assert found.by_convention()["6n"] / 1e25 == pytest.approx(3.8, abs=0.05)
    assert found.plan.layout.gpus == 16_384
    assert found.plan.step_tokens == 2048 * 8192
    assert float(found.gpu_hours) / 30.84e6 == pytest.approx(0.87, abs=0.03)
    assert found.plan.fits(found.gpu.visible_bytes)  # they trained without recomputation


@pytest.mark.parametrize(
    ("model", "gpu_hours", "percent"),
    [("llama3-8b", 1_300_000, 16.7), ("llama3-70b", 6_400_000, 29.6)],
)
def test_llama_3_runs_imply_a_utilization(model: str, gpu_hours: int, percent: float) -> None:
    """The model card of Llama 3: 15T tokens, H100 80GB GPU-hours, cumulative over experiments; so
    the MFU of the final run was higher than what they imply."""
    speed = 15 * TRILLION // (gpu_hours * 3600)
    found = run(model, tokens=15 * TRILLION, tokens_per_second=speed)
    assert float(found.mfu * 100) == pytest.approx(percent, abs=0.2)


def test_training_flops_by_hand() -> None:
    """Llama 3 8B on two sequences of 8,192: 2 FLOPs a weight and token, 4 x 4,096 a causal pair and
    layer, three times; a lookup is free, the head is not."""
    n = 8192
    matrices = 8_030_261_248 - 128_256 * 4096 - 65 * 4096
    forward = 2 * matrices * n + 32 * 4 * 4096 * n * (n + 1) // 2
    assert run("llama3-8b", tokens=2 * n).model_flops == 2 * 3 * forward


@pytest.mark.parametrize(
    ("tokens", "steps"),
    [
        (1, 1),
        (8192, 1),
        (8 * 8192, 1),
        (8 * 8192 + 1, 2),
        (12 * 8192, 2),
        (15 * TRILLION, 228881836),
    ],
)
def test_a_run_takes_whole_steps(tokens: int, steps: int) -> None:
    """Eight GPUs, a sequence of 8,192 each: 65,536 tokens; 15e12 are 228,881,835.9 steps."""
    found = run("llama3-8b", Layout(dp=8), tokens=tokens)
    step = run("llama3-8b", Layout(dp=8))
    assert (found.steps, found.processed) == (steps, steps * 65_536)
    assert found.model_flops == steps * 8 * paramcalc.load("llama3-8b").flops.training(8192)
    assert found.seconds == steps * step.seconds
    assert found.tokens_per_second == step.tokens_per_second
    figures = {f.key: f.value for group in training_figures.groups(found) for f in group.figures}
    assert figures["step_time"] == int(step.seconds * 10**6)
    assert figures["tokens"] == tokens
    rounded = None if tokens % 65_536 == 0 else steps * 65_536
    assert figures.get("processed_tokens") == rounded
    assert figures["flops_6n"] == 6 * 8_030_261_248 * steps * 65_536


def test_energy_of_a_step_is_in_joules() -> None:
    """A step of Llama 3 8B on 8,192 tokens at 40% of an H100 is 1.0654 s at 700 W: 745 J."""
    found = run("llama3-8b")
    assert found.joules == int(found.seconds * 700) == 745
    assert found.watt_hours == 0


def test_the_hardware_cannot_pass_its_peak() -> None:
    """Full recomputation repeats a forward pass but for the head: 3 of (4 - h / f)."""
    how = Recipe(seq=8192, recompute="full")
    n = 8192
    head = 2 * 128_256 * 4096 * n
    forward = paramcalc.load("llama3-8b").flops.training(n) // 3
    most = Fraction(3 * forward, 4 * forward - head)
    assert run("llama3-8b", how=how, mfu=most).hfu == 1
    with pytest.raises(InputError) as caught:
        run("llama3-8b", how=how, mfu=most + Fraction(1, 10**6))
    assert f"at most {int(most * 10**4) / 10**4:g}" in str(caught.value)
    speed = int(H100_PEAK * n / Fraction(4 * forward - head))
    assert run("llama3-8b", how=how, tokens_per_second=speed).hfu <= 1
    with pytest.raises(InputError, match=f"at their peak do {speed:,}; lower it"):
        run("llama3-8b", how=how, tokens_per_second=speed + 1)


def test_a_float_is_what_it_is_written_as() -> None:
    assert run("llama3-8b", mfu=0.4).seconds == run("llama3-8b", mfu=Fraction(2, 5)).seconds
    assert run("llama3-8b", pue=1.2).pue == Fraction(6, 5)


def test_recomputation_adds_a_forward_pass_of_the_layers() -> None:
    n = 8192
    full = run("llama3-8b", how=Recipe(seq=n, recompute="full"), tokens=n)
    forward = full.model_flops // 3
    assert full.again_flops == forward - 2 * 128_256 * 4096 * n  # no head
    between = run("llama3-8b", how=Recipe(seq=n, recompute="selective"), tokens=n)
    assert between.again_flops == 32 * 4 * 4096 * n * (n + 1) // 2
    assert full.mfu == Fraction(2, 5)
    assert full.hfu == Fraction(2, 5) * Fraction(full.hardware_flops, full.model_flops)


def test_time_energy_and_money_by_hand() -> None:
    gpu = hardware.find("h100")._replace(price_per_hour_micro=2_500_000)
    plan = Plan(paramcalc.load("llama3-8b"), Layout(dp=1024), Recipe(seq=8192))
    found = Run(plan, gpu, 15 * TRILLION, Fraction(2, 5), pue=Fraction(6, 5))
    seconds = Fraction(found.model_flops) * 5 / (2 * 1024 * H100_PEAK)
    assert found.seconds == seconds
    hours = seconds * 1024 / 3600
    assert found.gpu_hours == hours
    assert found.watt_hours == int(hours * 700 * 6 / 5)
    assert 0 <= found.cost - hours * 2_500_000 < 1  # type: ignore[operator]
    assert found.steps == -(-15 * TRILLION // (1024 * 8192))


def test_speed_and_utilization_are_each_others_inverse() -> None:
    by_mfu = run("llama3-8b", Layout(dp=8), tokens=10**9, mfu=Fraction(3, 8))
    speed = by_mfu.tokens_per_second
    by_speed = run("llama3-8b", Layout(dp=8), tokens=10**9, tokens_per_second=speed)
    assert 0 <= Fraction(3, 8) - by_speed.mfu < Fraction(1, 10**4)
    whole = run("llama3-8b", Layout(dp=8), tokens=8192 * 1000, tokens_per_second=speed)
    model = paramcalc.load("llama3-8b")
    assert whole.mfu == model.flops.mfu(speed, 8 * H100_PEAK, 8192)


def test_without_a_price_there_is_no_money() -> None:
    found = run("llama3-8b", tokens=10**9)
    assert found.cost is None
    figures = [f for group in training_figures.groups(found) for f in group.figures]
    assert next(f for f in figures if f.key == "cost").value is None


def test_without_watts_there_is_no_energy() -> None:
    gpu = hardware.find("h100")._replace(watts=None)
    plan = Plan(paramcalc.load("gpt2"), Layout(), Recipe())
    assert Run(plan, gpu).watt_hours is None


def test_checkpoints() -> None:
    """Weights in BF16; to resume, 14 bytes a parameter: and master, m and v in FP32."""
    n = 8_030_261_248
    found = run("llama3-8b")
    assert (found.checkpoint_weights, found.checkpoint) == (2 * n, 14 * n)
    lean = run("llama3-8b", how=Recipe(seq=8192, optimizer=optimizers.find("sgd"), master=False))
    assert lean.checkpoint == lean.checkpoint_weights == 2 * n
    adapters = run("llama3-8b", how=Recipe(seq=8192, lora=Lora(16)))
    assert adapters.checkpoint_weights == 4 * 41_943_040
    assert adapters.checkpoint == 12 * 41_943_040


def test_one_step_where_no_tokens_are_stated() -> None:
    found = run("llama3-8b", Layout(dp=4), Recipe(seq=8192, global_batch=16))
    assert (found.tokens, found.steps) == (16 * 8192, 1)


def test_the_peak_is_that_of_the_format() -> None:
    assert run("gpt2", how=Recipe(dtype="fp16")).compute == "fp16"
    assert run("gpt2", how=Recipe(dtype="fp32")).compute == "bf16"
    assert run("gpt2", how=Recipe(), compute="fp8").peak == 1_978_900_000_000_000


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"tokens": 0}, "tokens = 0: must be a whole number of at least 1"),
        ({"tokens": 1.5}, "tokens = 1.5: must be a whole number of at least 1"),
        ({"tokens": 10**18 + 1}, "tokens = 1,000,000,000,000,000,001: must be at most"),
        ({"tokens_per_second": 0}, "tokens_per_second = 0: must be a whole number"),
        ({"mfu": float("nan")}, "mfu = nan: must be a number"),
        ({"mfu": "0.4"}, "mfu = 0.4: must be a number; as Fraction"),
        ({"compute": "int8"}, "compute = int8: integers carry no gradients; take one of fp64,"),
        ({"compute": "INT4"}, "compute = INT4: integers carry no gradients"),
        ({"mfu": Fraction(3, 2)}, "mfu = 1.5: must be above 0 and at most 1"),
        ({"mfu": Fraction(0)}, "mfu = 0: must be above 0"),
        ({"mfu": Fraction(1, 2), "tokens_per_second": 9}, "mfu and tokens_per_second: each"),
        ({"tokens_per_second": 10**6}, "tokens_per_second = 1,000,000: 1 h100-sxm-80gb at"),
        ({"compute": "fp4"}, "compute = fp4: h100-sxm-80gb has no such peak; take one of"),
        ({"pue": Fraction(1, 2)}, "pue = 0.5: must be from 1"),
    ],
)
def test_bad_input(more: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        run("llama3-8b", **more)
    assert str(caught.value).startswith(message)
