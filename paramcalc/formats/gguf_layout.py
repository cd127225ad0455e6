"""The tensors of a GGUF file: what llama.cpp's conversion makes of a ledger.

The rules of ``llama-quantize`` read a tensor's name, its shape and its layer. Conversion stacks the
experts of a layer in one tensor, keeps what some releases fuse (Q, K and V; gate and up), splits
``kv_b`` of latent attention into ``attn_k_b`` and ``attn_v_b``, and stores vectors, norms, routers,
position tables and small convolutions in F32. Source: ``conversion/`` and
``gguf-py/gguf/constants.py`` of https://github.com/ggml-org/llama.cpp.

Left out, as conversion does: towers (a file of their own), multi-token prediction, the heads of
encoders. Not counted: tables of rotary factors, 256 bytes for Llama 3.1, which no ledger has.
A row whose GGUF name is not known here keeps its own; only its shape and use count then.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from paramcalc.ledger import LayerRows, Ledger, Row, Tensor


class Layout(NamedTuple):
    """How an architecture is stored: ``arch`` by its GGUF name; ``own_head``: the release stores
    its tied head a second time; ``headless``: an encoder, stored without its head."""

    arch: str = "llama"
    fused_qkv: bool = False
    fused_up: bool = False
    own_head: bool = False
    headless: bool = False
    splits_kv: bool = True


LLAMA = Layout()
_QKV = Layout(fused_qkv=True)
_BOTH = Layout(fused_qkv=True, fused_up=True)
_ENCODER = Layout("bert", headless=True)
_LAYOUTS = {
    "bert": _ENCODER,
    "bloom": _QKV._replace(arch="bloom"),
    "chatglm": _BOTH._replace(arch="chatglm"),
    "dbrx": _QKV._replace(arch="dbrx"),
    "distilbert": _ENCODER,
    "falcon": _QKV._replace(arch="falcon", own_head=True),
    "glm": _BOTH._replace(arch="chatglm"),
    "glm4": Layout("glm4", fused_up=True),
    "gpt2": _QKV._replace(arch="gpt2"),
    "gpt_bigcode": _QKV._replace(arch="starcoder"),
    "gpt_neox": _QKV._replace(arch="gptneox"),
    "minicpm3": Layout("minicpm3", splits_kv=False),
    "modernbert": _BOTH._replace(arch="modern-bert", headless=True),
    "mpt": _QKV._replace(arch="mpt"),
    "nomic_bert": _QKV._replace(arch="nomic-bert", headless=True),
    "phi3": _BOTH._replace(arch="phi3"),
    "qwen2": Layout("qwen2"),
    "roberta": _ENCODER,
    "xlm-roberta": _ENCODER,
}
"""By model_type; those not named are stored as Llama is."""
_PRESETS = {
    "gpt-neox": "gpt_neox",
    "pythia": "gpt_neox",
    "starcoder": "gpt_bigcode",
    "glm4-9b": "chatglm",
    "phi4": "phi3",
    "qwen1.5": "qwen2",
    "qwen2.5": "qwen2",
}
"""Presets whose names start otherwise than their model_type."""
_LIKE_LLAMA = frozenset({"", "llama", "mistral", "mixtral"})


def layout_of(model_type: str | None = None, preset: str | None = None) -> Layout:
    """Return how conversion stores a model, by the model_type of its config.json or by its preset.

    With neither, or where the table does not name it, Q, K, V, gate and up are taken to be apart,
    as Llama has them (an assumption for types that llama.cpp knows and this table does not).
    """
    if model_type:
        other = LLAMA if model_type in _LIKE_LLAMA else Layout(model_type)
        return _LAYOUTS.get(model_type, other)
    name = preset or ""
    for start in sorted({*_PRESETS, *_LAYOUTS}, key=len, reverse=True):
        if name == start or name.startswith(f"{start}-"):
            return _LAYOUTS[_PRESETS.get(start, start)]
    return LLAMA


class GgufTensor(NamedTuple):
    """A tensor of the file: its name, the ledger's rows in it, its shape (the last axis is a row
    of blocks), its layer (-1 outside), and ``keeps``: the type it has whatever the file's type."""

    name: str
    rows: tuple[str, ...]
    shape: tuple[int, ...]
    layer: int = -1
    keeps: str | None = None

    @property
    def elements(self) -> int:
        """Weights in it."""
        return prod(self.shape)


_NAMES = {
    "embedding": "token_embd",
    "per_layer.embedding": "per_layer_token_embd",
    "positions": "position_embd",
    "head": "output",
    "final_norm": "output_norm",
    "norm1": "attn_norm",
    "norm2": "ffn_norm",
    "attention.q": "attn_q",
    "attention.k": "attn_k",
    "attention.v": "attn_v",
    "attention.o": "attn_output",
    "attention.q_norm": "attn_q_norm",
    "attention.k_norm": "attn_k_norm",
    "attention.q_down": "attn_q_a",
    "attention.q_up": "attn_q_b",
    "attention.kv_down": "attn_kv_a_mqa",
    "attention.kv_norm": "attn_kv_a_norm",
    "attention.sinks": "attn_sinks",
    "attention.kv_up": "attn_kv_b",
    "attention.indexer.q": "indexer.attn_q_b",
    "attention.indexer.k": "indexer.attn_k",
    "attention.indexer.weights": "indexer.proj",
    "cross_attention.q": "cross_attn_q",
    "cross_attention.k": "cross_attn_k",
    "cross_attention.v": "cross_attn_v",
    "cross_attention.o": "cross_attn_o",
    "ffn.gate": "ffn_gate",
    "ffn.up": "ffn_up",
    "ffn.down": "ffn_down",
    "ffn.experts.*.gate": "ffn_gate_exps",
    "ffn.experts.*.up": "ffn_up_exps",
    "ffn.experts.*.down": "ffn_down_exps",
    "ffn.shared.gate": "ffn_gate_shexp",
    "ffn.shared.up": "ffn_up_shexp",
    "ffn.shared.down": "ffn_down_shexp",
    "ffn.router": "ffn_gate_inp",
    "ffn.router.correction": "exp_probs_b",
    "ffn.shared_gate": "ffn_gate_inp_shexp",
}
_FUSED = ("attention.q", "attention.k", "attention.v")
_NEVER = ("altup.in", "altup.out", "altup.router", "laurel.", "per_layer.projection")
"""Small matrices that keep the F16 they were converted to."""


def tensors(ledger: Ledger, layout: Layout = LLAMA) -> list[GgufTensor]:
    """Return every tensor of the file, layer by layer and by name within one, which is the order
    in which llama.cpp quantizes them. For plain numbers only: the order of layers is structure."""
    found = list(_of_rows(ledger.outer, layout))
    pair = any(kind.stack for kind in ledger.layers)
    for kind in ledger.layers:
        made = list(_of_rows(kind.rows, layout))
        for number in _numbers(kind):
            for t in made:
                if pair:  # T5's names, and layers that the rules do not see
                    prefix = "enc.blk." if kind.stack else "dec.blk."
                    name = t.name.replace("attn_output", "attn_o")
                    found.append(t._replace(name=f"{prefix}{number}.{name}"))
                else:
                    found.append(t._replace(name=f"blk.{number}.{t.name}", layer=number))
    return sorted(found, key=lambda t: (t.layer, t.name))


def block_count(ledger: Ledger) -> int:
    """Return the layers a file states: all, or an encoder's where there is a decoder too."""
    stacked = [kind for kind in ledger.layers if kind.stack] or list(ledger.layers)
    return sum(kind.n_layers for kind in stacked)


def _numbers(kind: LayerRows) -> list[int]:
    found = [number for span in kind.ranges for number in range(*span)]
    return found[:1] if kind.shared else found


def _of_rows(rows: tuple[Row, ...], layout: Layout) -> Iterator[GgufTensor]:
    """The tensors of the outer rows or of one layer, fused as the layout says."""
    held = {r.name: r for r in rows if isinstance(r, Tensor) and r.role != "tower"}
    together: dict[str, GgufTensor] = {}
    for row in held.values():
        for made in _split(row, held, layout):
            other = together.get(made.name)
            if other is None:
                together[made.name] = made
            else:
                shape = (other.shape[0] + made.shape[0], *made.shape[1:])
                together[made.name] = other._replace(rows=other.rows + made.rows, shape=shape)
    yield from together.values()


def _split(row: Tensor, held: dict[str, Tensor], layout: Layout) -> Iterator[GgufTensor]:
    base = row.name.removesuffix(".bias")
    copies = 1 if base == "head" and layout.own_head else row.copies
    if copies == 0 or (layout.headless and base.partition(".")[0] == "head"):
        return
    stem = _NAMES.get(base, base)
    if layout.fused_qkv and base in _FUSED:
        stem = "attn_qkv"
    elif layout.fused_up and base == "ffn.gate":
        stem = "ffn_up"
    plain = row.use in ("bias", "buffer") and base != "attention.sinks"
    shape = (row.shape or (1,)) if copies == 1 else (copies, *row.shape)
    made = GgufTensor(f"{stem}.{'bias' if plain else 'weight'}", (row.name,), shape)
    if base == "attention.kv_up" and layout.splits_kv:
        yield from _latent(made, held)
    else:
        yield made._replace(keeps=_kept(row, shape))


def _kept(row: Tensor, shape: tuple[int, ...]) -> str | None:
    """F32 for what conversion always stores so, F16 for what is never quantized."""
    if row.name.endswith("relative_positions") or row.name.startswith(_NEVER):
        return "F16"
    matrix = sum(1 for size in shape if size > 1) > 1 and row.use in ("matmul", "lookup")
    if not matrix or row.role in ("router", "position", "norm"):
        return "F32"
    return "F32" if row.name.startswith(("token_types", "altup.")) else None


def _latent(whole: GgufTensor, held: dict[str, Tensor]) -> Iterator[GgufTensor]:
    """``kv_b`` of latent attention as a matrix a head for keys, transposed, and one for values.

    The ledger has only products of heads and widths; the rotary width, which keys share, tells the
    heads: q gives H (nope + rope) rows, kv_b H (nope + v), and o takes H v columns. Where that does
    not come out (no rotary part, an output gate inside q), ``attn_kv_b`` stays whole.
    """
    names = ("attention.q_up" if "attention.q_up" in held else "attention.q", "attention.kv_down")
    q, down = (held[name].shape[0] for name in names)
    both, rank = whole.shape
    values = held["attention.o"].shape[1]
    keys, rotary = both - values, down - rank
    heads = (q - keys) // rotary if rotary else 0
    if heads == 0 or heads * rotary != q - keys or keys % heads or values % heads:
        yield whole
        return
    yield whole._replace(name="attn_k_b.weight", shape=(heads, rank, keys // heads))
    yield whole._replace(name="attn_v_b.weight", shape=(heads, values // heads, rank))
