"""Measure what autograd keeps for the backward pass: rows of tests/golden/activations.json.

Needs torch and transformers, which the package and its tests do not. A model runs forward on CPU in
bfloat16 under ``saved_tensors_hooks``. The rule of counting: each data pointer once, at the
elements of the tensor that was kept (a slice of a larger buffer counts as the slice), parameters
left out. The loss of the ``total`` is a plain sum, which keeps nothing; ``loss_bytes`` is what
cross-entropy keeps beyond it, ``checkpointed_layer_bytes`` what a layer keeps under the framework's
(reentrant) gradient checkpointing. Experts run as the framework's default, ``grouped_mm``.

    python tools/measure_activations.py [SEED]          # random shapes of every kind, as JSON
    python tools/measure_activations.py --names ROW     # each tensor that a row (JSON) keeps
"""

from __future__ import annotations

import json
import random
import sys
import traceback
from typing import Any

import torch
import transformers

CLASSES = {
    "llama": ("LlamaConfig", "LlamaForCausalLM"),
    "mistral": ("MistralConfig", "MistralForCausalLM"),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM"),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM"),
    "mixtral": ("MixtralConfig", "MixtralForCausalLM"),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel"),
}
KEYS = {
    "d": "hidden_size",
    "H": "num_attention_heads",
    "kv": "num_key_value_heads",
    "head_dim": "head_dim",
    "ff": "intermediate_size",
    "vocab": "vocab_size",
    "experts": "num_local_experts",
    "top_k": "num_experts_per_tok",
    "window": "sliding_window",
    "bias": "attention_bias",
    "drop": "attention_dropout",
}
GPT2 = {"d": "n_embd", "H": "n_head", "ff": "n_inner", "vocab": "vocab_size"}


def model_of(row: dict[str, Any], layers: int) -> torch.nn.Module:
    """Return the model of a row with so many layers, ready to train in bfloat16."""
    config_class, model_class = (getattr(transformers, n) for n in CLASSES[row["model"]])
    if row["model"] == "gpt2":
        kwargs = {GPT2[k]: v for k, v in row.items() if k in GPT2}
        drops = dict.fromkeys(("attn_pdrop", "resid_pdrop", "embd_pdrop"), row["drop"])
        kwargs |= {"n_layer": layers, "n_positions": 1024, **drops}
    else:
        kwargs = {KEYS[k]: v for k, v in row.items() if k in KEYS}
        kwargs["num_hidden_layers"] = layers
    special = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"))
    config = config_class(**kwargs, **special, attn_implementation=row["attn"])
    return model_class(config).to(torch.bfloat16).train()


def kept(model: torch.nn.Module, batch: int, seq: int, labels: bool) -> dict[int, tuple[int, str]]:
    """Return bytes and place of each tensor kept, by its data pointer."""
    found: dict[int, tuple[int, str]] = {}
    alive = []
    weights = {p.data_ptr() for p in model.parameters()}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        pointer, size = tensor.data_ptr(), tensor.numel() * tensor.element_size()
        alive.append(tensor)  # so that no address is used twice
        if pointer not in weights and size > found.get(pointer, (0, ""))[0]:
            frames = [f for f in traceback.extract_stack() if "transformers" in f.filename]
            where = f"{frames[-1].name}: {frames[-1].line}" if frames else ""
            found[pointer] = (size, f"{tuple(tensor.shape)} {tensor.dtype} {where}"[:150])
        return tensor

    ids = torch.randint(0, model.config.vocab_size, (batch, seq))
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        out = model(ids, labels=ids).loss if labels else model(ids).logits.sum()
    del out
    return found


def measured(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row with its bytes: one layer, a model of 2 layers, and cross-entropy."""

    def total(layers: int, labels: bool = False, checkpointing: bool = False) -> int:
        model = model_of(row, layers)
        if checkpointing:
            model.gradient_checkpointing_enable({"use_reentrant": True})
        found = kept(model, row["batch"], row["seq"], labels)
        return sum(size for size, _ in found.values())

    two = total(2)
    return row | {
        "per_layer_bytes": total(3) - two,
        "total_L2": two,
        "loss_bytes": total(2, labels=True) - two,
        "checkpointed_layer_bytes": total(3, checkpointing=True) - total(2, checkpointing=True),
    }


def cases(rng: random.Random) -> list[dict[str, Any]]:
    """Shapes of every kind: odd lengths, head widths apart from d / H, one KV head, dropout."""
    rows = []
    for kind in CLASSES:
        for attn in ("eager", "sdpa"):
            for number in range(6):
                heads = rng.choice([2, 4, 6])
                width = rng.choice([16, 24, 32, 264 if number == 5 else 16])
                d = heads * (width if kind == "gpt2" else rng.choice([8, 16, 24]))
                row: dict[str, Any] = {"model": kind, "attn": attn, "batch": rng.choice([1, 2, 3])}
                row |= {"seq": rng.choice([5, 33, 47, 64, 77]), "d": d, "H": heads}
                if kind != "gpt2":
                    row |= {"kv": rng.choice([1, 2, heads]), "head_dim": width}
                row |= {"ff": rng.choice([40, 96, 136]), "vocab": rng.choice([50, 101, 300])}
                if kind == "mixtral":
                    row |= {"experts": rng.choice([4, 8]), "top_k": number % 3 + 1}
                if kind in ("mistral", "mixtral"):
                    row["window"] = rng.choice([None, 16, 33, 64, 200])
                if kind == "llama":
                    row["bias"] = rng.choice([True, False])
                row["drop"] = rng.choice([0.0, 0.1])
                rows.append(row)
    return rows


def main() -> None:
    """Print measured rows, or the tensors of one."""
    torch.manual_seed(0)
    transformers.logging.set_verbosity_error()
    if "--names" in sys.argv:
        row = json.loads(sys.argv[-1])
        for size, where in kept(model_of(row, 1), row["batch"], row["seq"], True).values():
            print(f"{size:>12,}  {where}")
        return
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    rows = [json.dumps(measured(row)) for row in cases(random.Random(seed))]
    print("[\n" + ",\n".join(rows) + "\n]")


if __name__ == "__main__":
    main()
