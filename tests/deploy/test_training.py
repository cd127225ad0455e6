"""Model states and activations of a rank, against papers and sums written out by hand."""

from __future__ import annotations

import pytest

import paramcalc
from paramcalc.deploy import activations, optimizers, training_states
from paramcalc.deploy.lora import Lora
from paramcalc.deploy.parallel import Layout
from paramcalc.deploy.recipe import Recipe
from paramcalc.deploy.schedule import Schedule
from paramcalc.deploy.training import Plan
from paramcalc.deploy.training_states import Ranks
from paramcalc.errors import InputError
from paramcalc.ledger import Tensor

LLAMA3_8B = 8_030_261_248
BILLION = 10**9


def plan(model: str, layout: Layout | None = None, **how: object) -> Plan:
    return Plan(paramcalc.load(model), layout or Layout(), Recipe(**how))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("millions", "ranks", "printed"),
    [
        # Rajbhandari et al., arXiv:1910.02054, table 1: GB a GPU at stages 1, 2, 3, and figure 1
        (7_500, 1, (120, 120, 120, 120)),
        (7_500, 4, (120, 52.5, 41.3, 30)),
        (7_500, 16, (120, 35.6, 21.6, 7.5)),
        (7_500, 64, (120, 31.4, 16.6, 1.88)),
        (7_500, 256, (120, 30.4, 15.4, 0.47)),
        (128_000, 64, (2048, 536, 284, 32)),
        (1_000_000, 1024, (16000, 4011, 2013, 15.6)),
    ],
)
def test_zero(millions: int, ranks: int, printed: tuple[float, ...]) -> None:
    weights = [Tensor("weights", "ffn", (millions * 1000, 1000))]
    for zero, gigabytes in enumerate(printed):
        found = training_states.states(weights, Recipe(zero=zero), Ranks(ranks, ranks))
        assert found.total / BILLION == pytest.approx(gigabytes, rel=0.005)


def test_bytes_of_each_state() -> None:
    """BF16 weights and gradients, an FP32 master copy, and m and v in FP32."""
    states = plan("llama3-8b", zero=0).busiest.states
    n = LLAMA3_8B
    assert states == (2 * n, 0, 2 * n, 4 * n, 8 * n)


@pytest.mark.parametrize(
    ("how", "each"),
    [
        ({"grad_dtype": "fp32"}, (2, 4, 4, 8)),
        ({"dtype": "fp32"}, (4, 4, 0, 8)),
        ({"master": False}, (2, 2, 0, 8)),
        ({"optimizer": optimizers.find("adamw-bf16")}, (2, 2, 0, 4)),
        ({"optimizer": optimizers.find("lion")}, (2, 2, 4, 4)),
        ({"optimizer": optimizers.find("sgd"), "master": False}, (2, 2, 0, 0)),
    ],
)
def test_formats(how: dict[str, object], each: tuple[int, ...]) -> None:
    s = plan("llama3-8b", **how).busiest.states
    found = (s.weights, s.gradients, s.master, s.optimizer)
    assert found == tuple(size * LLAMA3_8B for size in each)


def test_experts_are_shared_out_over_their_own_ranks() -> None:
    """Mixtral, dp 8 and ep 8: a GPU has one expert of each layer, and nobody else has it."""
    found = plan("mixtral-8x7b", Layout(dp=8, ep=8), zero=1).busiest
    expert = 32 * 3 * 4096 * 14336
    rest = 46_702_792_704 - 8 * expert
    assert found.parameters == rest + expert
    assert found.states.optimizer == 8 * rest // 8 + 8 * expert
    assert training_states.ranks(Layout(dp=8, ep=8)) == (8, 1)
    assert training_states.ranks(Layout(tp=4, dp=8, ep=8)) == (8, 4)
    assert training_states.ranks(Layout(tp=4, dp=8, cp=2)) == (16, 16)
    assert training_states.ranks(Layout(dp=64, ep=8), shard_over=8) == (8, 8)


@pytest.mark.parametrize("pp", [1, 2, 4, 7])
def test_stages_hold_the_model_once(pp: int) -> None:
    found = plan("llama3-8b", Layout(pp=pp)).stages
    assert sum(stage.trained for stage in found) == LLAMA3_8B
    assert sum(stage.layers for stage in found) == 32


def test_pipeline_and_data_parallelism_by_hand() -> None:
    """Llama 3 70B, tp 8, pp 4, dp 4: stage 0 has 20 layers and the embedding."""
    d, layers = 8192, 20
    layer = (2 * d * d + 2 * 1024 * d + 3 * 28672 * d) // 8 + 2 * d
    own = layers * layer + 128_256 * d // 8
    stage = plan("llama3-70b", Layout(tp=8, pp=4, dp=4)).stages[0]
    assert stage.parameters == own
    assert stage.states == (2 * own, 0, 2 * own, 4 * own // 4, 8 * own // 4)


def test_activations_of_one_gpu_are_those_of_the_model() -> None:
    model = paramcalc.load("llama3-8b")
    found = plan("llama3-8b", micro_batch=2, seq=1024, recompute="full")
    kept = activations.kept(model, 2, 1024, "flash", recompute="full")
    assert found.busiest.activations == kept.peak_bytes()


def test_activations_in_flight() -> None:
    """GPT-style full recomputation keeps 2 s b h a layer (arXiv:2205.05198, table 2) for each
    microbatch in flight, and one layer's all while it is computed again."""
    how = {"seq": 2048, "recompute": "full", "global_batch": 8}
    stages = plan("llama3-8b", Layout(pp=4), **how).stages
    layer = 2 * 2048 * 4096
    again = stages[1].activations - stages[2].activations
    rotary = 2 * 2 * 2048 * 128
    assert again == 8 * layer + rotary  # stage 1 has one more in flight than stage 2
    assert [stage.in_flight for stage in stages] == [4, 3, 2, 1]
    every = plan("llama3-8b", Layout(pp=4), schedule=Schedule("gpipe"), **how).stages
    assert every[1].activations - stages[1].activations == 5 * (8 * layer + rotary)


def test_context_parallel_ranks_share_out_the_tokens() -> None:
    half = plan("llama3-8b", Layout(cp=2), seq=8192).busiest.activations
    assert half == plan("llama3-8b", seq=4096).busiest.activations


def test_sequence_parallelism_divides_what_tensor_parallelism_leaves() -> None:
    whole = plan("llama3-8b", Layout(tp=8), seq=4096, sequence_parallel=False).busiest
    split = plan("llama3-8b", Layout(tp=8), seq=4096).busiest
    assert split.states == whole.states
    # norms' inputs and outputs, twice 2 bytes each, of 32 layers and the last, and what rests whole
    assert whole.activations - split.activations > 7 * (65 * 2 * 2 * 4096 * 4096) // 8


def test_lora_leaves_the_base_frozen() -> None:
    """41,943,040 adapters in FP32 (PEFT's default) with gradients, m and v; the base in BF16."""
    states = plan("llama3-8b", lora=Lora(16), seq=2048).busiest.states
    n = 41_943_040
    assert states == (4 * n, 2 * LLAMA3_8B, 4 * n, 0, 8 * n)


def test_qlora() -> None:
    """NF4 with double quantization: matrices of 32 layers in 4 bits, an 8-bit scale for each 64, an
    FP32 one for each 256 of those and a table a matrix; embedding, head and norms in BF16."""
    states = plan("llama3-8b", lora=Lora(16), base_dtype="nf4-dq", seq=2048).busiest.states
    outside = 2 * 128_256 * 4096 + 65 * 4096
    inside = LLAMA3_8B - outside
    table = 4 * (16 + 256 + 1)
    packed = inside // 2 + inside // 64 + inside // 64 // 256 * 4 + 32 * 7 * table
    assert states.frozen == packed + 2 * outside


def test_zero_3_holds_two_units_whole() -> None:
    """The largest is the embedding: 128,256 x 4,096; two of weights, one of gradients, BF16."""
    gathered = plan("llama3-8b", Layout(dp=8), zero=3).busiest.gathered
    assert gathered == 3 * 2 * 128_256 * 4096
    assert plan("llama3-8b", Layout(dp=8), zero=2).busiest.gathered == 2 * 128_256 * 4096
    assert plan("llama3-8b", zero=3).busiest.gathered == 0


def test_hybrid_sharding() -> None:
    states = plan("llama3-8b", Layout(dp=32), zero=3, shard_over=8).busiest.states
    assert states.total == 16 * LLAMA3_8B // 8


def test_defaults_of_batch_and_sequence() -> None:
    long = plan("llama3.1-8b", Layout(pp=4, dp=2))
    assert (long.seq, long.microbatches, long.step_tokens) == (8192, 16, 16 * 2 * 8192)
    short = plan("gpt2", Layout(dp=2), micro_batch=4)
    assert (short.seq, short.microbatches, short.step_tokens) == (1024, 1, 8 * 1024)


BAD: list[tuple[str, Layout, dict[str, object], str]] = [
    ("llama3-8b", Layout(tp=3), {}, "tp = 3: must divide the 32 heads"),
    ("llama3-8b", Layout(pp=33), {}, "pp = 33: there are 32 layers"),
    ("llama3-8b", Layout(ep=2, dp=2), {}, "ep = 2: the model has no experts"),
    ("mixtral-8x7b", Layout(ep=3, dp=3), {}, "ep = 3: must divide the 8 experts"),
    ("llama3-8b", Layout(dp=16), {"global_batch": 1000, "micro_batch": 8}, "global_batch = 1,000:"),
    (
        "llama3-8b",
        Layout(),
        {"micro_batch": 0},
        "micro_batch = 0: must be a whole number of at least 1",
    ),
    ("llama3-8b", Layout(), {"zero": 4}, "zero = 4: must be 0, 1, 2 or 3"),
    ("llama3-8b", Layout(), {"dtype": "int8"}, "dtype = int8: must be one of bf16"),
    ("llama3-8b", Layout(), {"grad_dtype": "x"}, "grad_dtype = x: must be one of bf16"),
    ("llama3-8b", Layout(cp=3), {"seq": 8192}, "cp = 3: must divide the 8,192 tokens"),
    ("llama3-8b", Layout(cp=2), {"attention": "eager"}, "cp = 2: needs flash attention"),
    ("llama3-8b", Layout(dp=8), {"shard_over": 3}, "shard_over = 3: must divide dp x cp = 8"),
    ("llama3-8b", Layout(), {"lora": Lora(8, ("fc",))}, "lora_targets = fc: no such matrix"),
    ("llama3-8b", Layout(), {"lora": Lora(8), "base_dtype": "nf5"}, "dtype = nf5: unknown format"),
]


@pytest.mark.parametrize(("model", "layout", "how", "message"), BAD)
def test_bad_input(model: str, layout: Layout, how: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        plan(model, layout, **how)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"reserve": -1}, "reserve = -1: must be a whole number of at least 0"),
        ({"micro_batch": 10**12}, "micro_batch = 1,000,000,000,000: must be at most 1,000,000"),
        ({"micro_batch": 1.5}, "micro_batch = 1.5: must be a whole number"),
        ({"micro_batch": "4"}, "micro_batch = 4: must be a whole number"),
        ({"seq": True}, "seq = True: must be a whole number"),
        ({"optimizer": "x"}, "optimizer = x: must be of its own type"),
        ({"schedule": "1f1b"}, "schedule = 1f1b: must be of its own type"),
        ({"lora": 8}, "lora = 8: must be of its own type"),
        ({"zero": True}, "zero = True: must be 0, 1, 2 or 3"),
        ({"grad_dtype": ""}, "grad_dtype = : must be one of bf16, fp16, fp32"),
        ({"recompute": "some"}, "recompute = some: must be none, selective or full"),
        ({"attention": "fast"}, "attention = fast: must be one of"),
        ({"master": True, "dtype": "fp32"}, "master = true: fp32 weights need no fp32 copy"),
        ({"lora": Lora(8), "dtype": "fp16"}, "dtype = fp16: adapters are fp32"),
        ({"zero": 0, "shard_over": 1}, "shard_over = 1: ZeRO 0 divides nothing"),
    ],
)
def test_settings_that_no_run_has(how: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        plan("llama3-8b", None, **how)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("order", [Schedule(), Schedule("gpipe"), Schedule("interleaved", 3)])
def test_equal_stages_are_counted_once_and_hold_the_same(order: Schedule) -> None:
    """24 equal layers over 4 stages: the middle ones hold a quarter of the layers each, the ends
    also the embedding, and the norm with the head; passes in flight by Narayanan et al."""
    card = {"d_model": 64, "n_layers": 24, "n_heads": 4, "d_ff": 128, "vocab_size": 1000}
    found = Plan(
        paramcalc.load(card | {"context": 128}),
        Layout(pp=4),
        Recipe(global_batch=8, schedule=order),
    ).stages
    layer = 4 * 64 * 64 + 2 * 64 * 128 + 2 * 64
    ends = [1000 * 64, 0, 0, 1000 * 64 + 64]
    assert [stage.parameters for stage in found] == [6 * layer + end for end in ends]
    flights = {
        "1f1b": [4, 3, 2, 1],
        "gpipe": [8, 8, 8, 8],
        "interleaved": [2 * (3 - i) + 2 * 4 + 1 for i in range(4)],
    }
    assert [stage.in_flight for stage in found] == flights[order.kind]
    assert [stage.number for stage in found] == [0, 1, 2, 3]
