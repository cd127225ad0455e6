"""Activations against what autograd kept, the published estimate, and sums written out by hand."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paramcalc
from paramcalc.deploy.activations import kept, megatron_bytes
from paramcalc.errors import InputError
from paramcalc.model import Model
from paramcalc.symbols import symbol

GOLDEN = Path(__file__).parent.parent / "golden" / "activations.json"
ROWS: list[dict[str, Any]] = json.loads(GOLDEN.read_text(encoding="utf-8"))


def model_of(row: dict[str, Any]) -> Model:
    """Two layers of a golden row's shape, built from fields and not from names."""
    names = {"d": "d_model", "H": "n_heads", "kv": "n_kv_heads", "ff": "d_ff"}
    names |= {"experts": "n_experts", "top_k": "top_k", "head_dim": "head_dim"}
    fields: dict[str, Any] = {names[k]: v for k, v in row.items() if k in names}
    fields |= {"n_layers": 2, "vocab_size": row.get("vocab", 512), "context": 1024}
    fields |= {"window": row["window"]} if row.get("window") else {}
    fields |= {"qk_norm": "head"} if row["model"] == "qwen3" else {}
    fields |= {"attention_bias": "qkv"} if row["model"] == "qwen2" else {}
    fields |= {"attention_bias": "qkvo"} if row.get("bias") else {}
    if row["model"] == "gpt2":
        return paramcalc.load({**fields, "gpt2": True, "tie_embeddings": True})
    return paramcalc.load({**fields, "gated_ffn": True})


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r['model']}-{r['attn']}-{r['seq']}")
def test_what_autograd_kept(row: dict[str, Any]) -> None:
    model = model_of(row)
    found = kept(model, row["batch"], row["seq"], row["attn"], row["drop"])
    (layer,) = found.layers
    assert layer.n_layers == 2
    assert layer.bytes() == row["per_layer_bytes"]
    assert found.bytes(loss=False) == row["total_L2"]
    assert {t.known for t in layer.tensors + found.outside} == {"derived"}
    if "loss_bytes" in row:
        assert sum(t.bytes for t in found.loss) == row["loss_bytes"]
        full = kept(model, row["batch"], row["seq"], row["attn"], row["drop"], "full")
        assert full.layers[0].bytes() == row["checkpointed_layer_bytes"]


def test_a_llama_layer_by_hand() -> None:
    """Llama 3 8B, one sequence of 2,048, eager: d 4,096, 32 heads of 128, 8 KV heads, ff 14,336."""
    n, d, ff, heads = 2048, 4096, 14336, 32
    norm = 4 * n * d + 4 * n + 2 * n * d
    attention = 2 * n * d  # the input of q, k and v
    attention += 3 * 2 * n * d  # q, and k and v repeated to 32 heads
    attention += (4 + 2) * heads * n * n  # softmax in float32, and its 16-bit copy
    attention += 2 * n * d  # what the output projection reads
    network = 2 * n * d + 4 * 2 * n * ff
    by_hand = 2 * norm + attention + network
    found = kept(paramcalc.load("llama3-8b"), 1, n)
    assert found.layers[0].bytes() == by_hand == 1_241_530_368
    outside = 8 * n + 2 * 2 * n * 128 + norm + 2 * n * d
    assert found.bytes(loss=False) == 32 * by_hand + outside
    assert found.bytes() - found.bytes(loss=False) == 4 * n * 128256 + 8 * n + 4


def test_fused_kernels_by_hand() -> None:
    n, d, ff, kv = 2048, 4096, 14336, 1024
    norms = 2 * (2 * n * d + 4 * n)
    attention = 2 * n * d + 2 * n * (d + 2 * kv) + 4 * 32 * n + 2 * n * d
    network = 2 * n * d + 3 * 2 * n * ff
    found = kept(paramcalc.load("llama3-8b"), 1, n, "flash")
    assert found.layers[0].bytes() == norms + attention + network
    assert sum(t.bytes for t in found.loss) == 2 * n * 128256
    assert not any("softmax" in t.name for t in found.layers[0].tensors)


@pytest.mark.parametrize(("a", "h", "scores", "saved"), [(96, 12288, 80, 70), (128, 20480, 64, 65)])
def test_published_estimate(a: int, h: int, scores: int, saved: int) -> None:
    """arXiv:2205.05198, section 5: for GPT-3 175B and MT-NLG 530B at 2,048 tokens 5 a s / h is 80
    and 64, and selective recomputation saves 70% and 65%."""
    s, b, t = 2048, 1, 8
    size = s * b * h
    whole, without = (megatron_bytes(s, b, h, a, recompute=kind) for kind in ("none", "selective"))
    assert (whole, without) == (size * (34 + scores), size * 34)
    assert int(100 * Fraction(whole - without, whole)) == saved
    # table 2, row by row, in multiples of s b h
    assert megatron_bytes(s, b, h, a, t) == size * 10 + size * (24 + scores) // t
    assert megatron_bytes(s, b, h, a, t, True) == size * (34 + scores) // t
    assert megatron_bytes(s, b, h, a, t, recompute="selective") == size * 10 + size * 24 // t
    assert megatron_bytes(s, b, h, a, t, True, "selective") == size * 34 // t
    assert megatron_bytes(s, b, h, a, t, recompute="full") == size * 2


@pytest.mark.parametrize("sequence_parallel", [False, True])
@pytest.mark.parametrize("tp", [1, 2, 4])
def test_fused_gpt_layer_is_the_published_one(tp: int, sequence_parallel: bool) -> None:
    """Beyond 34 s b h there are statistics: 8 bytes a token and norm, 4 a token and head."""
    model, s, b, h, a = paramcalc.load("gpt2"), 512, 2, 768, 12
    found = kept(model, b, s, "flash", 0.1).layers[0].bytes(tp, sequence_parallel)
    stats = 2 * 8 * s * b // (tp if sequence_parallel else 1) + 4 * a * s * b // tp
    published = megatron_bytes(s, b, h, a, tp, sequence_parallel, "selective")
    assert found == published + stats


def test_eager_gpt_layer_beside_the_published_one() -> None:
    """What separates the framework on CPU from the estimate, term by term."""
    model, s, b, h, a = paramcalc.load("gpt2"), 256, 2, 768, 12
    found = kept(model, b, s, "eager", 0.1).layers[0].bytes()
    size = s * b * h
    masks = size * 2 + a * s * s * b  # 2 bytes an element, not 1
    gelu = 3 * 2 * s * b * 4 * h  # its tanh formula, written out
    stats = 2 * 2 * 2 * s * b
    assert found == megatron_bytes(s, b, h, a) + masks + gelu + stats


def test_selective_recomputation() -> None:
    model, n = paramcalc.load("llama3-8b"), 2048
    none, some = (kept(model, 1, n, recompute=kind) for kind in ("none", "selective"))
    softmax_and_copies = 6 * 32 * n * n + 2 * 2 * n * (4096 - 1024)
    layer = some.layers[0]
    assert none.layers[0].bytes() - layer.bytes() == softmax_and_copies
    assert sum(t.bytes for t in layer.again) == 6 * 32 * n * n + 2 * 2 * n * 4096
    assert some.peak_bytes() == some.bytes() + sum(t.bytes for t in layer.again)
    gpt = kept(paramcalc.load("gpt2"), 2, 256, "eager", 0.1, "selective").layers[0]
    assert {t.name for t in gpt.tensors if t.name.startswith("attention.")} == {
        f"attention.{part}" for part in ("input", "q", "k", "v", "output", "residual.dropout mask")
    }


def test_full_recomputation() -> None:
    model, n, d = paramcalc.load("llama3-8b"), 2048, 4096
    whole, full = kept(model, 1, n), kept(model, 1, n, recompute="full")
    assert full.bytes(loss=False) - sum(t.bytes for t in full.outside) == 32 * 2 * n * d
    assert full.peak_bytes() == full.bytes() + whole.layers[0].bytes()
    # a fused norm keeps the layer's input itself: it is not held twice
    flash = kept(model, 1, n, "flash")
    again = kept(model, 1, n, "flash", recompute="full").layers[0].again
    assert sum(t.bytes for t in again) == flash.layers[0].bytes() - 2 * n * d


def test_kv_heads_are_held_twice_beyond_their_number() -> None:
    found = kept(paramcalc.load("llama3-8b"), 1, 2048, "flash").layers[0]
    (k,) = (t for t in found.tensors if t.name == "attention.k")
    assert [k.rank_bytes(tp) for tp in (1, 8, 16)] == [k.bytes, k.bytes // 8, k.bytes // 8]
    (q,) = (t for t in found.tensors if t.name == "attention.q")
    assert q.rank_bytes(16) == q.bytes // 16


@pytest.mark.parametrize("attention", ["eager", "sdpa", "flash"])
def test_symbols_and_arrays_count_as_ints_do(attention: Any) -> None:
    model = paramcalc.load("mixtral-8x7b").with_(window=4096)
    for batch, seq in ((2, 1000), (1, 8192)):
        whole = kept(model, batch, seq, attention).bytes()
        marked: Any = kept(model, symbol("B", batch), symbol("n", seq), attention).bytes()
        assert marked.value == whole
        array: Any = kept(model, np.array([batch]), np.array([seq]), attention).bytes()
        assert array.tolist() == [whole]


@pytest.mark.parametrize("name", paramcalc.preset_names())
def test_every_preset_is_counted(name: str) -> None:
    model = paramcalc.load(name)
    flash, eager = (kept(model, 1, 512, way) for way in ("flash", "eager"))
    assert 0 < flash.bytes() < eager.bytes()
    assert sum(kind.n_layers for kind in flash.layers) > 0


@pytest.mark.parametrize("name", ["deepseek-v3", "gemma2-2b", "falcon-7b", "t5-small", "dbrx"])
def test_what_was_not_measured_says_so(name: str) -> None:
    found = kept(paramcalc.load(name), 1, 512, "sdpa")
    assert {t.known for kind in found.layers for t in kind.tensors} == {"assumed"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch": 0}, "batch = 0: must be a whole number of at least 1"),
        ({"seq": 1.5}, "seq = 1.5: must be a whole number of at least 1"),
        ({"attention": "fast"}, "attention = fast: must be eager, sdpa or flash; use one"),
        ({"dropout": 1.0}, "dropout = 1.0: must be at least 0 and below 1; give such a value"),
        ({"recompute": "all"}, "recompute = all: must be none, selective or full; use one"),
    ],
)
def test_bad_input(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        kept(paramcalc.load("gpt2"), **{"batch": 1, "seq": 8, **change})
    assert str(error.value) == message
