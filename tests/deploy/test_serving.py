"""Serving: rates, stages, replicas, money and limits, each by arithmetic written out here."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest

from paramcalc import formats
from paramcalc.deploy import hardware, serving, serving_figures
from paramcalc.deploy.engine import Engine
from paramcalc.deploy.fit import Deployment
from paramcalc.deploy.hardware_file import priced
from paramcalc.deploy.parallel import Layout
from paramcalc.deploy.roofline import Step
from paramcalc.deploy.serving import Service, Workload, machine
from paramcalc.errors import InputError
from paramcalc.spelling import shown
from tests.conftest import preset

SECOND = 10**9


@dataclass
class Asked:
    """A service in short: what a test does not name is what ``paramcalc serve`` assumes."""

    model: str = "llama3.1-8b"
    gpu: str = "h100"
    layout: Layout = field(default_factory=Layout)
    prompt: int = 1024
    output: int = 256
    batch: int = 16
    dtype: str = "bf16"
    price: str | None = None
    engine: Engine = field(default_factory=Engine)
    shares: tuple[int, int] = (60, 80)

    def service(self) -> Service:
        gpu = hardware.find(self.gpu)
        if self.price is not None:
            gpu = priced(gpu, self.price)
        deployment = Deployment(preset(self.model), self.layout, self.dtype, "bf16", self.engine)
        machine = serving.machine(gpu, deployment.format, *self.shares, 10_000)
        return Service(deployment, gpu, machine, Workload(self.prompt, self.output, self.batch))


def test_the_machine_is_the_datasheet() -> None:
    """H100 SXM: 3.35 TB/s, 989.4 and 1,978.9 TFLOP/s dense, 900 GB/s both ways."""
    machine = Asked(dtype="fp8").service().machine
    assert machine[:3] == (3_350_000, 1_978_900, 450_000)
    assert machine.plain == 989_400
    assert Asked().service().machine.plain is None


@pytest.mark.parametrize(
    ("gpu", "dtype", "peak", "plain"),
    [
        ("h100", "awq", 989_400, 989_400),  # weight-only formats are unpacked to 16 bits
        ("h100", "gptq", 989_400, 989_400),
        ("h100", "nf4", 989_400, 989_400),
        ("h100", "mxfp4", 989_400, 989_400),  # no FP4 before Blackwell
        ("a100", "fp8", 312_000, 312_000),  # no FP8 before Ada
        ("a100", "int8", 624_000, 312_000),
        ("h100", "q4_k_m", 989_400, None),
        ("v100-sxm-32gb", "fp8", 125_000, 125_000),  # FP16 alone
        ("v100-sxm-32gb", "fp16", 125_000, None),
    ],
)
def test_the_arithmetic_of_a_format(gpu: str, dtype: str, peak: int, plain: int | None) -> None:
    machine = Asked(gpu=gpu, dtype=dtype).service().machine
    assert (machine.peak, machine.plain) == (peak, plain)


@pytest.mark.parametrize(
    ("gpu", "dtype", "message"),
    [
        ("v100-sxm-32gb", "bf16", "^dtype = bf16: needs bf16, and the hardware has fp64, fp32"),
        ("h100", "q9_k", "^dtype = q9_k: unknown"),
        ("m4-max-64gb", "bf16", r"no peak is published for m4-max-64gb; .*\(--hardware\)"),
    ],
)
def test_arithmetic_that_is_not_there(gpu: str, dtype: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Asked(gpu=gpu, dtype=dtype).service()


def test_hardware_without_16_bits_or_too_slow() -> None:
    gpu = hardware.find("h100")._replace(peaks={"int8": 10**15})
    fmt = preset("llama3.1-8b").format("int8")
    with pytest.raises(InputError, match=r"^dtype = int8: leaves tensors in 16 bits, and no"):
        serving.machine(gpu, fmt, 60, 80, 0)
    slow = hardware.find("h100")._replace(bandwidth=10**6)
    with pytest.raises(InputError, match=r"its bandwidth of 1,000,000 a second is below 100,000,"):
        serving.machine(slow, fmt, 60, 80, 0)


@pytest.mark.parametrize("name", ["bert-base", "albert-base", "modernbert-base"])
def test_what_writes_nothing_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"^model = {name}: .*; take a decoder$"):
        Asked(name).service()


@pytest.mark.parametrize("size", ["prompt", "output", "batch"])
def test_sizes_beyond_all_use(size: str) -> None:
    with pytest.raises(InputError, match=f"^{size} = 1,099,511,627,777: must be from 1 to"):
        Asked(**{size: 2**40 + 1}).service()  # type: ignore[arg-type]


def test_rates_follow_from_times() -> None:
    s = Asked().service()
    (step,), (one,) = s.steps, s.passes
    assert s.context == 1024 + 128
    assert s.step_time == step.time
    assert s.decode_rate == 16 * SECOND // step.time
    assert s.first_token == one.time
    assert s.request_time == one.time + 255 * step.time
    # eight prompts of 1,024 fill a step of 8,192 tokens
    (full,) = s.full_passes
    assert s.prompts_together == 8
    assert s.prefill_time == -(-full.time // 8)
    assert s.cycle_time == 16 * s.prefill_time + 255 * step.time
    assert s.served_rate == 16 * 256 * SECOND // s.cycle_time


def test_one_token_of_output_is_prefill_alone() -> None:
    s = Asked(output=1, batch=1).service()
    assert s.request_time == s.cycle_time == s.first_token
    assert s.context == 1024


def test_prompts_longer_than_a_step_come_one_by_one() -> None:
    s = Asked(prompt=8193).service()
    assert s.prompts_together == 1
    assert s.prefill_time == s.first_token


def step(time: int) -> Step:
    return Step(0, 0, 0, time, 0, 0)


@pytest.mark.parametrize(
    ("batch", "times", "expected"),
    [
        (8, (10, 10, 10, 10), 40),  # four parts, each through four stages
        (1, (10, 10, 10, 10), 40),  # a lone sequence passes all of them
        (8, (10, 10, 10, 30), 120),  # the slowest has four turns
        (2, (10, 10, 10, 30), 60),  # two parts: as long as one takes through all
        (3, (10, 10, 10, 30), 90),
    ],
)
def test_a_batch_over_stages(batch: int, times: tuple[int, ...], expected: int) -> None:
    s = Asked(layout=Layout(pp=4), batch=batch).service()
    s.__dict__["steps"] = [step(time) for time in times]
    assert s.step_time == expected
    assert s.decode_rate == batch * SECOND // expected


def test_stages_share_the_batch() -> None:
    """Each stage has 8 of 16 sequences; the first token passes all stages."""
    s = Asked(layout=Layout(pp=2)).service()
    kv = 16 * 2 * 8 * 128  # half of the layers
    assert [one.cache for one in s.steps] == [8 * s.context * kv * 2] * 2
    assert s.first_token == sum(one.time for one in s.passes)
    assert s.prefill_time == -(-max(one.time for one in s.full_passes) // s.prompts_together)


def test_replicas_share_the_batch() -> None:
    one, three = Asked(batch=8).service(), Asked(batch=24, layout=Layout(dp=3)).service()
    assert three.step_time == one.step_time
    assert three.decode_rate == 24 * SECOND // one.step_time
    assert three.served_rate == 3 * 8 * 256 * SECOND // one.cycle_time
    assert three.largest_batch == 3 * one.largest_batch


@pytest.mark.parametrize(("batch", "fullest"), [(1, 1), (4, 1), (5, 2), (7, 2)])
def test_a_batch_that_does_not_divide(batch: int, fullest: int) -> None:
    """The fullest replica sets the time, and GPUs that idle are paid."""
    s = Asked(batch=batch, layout=Layout(dp=4), price="3.6").service()
    assert s.replica_batch == fullest
    assert s.step_time == Asked(batch=fullest).service().step_time
    cost = s.cost_of_all(s.step_time, batch)
    assert cost is not None
    # 4 GPUs at 3.6 dollars an hour: 0.004 dollars a second
    assert abs(cost - Fraction(4_000 * 10**6 * s.step_time, batch * SECOND)) < 1


def test_money_by_hand() -> None:
    """3.6 dollars an hour are 1,000 micro-dollars a second, 2 of them for tp 2."""
    s = Asked(price="3.60", layout=Layout(tp=2)).service()
    assert s.cost(SECOND, 1_000) == 2 * 1_000 * 1_000
    assert s.cost_of_all(SECOND, 1_000) == 2 * 1_000 * 1_000
    assert s.cost(1, 10**15) == 1  # rounded up: nothing is free
    bare = Asked().service()
    assert bare.cost(SECOND, 1) is None


@pytest.mark.parametrize("name", ["llama2-7b", "mixtral-8x7b"])
def test_the_ridge(name: str) -> None:
    """Below it reading takes longer, from it on computing."""
    s = Asked(name, prompt=16, output=2).service()
    assert s.ridge is not None
    below, at = (s.at(batch=b).steps[0] for b in (s.ridge - 1, s.ridge))
    assert below.memory >= below.compute
    assert at.memory < at.compute


def test_the_ridge_by_hand() -> None:
    """W / B = b (w / P - c / B) with the sizes of Llama 2 7B (arXiv:2307.09288)."""
    s = Asked("llama2-7b", prompt=16, output=2).service()
    d, ff, v, n = 4096, 11_008, 32_000, 17
    matrices = 32 * (4 * d * d + 3 * d * ff) + v * d
    read = 2 * (matrices + 65 * d)
    work = 2 * matrices + 32 * 4 * n * d
    cache = 32 * 2 * d * n * 2
    bandwidth, peak = 2_680, 593_640  # bytes and FLOPs a nanosecond at 80% and 60%
    by_hand = Fraction(read, bandwidth) / (Fraction(work, peak) - Fraction(cache, bandwidth))
    assert s.ridge is not None
    assert abs(s.ridge - by_hand) <= 2


def test_a_long_cache_is_never_computed_from() -> None:
    """A token costs 15.6 GFLOPs, 26 us; its cache of 1,152 x 131,072 bytes takes 56 us."""
    s = Asked().service()
    assert s.ridge is None
    assert s.at(batch=2**40).bound == "memory"


def test_what_bounds_a_step() -> None:
    assert serving.bound(Step(0, 0, 0, 5, 5, 5)) == "memory"
    assert serving.bound(Step(0, 0, 0, 5, 6, 6)) == "compute"
    assert serving.bound(Step(0, 0, 0, 5, 6, 7)) == "exchange"


def test_the_largest_batch_is_the_last_that_fits() -> None:
    s = Asked().service()
    most = s.largest_batch
    assert s.at(batch=most).fits
    assert not s.at(batch=most + 1).fits
    few = Asked(engine=Engine(max_seqs=64)).service()
    assert few.largest_batch == few.sampled == 64
    assert Asked("llama3.1-405b").service().largest_batch == 0


def test_more_bandwidth_and_less_waiting() -> None:
    """At all of the peak a step of pure reading takes 80% of the time."""
    s, full = Asked().service(), Asked(shares=(100, 100)).service()
    assert s.steps[0].memory == pytest.approx(full.steps[0].memory / 0.8, rel=1e-6)
    assert s.steps[0].compute == pytest.approx(full.steps[0].compute / 0.6, rel=1e-5)


def test_an_encoder_reads_and_the_decoder_writes() -> None:
    s = Asked("t5-small", prompt=300, output=40).service()
    assert s.context == 20
    assert s.steps[0].cache == 16 * 2 * 6 * 2 * 512 * (20 + 300)
    # 300 tokens in the encoder, and the decoder's first token
    encoder = 6 * (4 * 512 * 512 + 2 * 512 * 2048) + 6 * 2 * 512 * 512
    decoder = 6 * (4 * 512 * 512 + 2 * 512 * 512 + 2 * 512 * 2048) + 32_128 * 512
    pairs = 6 * 4 * 512 * (300 * 300 + 1 + 300)
    assert s.prefill_flops == 300 * 2 * encoder + 2 * decoder + pairs


def test_flops_of_the_whole_model_do_not_depend_on_the_layout() -> None:
    one = Asked("deepseek-v3").service().prefill_flops
    assert Asked("deepseek-v3", layout=Layout(tp=8)).service().prefill_flops == one
    assert Asked("deepseek-v3", layout=Layout(dp=8, ep=8)).service().prefill_flops == one
    assert Asked("deepseek-v3", layout=Layout(pp=4)).service().prefill_flops == one


def test_tables_hold_what_was_asked() -> None:
    s = Asked(batch=20, prompt=3000).service()
    batches = serving_figures.against_batch(s)
    assert [p.batch for p in batches if p.asked] == [20]
    assert [p.batch for p in batches if p.batch < 20] == [1, 2, 4, 8, 16]
    assert batches[-1].batch == s.largest_batch
    assert all(p.fits for p in batches)
    prompts = serving_figures.against_prompt(s)
    assert [p.prompt for p in prompts] == [256, 1024, 3000, 4096, 16_384, 65_536, 131_072 - 256]
    assert [p.prompt for p in prompts if p.asked] == [3000]
    (asked,) = (p for p in prompts if p.asked)
    assert asked.step_microseconds == -(-s.step_time // 1000)
    assert asked.cost_per_million_tokens_micro is None
    rates = [p.tokens_per_second_request for p in prompts]
    assert rates == sorted(rates, reverse=True)


def test_tables_where_nothing_fits() -> None:
    points = serving_figures.against_batch(Asked("llama3.1-405b").service())
    assert [(p.batch, p.fits) for p in points] == [(16, False)]


def test_replicas_without_a_request_are_left_out() -> None:
    points = serving_figures.against_batch(Asked(layout=Layout(dp=4), batch=64).service())
    assert [p.batch for p in points][:3] == [4, 8, 16]


def test_how_each_figure_is_known() -> None:
    s = Asked("gpt-oss-20b", dtype="mxfp4", price="2", layout=Layout(tp=2)).service()
    figures = [f for group in serving_figures.groups(s) for f in group.figures]
    known = {f.key: f.known for f in figures}
    assert len(known) == len(figures)
    assert known["prefill_flops"] == "exact"
    assert known["decode_cache_bytes"] == "derived"
    # uniform routing; the engine's share of the memory
    assert known["decode_weight_bytes"] == known["largest_served_batch"] == "assumed"
    dense = [f for group in serving_figures.groups(Asked().service()) for f in group.figures]
    assert {f.key: f.known for f in dense}["decode_weight_bytes"] == "derived"
    timed = ("microseconds", "tokens/s", "microdollars")
    assert {f.known for f in figures if f.unit in timed} == {"assumed"}
    assert all(isinstance(f.value, int) for f in figures if f.key != "ridge_batch")


def test_exchange_stands_only_where_there_is_any() -> None:
    def keys(layout: Layout) -> set[str]:
        s = Asked(layout=layout).service()
        return {f.key for group in serving_figures.groups(s) for f in group.figures}

    assert "exchange_time" not in keys(Layout()) | keys(Layout(dp=2))
    assert "exchange_time" in keys(Layout(tp=2)) & keys(Layout(pp=2))


@pytest.mark.parametrize("name", ["t5-small", "llama3.1-8b", "deepseek-v3"])
def test_stages_compute_what_the_whole_does(name: str) -> None:
    """T5's first stage is its encoder, the second its decoder, which runs for one token."""
    s = Asked(name, layout=Layout(pp=2)).service()
    assert sum(one.work for one in s.passes) == s.prefill_flops
    lone = Asked(name, batch=8).service()
    assert sum(one.work for one in s.steps) == lone.steps[0].work
    assert sum(one.weights for one in s.steps) == lone.steps[0].weights


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ((-60, 80, 0), "flops_percent = -60: must be a whole number of at least 1"),
        ((0, 80, 0), "flops_percent = 0: must be"),
        ((600, 80, 0), "flops_percent = 600: must be at most 100; lower it"),
        ((60.5, 80, 0), "flops_percent = 60.5: must be"),
        ((60, 0, 0), "bandwidth_percent = 0: must be"),
        ((60, 101, 0), "bandwidth_percent = 101: must be at most 100"),
        ((60, "80", 0), "bandwidth_percent = 80: must be"),
        ((60, 80, -1), "hop = -1: must be a whole number of at least 0"),
        ((60, 80, 0.5), "hop = 0.5: must be"),
    ],
)
def test_shares_of_a_machine(settings: tuple[Any, Any, Any], says: str) -> None:
    with pytest.raises(InputError) as error:
        machine(hardware.find("h100"), formats.find("bf16"), *settings)
    assert str(error.value).startswith(says)


@pytest.mark.parametrize("bad", [1.5, "1", True, None, 0, -1])
def test_a_workload_is_whole_and_at_least_1(bad: Any) -> None:
    gpu = hardware.find("h100")
    there = Deployment(preset("gpt2"), Layout())
    speed = machine(gpu, there.format, 60, 80, 0)
    for name in ("prompt", "output", "batch"):
        work = Workload(1, 1, 1)._replace(**{name: bad})
        with pytest.raises(InputError, match=f"^{name} = {shown(bad)}: must be a whole number"):
            Service(there, gpu, speed, work)
