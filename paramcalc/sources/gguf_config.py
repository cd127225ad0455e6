"""A config.json's keys out of a GGUF file's metadata."""

from __future__ import annotations

from typing import Any

from paramcalc.errors import FileError
from paramcalc.sources.contents import Contents

KEYS = {
    "block_count": ("num_hidden_layers",),
    "embedding_length": ("hidden_size",),
    "feed_forward_length": ("intermediate_size",),
    "context_length": ("max_position_embeddings",),
    "attention.head_count": ("num_attention_heads",),
    "attention.head_count_kv": ("num_key_value_heads",),
    "attention.key_length": ("head_dim",),
    "attention.sliding_window": ("sliding_window",),
    "attention.kv_lora_rank": ("kv_lora_rank",),
    "attention.q_lora_rank": ("q_lora_rank",),
    "expert_count": ("num_experts", "num_local_experts", "n_routed_experts"),
    "expert_used_count": ("num_experts_per_tok",),
    "expert_feed_forward_length": ("moe_intermediate_size",),
    "expert_shared_feed_forward_length": ("shared_expert_intermediate_size",),
    "expert_shared_count": ("n_shared_experts",),
    "leading_dense_block_count": ("first_k_dense_replace",),
}
"""Metadata, and the keys of a config.json that say the same; a family reads those it knows."""

TYPES = {
    "llama": "llama",
    "qwen2": "qwen2",
    "qwen2moe": "qwen2_moe",
    "qwen3": "qwen3",
    "qwen3moe": "qwen3_moe",
    "gemma": "gemma",
    "gemma2": "gemma2",
    "gemma3": "gemma3_text",
    "phi2": "phi",
    "gpt2": "gpt2",
    "gptneox": "gpt_neox",
    "bloom": "bloom",
    "starcoder2": "starcoder2",
    "stablelm": "stablelm",
    "command-r": "cohere",
    "olmo2": "olmo2",
    "granite": "granite",
    "gpt-oss": "gpt_oss",
    "smollm3": "smollm3",
}
"""Architectures as GGUF names them, and the family that reads each."""


def config_of(contents: Contents, like: str | None = None) -> dict[str, Any]:
    """Return the keys of a config.json. Raises ``FileError`` for an architecture not read, unless
    ``like`` names the type to read it as."""
    metadata, where = contents.metadata, contents.files[0]
    arch = metadata.get("general.architecture")
    kind = TYPES.get(arch, like and arch) if isinstance(arch, str) else None
    if kind is None:
        raise FileError(
            f"{where}: no shape of a model can be read for architecture {str(arch)[:40]!r};"
            f" known are {', '.join(sorted(TYPES))}"
        )
    found: dict[str, Any] = {}
    for key, same in KEYS.items():
        value = metadata.get(f"{arch}.{key}")
        if value is not None:
            found |= dict.fromkeys(same, value)
    if kind == "llama" and found.get("num_local_experts"):
        kind = "mixtral"
    names = {t.name for t in contents.tensors}
    named = (t for t in contents.tensors if t.name == "token_embd.weight" and t.shape)
    table = next(named, None)
    tokens = metadata.get("tokenizer.ggml.tokens")
    stated = metadata.get(f"{arch}.vocab_size", tokens if isinstance(tokens, int) else None)
    vocab = table.shape[0] if table is not None else stated
    if vocab is None:
        raise FileError(f"{where}: states no vocabulary, and has no token_embd.weight")
    found["vocab_size"] = vocab
    if "num_key_value_heads" not in found:
        found["num_key_value_heads"] = found.get("num_attention_heads")
    found["tie_word_embeddings"] = "output.weight" not in names
    found["attention_bias"] = any(name.endswith("attn_q.bias") for name in names)
    return {"model_type": kind, **found}
