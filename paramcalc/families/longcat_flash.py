"""LongCat-Flash (arXiv:2509.01322): a layer has two of everything, latent attention and a dense
network, and one set of experts whose result joins after the second, some of them doing nothing."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import FeedForward, LatentAttention, Norm, Rows
from paramcalc.blocks.linear import linear
from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA, MLA
from paramcalc.ledger import Tensor
from paramcalc.sight import Causal

_TWICE = {
    **{name: path for name, path in MLA.items() if ".indexer" not in name},
    "attention.o": "self_attn.o_proj",
}
NAMES = LLAMA | {
    "ffn.router": "mlp.router.classifier",
    "ffn.router.correction": "mlp.router.e_score_correction_bias !",
    "ffn.experts.*.gate": "mlp.experts.gate_up_proj !",
    "ffn.experts.*.up": "mlp.experts.gate_up_proj !",
    "ffn.experts.*.down": "mlp.experts.down_proj !",
    **{
        name.replace("attention", f"attention{i}"): path.replace("self_attn", f"self_attn.{i}")
        for i in (0, 1)
        for name, path in _TWICE.items()
    },
    **{
        f"ffn{i}.{part}": f"mlps.{i}.{part}_proj" for i in (0, 1) for part in ("gate", "up", "down")
    },
    **{f"norm1.{i}": f"input_layernorm.{i}" for i in (0, 1)},
    **{f"norm2.{i}": f"post_attention_layernorm.{i}" for i in (0, 1)},
}

KEYS = {
    "num_layers": ("num_hidden_layers",),
    "n_routed_experts": ("num_local_experts",),
    "moe_topk": ("num_experts_per_tok",),
    "ffn_hidden_size": ("intermediate_size",),
    "expert_ffn_hidden_size": ("moe_intermediate_size",),
}

TYPES = {
    "longcat_flash": dict(
        vocab_size=131072,
        hidden_size=6144,
        num_layers=28,
        num_attention_heads=64,
        max_position_embeddings=131072,
        tie_word_embeddings=False,
        attention_bias=False,
        ffn_hidden_size=12288,
        q_lora_rank=1536,
        kv_lora_rank=512,
        qk_nope_head_dim=128,
        qk_rope_head_dim=64,
        v_head_dim=128,
        qk_head_dim=None,
        moe_topk=12,
        n_routed_experts=512,
        zero_expert_num=256,
        expert_ffn_hidden_size=2048,
        router_bias=False,
    ),
}


def read(c: Config) -> dict[str, Any]:
    """Two attentions, two dense networks and the experts of one layer, in the order they run."""
    c.ignore("num_key_value_heads", "head_dim", "num_hidden_layers")
    d, d_ff = c.size("hidden_size"), c.size("ffn_hidden_size")
    blocks: list[Any] = []
    for i in (0, 1):
        blocks += [
            Norm(f"norm1.{i}", (d,), False),
            latent(c, f"attention{i}"),
            Norm(f"norm2.{i}", (d,), False),
            FeedForward(f"ffn{i}", d, d_ff, True),
        ]
    return c.card(
        n_layers=c.num_layers,
        n_kv_heads=None,
        head_dim=None,
        d_ff=d_ff,
        attention=False,
        ffn=False,
        norms_per_layer=0,
        blocks=(*blocks, experts(c)),
    )


def latent(c: Config, name: str) -> Rows:
    """One of the two attentions; each keeps a cache of its own."""
    heads, rank = c.size("num_attention_heads"), c.size("q_lora_rank")
    nope, rope = c.size("qk_nope_head_dim"), c.size("qk_rope_head_dim")
    block = LatentAttention(
        name,
        c.size("hidden_size"),
        heads,
        rank,
        c.size("kv_lora_rank"),
        nope,
        rope,
        c.size("v_head_dim"),
        Causal(),
        biases="qko" if c.attention_bias else "",
    )
    # The width of a query may be stated; one that is not the sum of its parts cannot run.
    shape = heads * c.size("qk_head_dim", nope + rope), rank
    return Rows(
        tuple(
            row._replace(shape=shape)
            if isinstance(row, Tensor) and row.name == f"{name}.q_up"
            else row
            for row in block.rows()
        )
    )


def experts(c: Config) -> Rows:
    """The router over real and zero experts, and the experts.

    A zero expert returns its input. The framework's class stores gate and up of the zero experts
    all the same, so they are counted; a release leaves them out. A token is counted with
    ``moe_topk`` real experts, the most it can take: how many are zero depends on the token.
    """
    d, width = c.size("hidden_size"), c.size("expert_ffn_hidden_size")
    real, zero, top_k = c.size("n_routed_experts"), c.get("zero_expert_num", 0), c.size("moe_topk")
    if zero:
        c.assumed.append(f"every token takes {top_k} real experts, none of the {zero} zero ones")
        c.assumed.append(
            "gate and up matrices of the zero experts are counted, as the class has them"
        )
    if top_k > real + zero:
        c.fail("moe_topk", top_k, f"there are {real + zero} experts", "lower it")
    active = min(top_k, real)
    each = FeedForward("ffn.experts.*", d, width, True, copies=real, active=active, expert=True)
    stored = (
        row if row.name.endswith("down") else row._replace(copies=real + zero)
        for row in each.rows()
    )
    return Rows(
        (
            *linear("ffn.router", "router", real + zero, d, bias=c.router_bias),
            Tensor("ffn.router.correction", "router", (real + zero,), "buffer"),
            *stored,
        )
    )
