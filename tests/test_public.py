"""What others build on: public names, command-line options, stable columns."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest
import typer

import paramcalc
from paramcalc.cli.main import COMMANDS
from paramcalc.quantities.catalogue import CATALOGUE

SHARED = ["--json", "--csv", "--markdown"]
CARD = [
    "--d",
    "--layers",
    "-L",
    "--heads",
    "-H",
    "--kv",
    "--head-dim",
    "--ff",
    "--vocab",
    "-V",
    "--experts",
    "-E",
    "--top-k",
    "-k",
    "--context",
    "-n",
    "--tie",
    "--no-tie",
    "--gpt2",
    "--no-gpt2",
    "--gated",
    "--no-gated",
    "--set",
    "--batch",
    "--kv-dtype",
]
OPTIONS = {
    "show": [*CARD, "--tensors", "--by-layer", "--mtp", "--as", "--like", "--arch", *SHARED],
    "list": ["--moe", "--dense", "--min", "--max", "--by", "--types", *SHARED],
    "compare": ["--context", "-n", "--batch", "--kv-dtype", "--mtp", *SHARED],
    "sweep": [
        *(o for o in CARD if o not in ("--no-tie", "--no-gpt2", "--no-gated")),
        "--dtype",
        "--columns",
        "--where",
        "--target",
        "--within",
        "--top",
        "--by",
        "--descending",
        "--min",
        "--max",
        "--pareto",
        "--count",
        "--rows",
        "--out",
        "--part-rows",
        "--plot",
        "--workers",
        "--dask",
        "--force",
        "--yes",
        "-y",
        *("--gpu", "--gpus", "--tp", "--price", "--hardware"),
        "--list-columns",
        *SHARED,
    ],
    "explain": ["--context", "-n", "--set", "--mtp", "--like", "--arch", *SHARED],
    "train": [
        "--tokens",
        *("--gpu", "--gpus", "--tp", "--pp", "--ep", "--dp", "--cp", "--etp"),
        *("--seq", "--micro-batch", "--global-batch", "--global-batch-tokens"),
        *("--optimizer", "--dtype", "--grad-dtype", "--master", "--no-master"),
        *("--zero", "--shard-over", "--recompute", "--attention"),
        *("--sequence-parallel", "--no-sequence-parallel", "--schedule", "--virtual"),
        *("--lora-rank", "--lora-targets", "--base-dtype"),
        *("--mfu", "--tokens-per-second", "--compute", "--pue", "--chinchilla", "--kept"),
        *("--reserve", "--price", "--hardware", "--like", "--arch"),
        *SHARED,
    ],
    "formats": ["--dtype", "--like", "--arch", *SHARED],
    "fit": [
        *("--gpu", "--gpus", "--tp", "--pp", "--ep", "--dp", "--context", "-n", "--batch"),
        *("--dtype", "--kv-dtype", "--utilization", "--page", "--reserve"),
        *("--max-seqs", "--max-batched-tokens", "--kinds"),
        *("--price", "--hardware", "--like", "--arch"),
        *SHARED,
    ],
    "serve": [
        *("--gpu", "--gpus", "--tp", "--pp", "--ep", "--dp", "--prompt", "--output", "--batch"),
        *("--dtype", "--kv-dtype", "--flops-efficiency", "--bandwidth-efficiency", "--hop"),
        *("--utilization", "--page", "--reserve", "--max-seqs", "--max-batched-tokens"),
        *("--price", "--hardware", "--like", "--arch"),
        *SHARED,
    ],
    "moe": [
        "--tokens",
        "--capacity-factor",
        "--min-capacity",
        "--block",
        "--skew",
        "--loads",
        "--ep",
        "--seed",
        *SHARED,
    ],
    "hardware": ["--hardware", *SHARED],
    "sheet": [
        *("--out", "-o", "--force", "--context", "-n", "--batch", "--dtype", "--kv-dtype"),
        *("--gpu", "--gpus", "--tp", "--price", "--hardware", "--mtp"),
    ],
    "annotate": [
        *("--out", "-o", "--force", "--columns", "--sheet", "--header-row"),
        *("--price", "--hardware"),
        *("--model-column", "--gpu-column", "--gpus-column", "--tp-column", "--context-column"),
        *("--batch-column", "--dtype-column", "--kv-dtype-column", "--price-column"),
    ],
    "page": ["--out", "-o", "--force", "--serve", "--port"],
    "audit": ["--like", "--arch", *SHARED],
    "preset": ["--like", "--arch"],
}


def test_public_names() -> None:
    assert sorted(paramcalc.__all__) == [
        "Cache",
        "ConfigError",
        "FileError",
        "InputError",
        "Ledger",
        "Model",
        "ModelSpec",
        "Operation",
        "ParamcalcError",
        "Result",
        "SpecError",
        "Tensor",
        "UnknownPreset",
        "UnknownType",
        "compare",
        "fit",
        "grid",
        "load",
        "preset_names",
        "report",
        "serve",
        "train",
    ]
    for name in paramcalc.__all__:
        assert getattr(paramcalc, name).__doc__, name
    assert set(paramcalc.__all__) < set(dir(paramcalc))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = paramcalc.nothing  # type: ignore[attr-defined]


def test_one_tree_of_exceptions() -> None:
    assert issubclass(paramcalc.InputError, paramcalc.ParamcalcError)
    assert issubclass(paramcalc.InputError, ValueError)
    for name in ("ConfigError", "FileError", "SpecError", "UnknownPreset", "UnknownType"):
        assert issubclass(getattr(paramcalc, name), paramcalc.InputError)


@pytest.mark.parametrize("command", COMMANDS)
def test_options_of_each_command(command: str) -> None:
    app = importlib.import_module(f"paramcalc.cli.{command}").app
    found = [
        name
        for param in typer.main.get_command(app).params
        for name in [*param.opts, *param.secondary_opts]
        if name.startswith("-") and name != "--help"
    ]
    assert sorted(found) == sorted(OPTIONS[command])


def test_quantity_names_are_stable() -> None:
    assert list(CATALOGUE) == [
        "params",
        "active_params",
        "non_embedding_params",
        "buffers",
        "matmul_flops_per_token",
        "router_flops_per_token",
        "attention_flops_per_token",
        "flops_per_token",
        "prefill_flops",
        "prefill_flops_all_pairs",
        "training_flops",
        "training_flops_6n",
        "causal_links",
        "attention_equals_matmuls_at",
        "weight_bytes_fp32",
        "weight_bytes_bf16",
        "weight_bytes_fp8",
        "weight_bytes_int8",
        "weight_bytes_int4",
        "kv_bytes_per_token",
        "kv_bytes_next_token",
        "kv_bytes",
    ]


RANKS = [
    "errors numbers symbols writing",
    "sight",
    "ledger",
    "layout blocks spelling rules sections spec",
    "build",
    "symbolic formats",
    "quantities",
    "families",
    "model",
    "sources",
    "audit",
    "deploy",
    "sweep",
    "fleet",
    "views",
    "cli",
]
"""Imports point up this list only; modules on one line may use each other."""


def test_imports_point_one_way() -> None:
    rank = {name: i for i, line in enumerate(RANKS) for name in line.split()}
    package = Path(paramcalc.__path__[0])
    for path in package.rglob("*.py"):
        parts = path.relative_to(package).with_suffix("").parts
        if parts[0] in ("__init__", "__main__"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), path
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("paramcalc."):
                used = [(node.module or "").split(".")[1]]
            elif isinstance(node, ast.ImportFrom) and node.module == "paramcalc":
                used = [a.name for a in node.names if a.name in rank]
            else:
                continue
            for name in used:
                # what only the type checker or a message needs may look up
                if rank[name] > rank[parts[0]]:
                    assert name in ("spec", "sections"), (path.name, name)
