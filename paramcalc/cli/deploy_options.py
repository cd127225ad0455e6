"""Options of the commands about deployments: hardware, layout, engine."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paramcalc.cli import options as o
from paramcalc.errors import InputError

if TYPE_CHECKING:
    from paramcalc.deploy.engine import Engine
    from paramcalc.deploy.hardware import Accelerator
    from paramcalc.deploy.parallel import Layout
    from paramcalc.model import Model


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


def decimal(text: str) -> Fraction | None:
    """Return a typed number that is no size, exactly: digits with a point, commas between
    thousands if any. None for anything else, exponents, underscores and other scripts too."""
    plain = text.strip()
    if len(plain) > MOST_LETTERS or not _DECIMAL.fullmatch(plain):
        return None
    return Fraction(plain.replace(",", ""))


_DECIMAL = re.compile(r"[-+]?(?:(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]*)?|\.[0-9]+)")
MOST_LETTERS = 40
"""Of a typed number; more is no share or price of anything."""


def share(name: str, text: str) -> Fraction:
    """Return a share above 0 and up to 1, typed 0.9 or 90%. Raises ``InputError``."""
    plain = text.strip()
    value = (decimal(plain.removesuffix("%")) or Fraction(0)) / (100 if plain.endswith("%") else 1)
    if not 0 < value <= 1:
        raise InputError(f"{name} = {text}: must be above 0 and at most 1; as 0.9 or 90%")
    return value


def percent(name: str, text: str) -> int:
    """Return a share as whole percent. Raises ``InputError``."""
    value = share(name, text) * 100
    if value.denominator != 1:
        raise InputError(f"{name} = {text}: must be whole percent; round it")
    return int(value)


def nanoseconds(name: str, text: str) -> int:
    """Return typed microseconds as nanoseconds. Raises ``InputError``."""
    value = decimal(text)
    if value is None or not 0 <= value * 1000 < 10**9:
        raise InputError(f"{name} = {text}: must be microseconds from 0; as 10")
    return int(value * 1000)


def ratio(name: str, text: str) -> Fraction:
    """Return a typed number from 1 to 100. Raises ``InputError``."""
    value = decimal(text)
    if value is None or not 1 <= value <= 100:
        raise InputError(f"{name} = {text}: must be a number from 1 to 100; as 1.2")
    return value


def accelerator(name: str, files: list[str] | None, price: str | None) -> Accelerator:
    """Return a kind of GPU, with the price typed for it. Raises ``InputError``."""
    from paramcalc.deploy import hardware
    from paramcalc.deploy.hardware_file import priced

    found = hardware.find(name, files or [])
    return found if price is None else priced(found, price)


def kinds(words: str, files: list[str] | None) -> list[Accelerator]:
    """Return the kinds of GPU that words name (commas between alternatives), the user's own first.

    Raises ``InputError`` where a word names none.
    """
    from paramcalc.views import hardware_table

    wanted = words.strip().lower()
    if wanted == "none":
        return []
    asked = [[]] if wanted == "all" else [part.split() for part in wanted.split(",")]
    if wanted != "all" and not all(part and all(map(_names_a_kind, part)) for part in asked):
        raise InputError(
            f"kinds = {words}: must be names or makers of GPUs; as h100,mi300x or nvidia"
        )
    found = {}
    for part in asked:
        for unit in hardware_table.chosen(part, files or [])[0]:
            found[unit.name] = unit
    return list(found.values())


def _names_a_kind(word: str) -> bool:
    """Whether a word can name a GPU: it has a letter, or is a number such as 4090; digits alone
    stand somewhere in most names."""
    return any(c.isalpha() for c in word) or re.fullmatch(r"[1-9][0-9]{2,}", word) is not None


def count(name: str, text: str | None) -> int | None:
    """Return a typed count of at least 1, or None. Raises ``InputError``."""
    return None if text is None else o.positive(name, text)


def layout(
    model: Model,
    gpus: str | None,
    tp: str | None,
    pp: str | None,
    ep: str | None,
    dp: str | None,
) -> Layout:
    """Return how GPUs share the work; what is not stated is chosen from ``gpus``.

    Raises ``InputError`` where the sizes do not multiply up or do not divide the model.
    """
    from paramcalc.deploy.choices import chosen
    from paramcalc.deploy.parallel import Layout

    total = count("gpus", gpus)
    sizes = {"tp": count("tp", tp), "pp": count("pp", pp), "dp": count("dp", dp)}
    stated = {name: size for name, size in sizes.items() if size is not None}
    product = 1
    for size in stated.values():
        product *= size
    if total is not None and total % product:
        words = " x ".join(f"{name} {size}" for name, size in stated.items())
        raise InputError(f"gpus = {total}: {words} must divide it; change one of them")
    found = Layout(**stated)
    if total is not None and total != product:
        free = [name for name in ("tp", "pp") if name not in stated]
        if len(free) == 2:
            own = chosen(model, total // product)
            found = found._replace(tp=own.tp, pp=own.pp)
        elif "dp" not in stated:
            found = found._replace(dp=total // product)
        elif free:
            found = found._replace(**{free[0]: total // product})
        else:
            raise InputError(f"gpus = {total}: tp x pp x dp is {product}; leave one of them out")
    experts = count("ep", ep)
    return found if experts is None else found._replace(ep=experts)


def engine(
    gpu: Accelerator,
    utilization: str,
    page: str,
    reserve: str | None,
    max_seqs: str | None,
    max_batched: str | None,
) -> Engine:
    """Return an engine's settings as typed, else its own on a GPU. Raises ``InputError``."""
    from paramcalc.deploy.engine import for_gpu

    own = for_gpu(gpu)
    return own._replace(
        utilization=share("utilization", utilization),
        page=o.positive("page", page),
        max_batched_tokens=count("max_batched_tokens", max_batched) or own.max_batched_tokens,
        max_seqs=count("max_seqs", max_seqs) or own.max_seqs,
        reserve=None if reserve is None else bytes_outside(reserve),
    )


def bytes_outside(text: str) -> int:
    """Return the bytes of a typed ``--reserve``, 0 or more. Raises ``InputError``."""
    value = o.size("reserve", text)
    if value < 0:
        raise InputError(f"reserve = {text}: must be at least 0; raise it")
    return value
