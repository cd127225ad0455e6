"""Reading and counting one config.json against the path of a preset, in one run.

    python benchmarks/reading.py

Prints the ratio of CPU time, over several types; the goal is 1.3.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from pathlib import Path

import paramcalc

PAIRS = {
    "llama3-8b": {
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "max_position_embeddings": 8192,
    },
    "deepseek-v3": {"model_type": "deepseek_v3", "max_position_embeddings": 163840},
    "gemma3-1b": {
        "model_type": "gemma3_text",
        "hidden_size": 1152,
        "intermediate_size": 6912,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "vocab_size": 262144,
        "sliding_window": 512,
    },
    "gpt2": {"model_type": "gpt2"},
}
ROUNDS = 300


def cost(source: str) -> float:
    """Return the CPU seconds to read a model and count its parameters."""
    started = time.process_time()
    paramcalc.load(source).params.total  # noqa: B018 (the count is what is timed)
    return time.process_time() - started


def main() -> None:
    """Print one line a model."""
    with tempfile.TemporaryDirectory() as folder:
        for preset, config in PAIRS.items():
            path = Path(folder) / preset / "config.json"
            path.parent.mkdir()
            path.write_text(json.dumps(config), encoding="utf-8")
            total = paramcalc.load(str(path)).params.total
            assert total == paramcalc.load(preset).params.total, preset
            pairs = [(cost(str(path)), cost(preset)) for _ in range(ROUNDS)]
            ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
            print(
                f"{preset:<12} config {1e3 * ours:.2f} ms, preset {1e3 * theirs:.2f} ms:"
                f" {ours / theirs:.2f} x"
            )


if __name__ == "__main__":
    main()
