"""Small real checkpoints, written by the libraries that write the large ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

TINY = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
}
Shapes = dict[str, tuple[int, ...]]


def tiny_shapes(layers: int = 3) -> Shapes:
    """The tensors of ``TINY``, written out by hand."""
    shapes: Shapes = {"model.embed_tokens.weight": (100, 64)}
    for i in range(layers):
        at = f"model.layers.{i}"
        shapes |= {
            f"{at}.self_attn.q_proj.weight": (64, 64),
            f"{at}.self_attn.k_proj.weight": (32, 64),
            f"{at}.self_attn.v_proj.weight": (32, 64),
            f"{at}.self_attn.o_proj.weight": (64, 64),
            f"{at}.mlp.gate_proj.weight": (96, 64),
            f"{at}.mlp.up_proj.weight": (96, 64),
            f"{at}.mlp.down_proj.weight": (64, 96),
            f"{at}.input_layernorm.weight": (64,),
            f"{at}.post_attention_layernorm.weight": (64,),
        }
    return shapes | {"model.norm.weight": (64,), "lm_head.weight": (100, 64)}


def write_config(folder: Path, config: dict[str, Any]) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def write_safetensors(path: Path, shapes: Shapes, dtype: Any = np.float16) -> Path:
    from safetensors.numpy import save_file

    save_file({name: np.zeros(shape, dtype) for name, shape in shapes.items()}, str(path))
    return path


def write_arrays(path: Path, arrays: dict[str, np.ndarray[Any, Any]]) -> Path:
    from safetensors.numpy import save_file

    save_file(arrays, str(path))
    return path


def write_shards(folder: Path, parts: list[Shapes]) -> Path:
    where: dict[str, str] = {}
    for number, shapes in enumerate(parts, 1):
        name = f"model-{number:05}-of-{len(parts):05}.safetensors"
        write_safetensors(folder / name, shapes)
        where |= dict.fromkeys(shapes, name)
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {}, "weight_map": where}), encoding="utf-8")
    return path


PREDICTING = {
    **TINY,
    "model_type": "deepseek_v3",
    "moe_intermediate_size": 32,
    "num_key_value_heads": 4,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "first_k_dense_replace": 1,
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 16,
    "v_head_dim": 16,
    "num_nextn_predict_layers": 1,
}
"""DeepSeek-V3 in small: a dense layer, two with experts, one of multi-token prediction."""


def _network(at: str, width: int) -> Shapes:
    shapes = {"gate": (width, 64), "up": (width, 64), "down": (64, width)}
    return {f"{at}.{name}_proj.weight": shape for name, shape in shapes.items()}


def predicting_shapes() -> tuple[Shapes, Shapes]:
    """The tensors of ``PREDICTING`` written out by hand: the model's, and those beside it."""
    layers: list[Shapes] = []
    for i in range(4):
        at = f"model.layers.{i}"
        own: Shapes = {
            f"{at}.self_attn.q_a_proj.weight": (24, 64),
            f"{at}.self_attn.q_a_layernorm.weight": (24,),
            f"{at}.self_attn.q_b_proj.weight": (4 * (16 + 8), 24),
            f"{at}.self_attn.kv_a_proj_with_mqa.weight": (16 + 8, 64),
            f"{at}.self_attn.kv_a_layernorm.weight": (16,),
            f"{at}.self_attn.kv_b_proj.weight": (4 * (16 + 16), 16),
            f"{at}.self_attn.o_proj.weight": (64, 4 * 16),
            f"{at}.input_layernorm.weight": (64,),
            f"{at}.post_attention_layernorm.weight": (64,),
        }
        if i == 0:
            own |= _network(f"{at}.mlp", 96)
        else:
            own |= {
                f"{at}.mlp.gate.weight": (4, 64),
                f"{at}.mlp.gate.e_score_correction_bias": (4,),
            }
            for part in ("shared_experts", *(f"experts.{e}" for e in range(4))):
                own |= _network(f"{at}.mlp.{part}", 32)
        layers.append(own)
    ends: Shapes = {
        "model.embed_tokens.weight": (100, 64),
        "model.norm.weight": (64,),
        "lm_head.weight": (100, 64),
    }
    beside = layers[3] | {
        f"model.layers.3.{name}.weight": shape
        for name, shape in {
            "embed_tokens": (100, 64),
            "enorm": (64,),
            "hnorm": (64,),
            "eh_proj": (64, 128),
            "shared_head.norm": (64,),
            "shared_head.head": (100, 64),
        }.items()
    }
    return ends | layers[0] | layers[1] | layers[2], beside


GGUF_NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "model.layers": "blk",
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}


def write_gguf(path: Path, *, quantized: bool = False, vocab: int = 100) -> Path:
    import gguf

    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_block_count(3)
    writer.add_context_length(512)
    writer.add_embedding_length(64)
    writer.add_feed_forward_length(96)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_token_list([f"t{i}" for i in range(vocab)])
    for name, shape in tiny_shapes().items():
        for long, short in GGUF_NAMES.items():
            name = name.replace(long, short)
        data = np.zeros(shape, np.float32)
        if quantized and len(shape) == 2:
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(name, gguf.quantize(data, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
