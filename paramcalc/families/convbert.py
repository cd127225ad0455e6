"""ConvBERT (arXiv:2008.02496): half of each head's work is a convolution whose kernel is made of
the token itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from paramcalc.blocks.linear import linear
from paramcalc.blocks.rows import Rows, vector
from paramcalc.families.bert import (
    BERT,
    GENERATOR,
    Kind,
    bert_fields,
    bert_names,
    narrow,
)
from paramcalc.families.config import Config
from paramcalc.families.names import Names
from paramcalc.ledger import Operation, Row, Tensor
from paramcalc.sight import Both, State

_KIND = Kind("convbert", GENERATOR, pooler="")

TYPES: dict[str, dict[str, Any]] = {
    "convbert": dict(BERT, embedding_size=768, head_ratio=2, conv_kernel_size=9, num_groups=1),
}


def NAMES(c: Config) -> Names:
    """BERT's, with the convolution's beside Q, K and V."""
    own = "attention.self"
    return bert_names(c, _KIND) | {
        "mixer.kernel": f"{own}.conv_kernel_layer",
        "mixer.out": f"{own}.conv_out_layer",
        "mixer.bias": f"{own}.key_conv_attn_layer.bias",
        "mixer.depthwise": f"{own}.key_conv_attn_layer.depthwise",
        "mixer.pointwise": f"{own}.key_conv_attn_layer.pointwise",
    }


def read(c: Config) -> dict[str, Any]:
    """``head_ratio`` times fewer heads attend; the matrices may work in groups."""
    c.strict = True
    fields = bert_fields(c, _KIND)
    d, ff, groups = c.hidden_size, c.intermediate_size, c.num_groups
    rows = list(mixed(c))
    if groups < 1 or d % groups or ff % groups:
        c.fail("num_groups", groups, f"must divide {d} and {ff}")
    if groups > 1:
        for name, out, into in (("intermediate.dense", ff, d), ("output.dense", d, ff)):
            shape = (groups, into // groups, out // groups)
            rows += [Tensor(f"{name}.weight", "ffn", shape), vector(f"{name}.bias", "ffn", out)]
    if c.embedding_size != d:
        fields |= narrow(c, c.embedding_size)
    if fields.pop("blocks"):
        c.left_out.append("cross attention (add_cross_attention)")
    return c.card(
        **fields,
        attention=False,
        ffn=groups == 1,
        norms_per_layer=2,
        blocks=(Rows(tuple(rows)),),
    )


def mixed(c: Config) -> Iterator[Row]:
    """Yield Q, K and V of the heads that attend; a second key by a convolution over the tokens,
    from whose product with the query a kernel comes for each head; what it is applied to; the
    matrix over both halves."""
    d, heads, kernel = c.hidden_size, c.size("num_attention_heads"), c.size("conv_kernel_size")
    few = max(heads // c.size("head_ratio"), 1)
    if d % (2 * few):
        c.fail("num_attention_heads", heads, f"half of hidden_size = {d} must share out over {few}")
    every = d // 2
    for x in "qkv":
        yield from linear(f"attention.{x}", "attention", every, d, bias=True, shard="column")
    yield vector("mixer.bias", "mixer", every, 1)
    yield Tensor("mixer.depthwise", "mixer", (d, 1, kernel), "conv")
    yield Tensor("mixer.pointwise", "mixer", (every, d, 1), "conv")
    yield from linear("mixer.kernel", "mixer", few * kernel, every, bias=True)
    yield from linear("mixer.out", "mixer", every, d, bias=True)
    yield Operation("mixer.kernels", "mixer", 2 * every * kernel, State())
    yield from linear("attention.o", "attention", d, d, bias=True, shard="row")
    yield Operation("attention.scores", "attention", 2 * every, Both())
    yield Operation("attention.values", "attention", 2 * every, Both())
