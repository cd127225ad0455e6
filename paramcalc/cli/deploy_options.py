"""Options of the commands about deployments: hardware, layout, engine."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from paramcalc.cli import options as o


def complete_hardware(incomplete: str) -> list[str]:
    """Return the accelerators that start with what was typed."""
    from paramcalc.deploy import hardware

    return [unit.name for unit in hardware.all() if unit.name.startswith(incomplete)]


def complete_weights(incomplete: str) -> list[str]:
    """Return the formats of weights that start with what was typed."""
    from paramcalc.formats.llama_cpp import file_types
    from paramcalc.formats.schemes import SCHEMES

    return [name for name in (*SCHEMES, *file_types()) if name.startswith(incomplete)]


def _count(name: str, says: str) -> Any:
    return typer.Option(name, metavar="N", help=says)


Gpu = Annotated[
    str,
    typer.Option(
        "--gpu",
        metavar="NAME",
        help="Kind of GPU (paramcalc hardware).",
        autocompletion=complete_hardware,
    ),
]
Hardware = Annotated[
    list[str] | None,
    typer.Option("--hardware", metavar="FILE", help="Your own accelerators, with prices."),
]
Price = Annotated[
    str | None, typer.Option("--price", metavar="DOLLARS", help="Price of a GPU-hour.")
]
Gpus = Annotated[str | None, _count("--gpus", "GPUs in all.")]
Tp = Annotated[str | None, _count("--tp", "Tensor-parallel ranks.")]
Pp = Annotated[str | None, _count("--pp", "Pipeline stages.")]
Ep = Annotated[str | None, _count("--ep", "Expert-parallel ranks.")]
Dp = Annotated[str | None, _count("--dp", "Data-parallel replicas.")]
Dtype = Annotated[
    str | None,
    typer.Option(
        "--dtype",
        metavar="DTYPE",
        help="Format of the weights (default: as released).",
        autocompletion=complete_weights,
    ),
]
Utilization = Annotated[
    str, typer.Option("--utilization", metavar="SHARE", help="Memory that the engine may take.")
]
Page = Annotated[str, _count("--page", "Tokens in a cache page.")]
Reserve = Annotated[
    str | None,
    typer.Option("--reserve", metavar="SIZE", help="Bytes outside the allocator (500M)."),
]
MaxSeqs = Annotated[
    str | None, _count("--max-seqs", "Requests sampled at once (1024; 256 below 70 GiB, A100).")
]
MaxBatched = Annotated[
    str | None,
    _count("--max-batched-tokens", "Tokens of one step (8192; 2048 below 70 GiB, A100)."),
]


def count(name: str, text: str | None) -> int | None:
    """Return a typed count of at least 1, or None. Raises ``InputError``."""
    return None if text is None else o.positive(name, text)
