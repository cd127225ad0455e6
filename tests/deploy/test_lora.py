"""Adapters: parameters that PEFT prints, products that torch counts."""

from __future__ import annotations

import pytest

import paramcalc
from paramcalc.deploy import lora, parallel
from paramcalc.deploy.lora import Lora
from paramcalc.deploy.parallel import Layout
from paramcalc.errors import InputError
from paramcalc.model import Model
from paramcalc.quantities import params
from paramcalc.spec import ModelSpec

ATTENTION_FFN = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@pytest.mark.parametrize(
    ("model", "rank", "targets", "printed"),
    [
        # "trainable params: ..." of PEFT's print_trainable_parameters, in many public logs
        ("llama2-7b", 8, ("q_proj", "v_proj"), 4_194_304),
        ("llama3-8b", 16, ATTENTION_FFN, 41_943_040),
        ("llama3-8b", 16, ("all-linear",), 41_943_040),
        ("llama3-8b", 8, ("attention.q", "attention.v"), 3_407_872),
    ],
)
def test_trained_parameters(model: str, rank: int, targets: tuple[str, ...], printed: int) -> None:
    ledger = paramcalc.load(model).ledger
    assert params.total(lora.adapters(ledger, Lora(rank, targets))) == printed


def test_every_expert_has_adapters() -> None:
    """Mixtral: 32 layers of 8 experts, three matrices of 4,096 x 14,336."""
    ledger = paramcalc.load("mixtral-8x7b").ledger
    found = lora.adapters(ledger, Lora(4, ("gate", "up", "down")))
    assert params.total(found) == 32 * 8 * 3 * 4 * (4096 + 14336)
    assert params.active(found) == 32 * 2 * 3 * 4 * (4096 + 14336)


def test_tensor_parallel_ranks_split_the_wide_side() -> None:
    """q: B is split; down: A is split; k has two heads, so four ranks hold a copy each."""
    model = Model(ModelSpec(d_model=64, n_layers=1, n_heads=4, n_kv_heads=2, d_ff=96, vocab_size=8))
    own = lora.adapters(model.ledger, Lora(3, ("q", "k", "down")))
    shapes = {t.name.split("*.")[1]: t.shape for t in parallel.sharded(own, Layout(tp=4)).tensors}
    assert shapes == {
        "attention.q.lora_a": (3, 64),
        "attention.q.lora_b": (16, 3),
        "attention.k.lora_a": (3, 64),
        "attention.k.lora_b": (16, 3),
        "ffn.down.lora_a": (3, 24),
        "ffn.down.lora_b": (64, 3),
    }


TINY = ModelSpec(
    d_model=64,
    d_ff=160,
    n_layers=3,
    n_heads=4,
    n_kv_heads=2,
    vocab_size=320,
    gated_ffn=True,
    tie_embeddings=False,
)
PAIRS = 4 * 64 * 32 * 33 // 2
"""Forward FLOPs between the positions of 32 tokens in one layer."""


@pytest.mark.parametrize(
    ("targets", "products", "unneeded"),
    [
        # FlopCounterMode of torch 2.13 over forward and backward of LlamaForCausalLM (transformers
        # 5.24) of this shape with rank-8 adapters on 32 tokens: what it counts as aten.mm
        (("q", "v"), 19_578_880, 0),
        (("all-linear",), 23_674_880, 0),
        (("gate", "up", "down"), 20_070_400, 1),
        (("down",), 17_334_272, 1),
        (("o",), 18_907_136, 1),
    ],
)
def test_training_flops(targets: tuple[str, ...], products: int, unneeded: int) -> None:
    """Attention counts three times a layer, once where nothing before it is trained."""
    work = lora.training(Model(TINY).ledger, Lora(8, targets), 32)
    assert work == products + (9 - 2 * unneeded) * PAIRS


def test_what_lies_below_the_first_adapter() -> None:
    """DeepSeek-V2-Lite's first layer is dense, so adapters on experts alone start in the second:
    no gradient of the first layer's inputs, nor of attention's, the router's, the shared and gate
    and up matrices' of the second, nor of the first down projections'."""
    model = paramcalc.load("deepseek-v2-lite")
    which, n = Lora(8, ("ffn.experts.*.down",)), 16
    down, d, d_ff = 8 * (1408 + 2048), 2048, 1408
    attention = d * 3072 + d * 576 + 512 * 4096 + 2048 * d
    dense = attention + 3 * d * 10944
    sparse = attention + 64 * d + 3 * 6 * d * d_ff + 3 * d * 2816
    adapters = 26 * 6 * down
    matrices = dense + 26 * sparse + 102_400 * d
    pairs = 2 * 16 * (192 + 128) * n * (n + 1) // 2
    expected = n * 2 * (2 * matrices + 3 * adapters) + 3 * 27 * pairs
    expected -= n * 2 * (dense + sparse + 6 * 8 * d_ff) + 2 * 2 * pairs
    assert lora.training(model.ledger, which, n) == expected


def test_recomputation_repeats_adapters_too() -> None:
    ledger = Model(TINY).ledger
    layers = 3 * 2 * (64 * 64 * 2 + 2 * 32 * 64 + 3 * 64 * 160)
    adapters = 3 * 2 * 8 * (64 + 64)
    again = lora.recomputed(ledger, Lora(8, ("q",)), 32, "full")
    assert again == 32 * (layers + adapters) + 3 * PAIRS
    assert lora.recomputed(ledger, Lora(8, ("q",)), 32, "selective") == 3 * PAIRS
    assert lora.recomputed(ledger, Lora(8, ("q",)), 32, "none") == 0


@pytest.mark.parametrize(
    ("rank", "targets", "message"),
    [
        (0, ("q",), "lora_rank = 0: must be a whole number of at least 1"),
        (True, ("q",), "lora_rank = True: must be a whole number"),
        (8, (), "lora_targets = none: must be a list of one or more"),
        (8, "q", "lora_targets = q: must be a list of one or more"),
        (8, ("q", "fc1"), "lora_targets = fc1: no such matrix in this model; take q, k, v, o,"),
        (8, ("router",), "lora_targets = router: no such matrix"),
    ],
)
def test_bad_input(rank: int, targets: tuple[str, ...], message: str) -> None:
    ledger = paramcalc.load("mixtral-8x7b").ledger
    with pytest.raises(InputError) as caught:
        lora.adapters(ledger, Lora(rank, targets))
    assert str(caught.value).startswith(message)


def test_a_rank_is_at_most_the_smaller_side() -> None:
    """Llama 3 8B has 8 KV heads of 128: k and v are 1,024 x 4,096; q and o are square."""
    ledger = paramcalc.load("llama3-8b").ledger
    assert params.total(lora.adapters(ledger, Lora(1024, ("k",)))) == 32 * 1024 * (1024 + 4096)
    assert params.total(lora.adapters(ledger, Lora(4096, ("q",)))) == 32 * 4096 * (4096 + 4096)
    with pytest.raises(InputError) as caught:
        lora.adapters(ledger, Lora(1025, ("q", "k")))
    line = "lora_rank = 1,025: must be at most the smaller side of attention.k, 1,024 x 4,096"
    assert str(caught.value) == f"{line}; lower it"


def test_a_model_without_a_matrix_to_adapt_says_so() -> None:
    ledger = paramcalc.load("llama3-8b").ledger
    bare = [
        kind._replace(rows=tuple(row for row in kind.rows if row.name.endswith("norm")))
        for kind in ledger.layers
    ]
    with pytest.raises(InputError, match="no matrix to adapt; train it whole") as caught:
        lora.adapters(ledger.of(ledger.outer, bare), Lora(8, ("all-linear",)))
    assert "take" not in str(caught.value)
