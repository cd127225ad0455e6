"""How BERT's kin name their tensors: a root, and a head of one of three designs."""

from __future__ import annotations

from typing import NamedTuple


class Root(NamedTuple):
    """The module that holds the encoder, and the one that holds the head."""

    body: str
    head: str = "cls.predictions"


ROOTS = {
    "albert": Root("albert", "predictions"),
    "bert": Root("bert"),
    "bert-generation": Root("bert", "lm_head"),
    "big_bird": Root("bert"),
    "camembert": Root("roberta", "lm_head"),
    "data2vec-text": Root("data2vec_text", "lm_head"),
    "distilbert": Root("distilbert", "vocab"),
    "electra": Root("electra", "generator"),
    "ernie": Root("ernie"),
    "ibert": Root("ibert", "lm_head"),
    "megatron-bert": Root("bert"),
    "mpnet": Root("mpnet", "lm_head"),
    "rembert": Root("rembert"),
    "roberta": Root("roberta", "lm_head"),
    "roberta-prelayernorm": Root("roberta_prelayernorm", "lm_head"),
    "roformer": Root("roformer"),
    "layoutlm": Root("layoutlm"),
    "longformer": Root("longformer", "lm_head"),
    "roc_bert": Root("roc_bert"),
    "xmod": Root("roberta", "lm_head"),
    "squeezebert": Root("transformer"),
    "fnet": Root("fnet"),
    "convbert": Root("convbert", "generator"),
    "deberta": Root("deberta"),
    "deberta-v2": Root("deberta"),
    "xlm-roberta": Root("roberta", "lm_head"),
    "xlm-roberta-xl": Root("roberta", "lm_head"),
}


def names(kind: str) -> dict[str, str]:
    """Return a type's table."""
    body, head = ROOTS[kind]
    own = f"{body}.embeddings"
    found = {
        "layers": f"{body}.encoder.layer",
        "embedding": f"{own}.word_embeddings",
        "token_types": f"{own}.token_type_embeddings",
        "positions": f"{own}.position_embeddings",
        "embedding_norm": f"{own}.LayerNorm",
        "embedding.project": f"{body}.encoder.embedding_hidden_mapping_in",
        "final_norm": f"{body}.encoder.ln",
        "attention.q": "attention.self.query",
        "attention.k": "attention.self.key",
        "attention.v": "attention.self.value",
        "attention.o": "attention.output.dense",
        "norm1": "attention.output.LayerNorm",
        "norm2": "output.LayerNorm",
        "ffn.up": "intermediate.dense",
        "ffn.down": "output.dense",
        **_head(kind, head),
    }
    return found | OWN.get(kind, {})


def _head(kind: str, head: str) -> dict[str, str]:
    if head == "lm_head":
        norm = "lm_head.layer_norm"
        dense = "lm_head.dense"
        return {
            "head": "lm_head.decoder",
            "head.bias": "lm_head.bias",
            "head.dense": dense,
            "head.norm": norm,
        }
    if head == "cls.predictions":
        return {
            "head": f"{head}.decoder",
            "head.bias": f"{head}.bias",
            "head.dense": f"{head}.transform.dense",
            "head.norm": f"{head}.transform.LayerNorm",
        }
    if head == "predictions":
        return {
            "head": f"{head}.decoder",
            "head.bias": f"{head}.bias",
            "head.dense": f"{head}.dense",
            "head.norm": f"{head}.LayerNorm",
        }
    if head == "generator":
        return {
            "head": "generator_lm_head",
            "head.bias": "generator_lm_head.bias",
            "head.dense": "generator_predictions.dense",
            "head.norm": "generator_predictions.LayerNorm",
        }
    return {
        "head": "vocab_projector",
        "head.bias": "vocab_projector.bias",
        "head.dense": "vocab_transform",
        "head.norm": "vocab_layer_norm",
    }


_ALBERT = "albert.encoder.albert_layer_groups"
OWN: dict[str, dict[str, str]] = {
    "albert": {
        "layers": f"{_ALBERT}.0.albert_layers",
        "attention.q": "attention.query",
        "attention.k": "attention.key",
        "attention.v": "attention.value",
        "attention.o": "attention.dense",
        "norm1": "attention.LayerNorm",
        "norm2": "full_layer_layer_norm",
        "ffn.up": "ffn",
        "ffn.down": "ffn_output",
    },
    "big_bird": {"pooler": "bert.pooler"},
    "distilbert": {
        "layers": "distilbert.transformer.layer",
        "attention.q": "attention.q_lin",
        "attention.k": "attention.k_lin",
        "attention.v": "attention.v_lin",
        "attention.o": "attention.out_lin",
        "norm1": "sa_layer_norm",
        "norm2": "output_layer_norm",
        "ffn.up": "ffn.lin1",
        "ffn.down": "ffn.lin2",
    },
    "electra": {"embedding.project": "electra.embeddings_project"},
    "roformer": {"embedding.project": "roformer.embeddings_project"},
    "mpnet": {
        **{f"attention.{x}": f"attention.attn.{x}" for x in "qkvo"},
        "norm1": "attention.LayerNorm",
    },
    "megatron-bert": {"norm1": "attention.ln", "norm2": "ln"},
    "roberta-prelayernorm": {
        "norm1": "attention.LayerNorm",
        "norm2": "intermediate.LayerNorm",
        "final_norm": "roberta_prelayernorm.LayerNorm",
    },
    "xlm-roberta-xl": {
        "norm1": "attention.self_attn_layer_norm",
        "norm2": "LayerNorm",
        "final_norm": "roberta.encoder.LayerNorm",
    },
}
