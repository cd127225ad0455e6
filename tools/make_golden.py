"""Rebuild the golden facts: build each model class on the meta device, and count.

Needs torch and transformers, which no test does:

    python -m venv golden && golden/bin/pip install torch==2.13.0 transformers==5.24.0
    golden/bin/python tools/make_golden.py types > types.jsonl
    golden/bin/python tools/make_golden.py classes llama
    golden/bin/python tools/make_golden.py row llama LlamaForCausalLM --set hidden_size=2048
    golden/bin/python tools/make_golden.py vary llama LlamaForCausalLM --number 5 --seed 1

One JSON object a line: ``model_type``, ``arch``, ``config``, ``params`` (a tied tensor once,
buffers out), ``tensors`` ([name with {i} for a layer, shape, how many]) and, with
``--flops 128,1024``, ``forward_flops``: the matmul FLOPs of one sequence, attention eager,
top-k experts. ``classes`` prints one row for every class of a type, with the parameters of its
``body``, the part that a class without a head would hold.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
import transformers
import transformers.masking_utils
from torch.utils.flop_counter import FlopCounterMode

warnings.filterwarnings("ignore")
transformers.logging.set_verbosity_error()
transformers.masking_utils.find_packed_sequence_indices = lambda *_, **__: None  # reads values

AUTO = {
    "causal": "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    "seq2seq": "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
    "masked": "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
}
STEP = {"vocab_size": 64, "max_position_embeddings": 16, "intermediate_size": 64}
VARIED = re.compile(
    r"(_size|_dim|_rank|_heads|_experts|_state|_layers|_kernel|_width|_ffn_dim|^d_\w+|^n_\w+|_groups)$"
)
KEPT = re.compile(r"(token|hidden_size$|d_model$|num_labels|vocab_size_per)")


def model_class(arch: str) -> Any:
    """Return a model class by its name."""
    return getattr(transformers, arch)


def make_config(model_type: str, changes: dict[str, Any]) -> Any:
    """Return the type's configuration with changes; a dotted key reaches a nested section."""
    config = transformers.AutoConfig.for_model(model_type)
    flat = {k: v for k, v in changes.items() if "." not in k}
    for key, value in changes.items():
        head, _, rest = key.partition(".")
        if rest:
            inner = dict(flat.get(head) or getattr(config, head).to_dict())
            inner[rest] = value
            flat[head] = inner
    return transformers.AutoConfig.for_model(model_type, **flat)


def build(config: Any, arch: str) -> Any:
    """Return the model on the meta device, without weights."""
    config._attn_implementation = "eager"
    config._experts_implementation = "batched_mm"
    with torch.device("meta"):
        model = model_class(arch)(config)
    model.tie_weights()
    return model.eval()


def tensors(model: Any) -> list[list[Any]]:
    """Return [name, shape, how many], layers merged under {i}."""
    found: Counter[tuple[str, tuple[int, ...]]] = Counter()
    for name, parameter in model.named_parameters():
        found[re.sub(r"(?<=\.)\d+(?=\.|$)", "{i}", name, count=1), tuple(parameter.shape)] += 1
    return [[name, list(shape), count] for (name, shape), count in found.items()]


def flops(model: Any, length: int) -> int | None:
    """Return the matmul FLOPs of one sequence; None where the class cannot run on meta tensors."""
    tokens = torch.zeros((1, length), dtype=torch.long, device="meta")
    inputs: dict[str, Any] = {"input_ids": tokens}
    if model.config.is_encoder_decoder and hasattr(model, "get_encoder"):
        inputs["decoder_input_ids"] = inputs["input_ids"]
    try:
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            model(**inputs, use_cache=False)
    except TypeError:
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            model(**inputs)
    return int(counter.get_total_flops())


def row(model_type: str, arch: str, changes: dict[str, Any], lengths: list[int]) -> dict[str, Any]:
    """Return one golden row."""
    config = make_config(model_type, changes)
    model = build(config, arch)
    found: dict[str, Any] = {
        "model_type": model_type,
        "arch": arch,
        "config": json.loads(config.to_json_string(use_diff=False)),
        "params": sum(p.numel() for p in model.parameters()),
        "tensors": tensors(model),
    }
    found["config"]["model_type"] = model_type
    found["changed"] = changes
    for length in lengths:
        try:
            total: Any = {"total": flops(model, length)}
        except Exception as error:  # a class that needs data, or a kernel without meta tensors
            total = {"error": f"{type(error).__name__}: {error}"[:120]}
        found.setdefault("forward_flops", {})[str(length)] = total
    return found


def classes(model_type: str) -> Iterator[dict[str, Any]]:
    """Yield a row for every model class that takes the type's configuration."""
    kind = transformers.CONFIG_MAPPING[model_type]
    package = import_module(kind.__module__.rpartition(".")[0])
    for path in sorted(Path(str(package.__file__)).parent.glob("modeling_*.py")):
        module = import_module(f"{package.__name__}.{path.stem}")
        for arch in getattr(module, "__all__", []):
            abstract = "PreTrained" in arch or "Pretrained" in arch
            if getattr(getattr(module, arch), "config_class", None) is kind and not abstract:
                found = row(model_type, arch, {}, [])
                body = build(make_config(model_type, {}), arch).base_model
                yield {**found, "body": sum(p.numel() for p in body.parameters())}


def variation(model_type: str, rng: random.Random) -> dict[str, Any]:
    """Return some shape-changing keys with other values, of which the class takes most."""
    config = transformers.AutoConfig.for_model(model_type).to_dict()
    keys = [k for k, v in config.items() if not KEPT.search(k)]
    changes: dict[str, Any] = {}
    for key in rng.sample(keys, len(keys)):
        value = config[key]
        if isinstance(value, bool) and ("bias" in key or "tie" in key or key.startswith("use_")):
            changes[key] = not value
        elif type(value) is int and value > 0 and VARIED.search(key):
            changes[key] = rng.choice([value * 2, max(1, value // 2), value + STEP.get(key, 1)])
        if len(changes) >= 4:
            break
    return changes


def main() -> None:
    """Print rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["types", "classes", "row", "vary"])
    parser.add_argument("model_type", nargs="?")
    parser.add_argument("arch", nargs="?")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=JSON")
    parser.add_argument("--flops", default="")
    parser.add_argument("--number", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    lengths = [int(n) for n in given.flops.split(",") if n]
    if given.what == "types":
        from transformers.models.auto import modeling_auto

        for task, mapping in AUTO.items():
            for model_type, arch in getattr(modeling_auto, mapping).items():
                try:
                    found = {**row(model_type, arch, {}, lengths), "task": task}
                    print(json.dumps(found), flush=True)
                except Exception as error:
                    print(f"{model_type} {arch}: {error}"[:200], file=sys.stderr)
    elif given.what == "classes":
        for found in classes(given.model_type):
            print(json.dumps(found), flush=True)
    elif given.what == "row":
        pairs = (text.partition("=") for text in given.set)
        changes = {key: json.loads(value) for key, _, value in pairs}
        print(json.dumps(row(given.model_type, given.arch, changes, lengths)))
    else:
        rng, done = random.Random(given.seed), 0
        for _ in range(given.number * 6):
            changes = variation(given.model_type, rng)
            try:
                print(json.dumps(row(given.model_type, given.arch, changes, lengths)), flush=True)
                done += 1
            except Exception as error:
                print(f"{changes}: {error}"[:200], file=sys.stderr)
            if done == given.number:
                break


if __name__ == "__main__":
    main()
