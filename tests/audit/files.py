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
