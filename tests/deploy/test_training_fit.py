"""What makes a plan fit, and the layout that is chosen."""

from __future__ import annotations

import pytest

import paramcalc
from paramcalc.deploy import hardware, optimizers, training_fit
from paramcalc.deploy.lora import Lora
from paramcalc.deploy.parallel import Layout
from paramcalc.deploy.recipe import Recipe
from paramcalc.deploy.training import Plan
from paramcalc.errors import InputError

H100 = hardware.find("h100").visible_bytes


def asked(plan: Plan, capacity: int = H100) -> dict[str, str]:
    return {change.option: change.value for change in training_fit.changes(plan, capacity)}


def test_every_change_is_enough_by_itself() -> None:
    model = paramcalc.load("llama3-8b")
    plan = Plan(model, Layout(dp=4), Recipe(seq=8192, micro_batch=2, zero=0))
    assert not plan.fits(H100)
    found = asked(plan)
    for option, how in {
        "--zero": Recipe(seq=8192, micro_batch=2, zero=int(found.get("--zero", 0))),
        "--recompute": plan.recipe._replace(recompute=found.get("--recompute", "none")),  # type: ignore[arg-type]
        "--micro-batch": plan.recipe._replace(micro_batch=int(found.get("--micro-batch", 2))),
    }.items():
        if option in found:
            assert Plan(model, plan.layout, how).fits(H100), option
    tp, _, pp, _, dp = found["--tp"].split()
    assert Plan(model, Layout(tp=int(tp), pp=int(pp), dp=int(dp)), plan.recipe).fits(H100)


def test_zero_3_and_8_bit_moments() -> None:
    model = paramcalc.load("llama3-8b")
    plan = Plan(model, Layout(dp=8), Recipe(seq=8192, zero=1, grad_dtype="fp32"))
    assert not plan.fits(H100)
    found = asked(plan)
    assert {"--zero": "2", "--grad-dtype": "bf16"}.items() <= found.items()
    alone = Plan(model, Layout(), Recipe(seq=2048, recompute="full"))
    small = alone.recipe._replace(optimizer=optimizers.find("adamw-8bit"))
    capacity = Plan(model, Layout(), small).need
    assert asked(alone, capacity)["--optimizer"] == "adamw-8bit"
    assert "--optimizer" not in asked(alone, capacity - 1)


def test_a_quantized_base_and_sequence_parallelism() -> None:
    model = paramcalc.load("llama3-8b")
    adapters = Plan(model, Layout(), Recipe(seq=512, lora=Lora(16), recompute="full"))
    assert asked(adapters, 16 * 10**9)["--base-dtype"] == "nf4-dq"
    how = Recipe(seq=8192, sequence_parallel=False)
    whole = Plan(model, Layout(tp=4), how)
    capacity = Plan(model, Layout(tp=4), how._replace(sequence_parallel=True)).need
    assert not whole.fits(capacity)
    assert "--sequence-parallel" in asked(whole, capacity)


def test_the_smallest_layout_that_fits() -> None:
    model = paramcalc.load("llama3-70b")
    how = Recipe(seq=8192)
    plan = training_fit.chosen(model, 64, Layout(), how, H100)
    assert plan.fits(H100)
    size = plan.layout.tp * plan.layout.pp
    for other in training_fit.layouts(model, 64, Layout(), how):
        if other.layout.tp * other.layout.pp < size:
            assert not other.fits(H100)
    assert plan.layout.gpus == 64


def test_where_nothing_fits_the_least_is_shown() -> None:
    model = paramcalc.load("llama3.1-405b")
    plan = training_fit.chosen(model, 8, Layout(), Recipe(seq=8192), H100)
    assert not plan.fits(H100)
    needs = [p.need for p in training_fit.layouts(model, 8, Layout(), Recipe(seq=8192))]
    assert plan.need == min(needs)
    more = asked(plan)["--gpus"]
    assert int(more) > 8


@pytest.mark.parametrize(
    ("gpus", "base", "how", "message"),
    [
        (6, Layout(cp=4), Recipe(), "gpus = 6: cp = 4 must divide it"),
        (4, Layout(ep=3), Recipe(), "ep = 3"),
        (4, Layout(), Recipe(global_batch=2, micro_batch=3), "global_batch = 2"),
    ],
)
def test_no_layout(gpus: int, base: Layout, how: Recipe, message: str) -> None:
    with pytest.raises(InputError) as caught:
        training_fit.chosen(paramcalc.load("mixtral-8x7b"), gpus, base, how, H100)
    assert str(caught.value).startswith(message)


def test_the_largest_divisor_that_fits_is_found_at_once() -> None:
    """2^4 x 3^2 x 5 x 7 x 11 x 13 has 240 divisors; each sequence adds the same activations."""
    model = paramcalc.load("gpt2")
    one, two = (Plan(model, Layout(), Recipe(seq=1024, micro_batch=n)).need for n in (1, 2))
    wide = Plan(model, Layout(), Recipe(seq=1024, micro_batch=720_720))
    most = (H100 - one) // (two - one) + 1
    divisor = max(n for n in range(1, most + 1) if 720_720 % n == 0)
    assert asked(wide)["--micro-batch"] == str(divisor)
    assert Plan(model, Layout(), Recipe(seq=1024, micro_batch=divisor)).fits(H100)


@pytest.mark.parametrize("optimizer", ["adamw", "adamw-8bit", "adafactor"])
@pytest.mark.parametrize("lora", [None, Lora(8, ("q", "down"))])
@pytest.mark.parametrize("zero", [0, 1, 2, 3])
@pytest.mark.parametrize("base", [Layout(), Layout(ep=4), Layout(cp=2)])
def test_no_layout_needs_less_than_its_share_of_the_states(
    optimizer: str, lora: Lora | None, zero: int, base: Layout
) -> None:
    """Every byte of the states is on some GPU, those that ZeRO leaves whole on each replica's."""
    model = paramcalc.load("mixtral-8x7b")
    how = Recipe(optimizers.find(optimizer), zero=zero, lora=lora, seq=128)
    plans = list(training_fit.layouts(model, 16, base, how))
    assert plans
    for plan in plans:
        alone = Plan(model, plan.layout, how)
        assert plan.least == alone.least <= alone.need
