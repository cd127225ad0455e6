"""Settings of a deployment, typed or passed from Python: one reading and one set of defaults.

Shares, times and ratios are texts (``90%``, ``0.9``) or numbers; sizes are those of
``arguments.py``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from paramcalc.errors import InputError
from paramcalc.spelling import shown
from paramcalc.views import arguments as args
from paramcalc.views.arguments import Size

if TYPE_CHECKING:
    from paramcalc.deploy.engine import Engine
    from paramcalc.deploy.fit import Deployment
    from paramcalc.deploy.hardware import Accelerator
    from paramcalc.deploy.parallel import Layout
    from paramcalc.deploy.recipe import Recipe
    from paramcalc.deploy.serving import Service
    from paramcalc.deploy.training import Plan
    from paramcalc.deploy.training_run import Run
    from paramcalc.model import Model
    from paramcalc.views.fit_view import Answer

Number = str | float | Fraction
"""A number that is no size: ``0.9``, ``"90%"``."""
UTILIZATION, PAGE = "0.9", "16"
FLOPS, BANDWIDTH, HOP = "60%", "80%", "10"
"""Defaults of the share of memory, the tokens of a page, the shares of the peak FLOP/s and of the
bandwidth, and the microseconds of a hop."""
MOST_LETTERS = 40
"""Of a typed number; more is no share or price of anything."""
_DECIMAL = re.compile(r"[-+]?(?:(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]*)?|\.[0-9]+)")


def decimal(value: object) -> Fraction | None:
    """Return a number that is no size, exactly; a float is what it is written as. In a text digits
    with a point, commas between thousands if any. None for anything else, exponents, underscores
    and other scripts too."""
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        return Fraction(value)
    if not isinstance(value, str | float):
        return None
    plain = str(value).strip()
    if len(plain) > MOST_LETTERS or not _DECIMAL.fullmatch(plain):
        return None
    return Fraction(plain.replace(",", ""))


def share(name: str, value: Number) -> Fraction:
    """Return a share above 0 and up to 1, given as 0.9 or 90%. Raises ``InputError``."""
    found = None
    if isinstance(value, str) and value.strip().endswith("%"):
        percents = decimal(value.strip()[:-1])
        found = None if percents is None else percents / 100
    else:
        found = decimal(value)
    if found is None or not 0 < found <= 1:
        raise InputError(f"{name} = {shown(value)}: must be above 0 and at most 1; as 0.9 or 90%")
    return found


def percent(name: str, value: Number) -> int:
    """Return a share as whole percent. Raises ``InputError``."""
    found = share(name, value) * 100
    if found.denominator != 1:
        raise InputError(f"{name} = {shown(value)}: must be whole percent; round it")
    return int(found)


def nanoseconds(name: str, value: Number) -> int:
    """Return microseconds as nanoseconds. Raises ``InputError``."""
    found = decimal(value)
    if found is None or not 0 <= found * 1000 < 10**9:
        raise InputError(f"{name} = {shown(value)}: must be microseconds from 0; as 10")
    return int(found * 1000)


def ratio(name: str, value: Number) -> Fraction:
    """Return a number from 1 to 100. Raises ``InputError``."""
    found = decimal(value)
    if found is None or not 1 <= found <= 100:
        raise InputError(f"{name} = {shown(value)}: must be a number from 1 to 100; as 1.2")
    return found


class Sharing(NamedTuple):
    """How GPUs are asked to share the work; None where it is to be chosen."""

    gpus: Size | None = None
    tp: Size | None = None
    pp: Size | None = None
    ep: Size | None = None
    dp: Size | None = None

    def stated(self, *names: str) -> dict[str, int]:
        """Those of the sizes that are stated. Raises ``InputError``."""
        asked = self._asdict()
        return {n: args.size(n, asked[n]) for n in names if asked[n] is not None}


def layout(model: Model, asked: Sharing) -> Layout:
    """Return how GPUs share the work; what is not stated is chosen from ``gpus``.

    Raises ``InputError`` where the sizes do not multiply up or do not divide the model.
    """
    from paramcalc.deploy.choices import chosen
    from paramcalc.deploy.parallel import Layout

    total = args.optional("gpus", asked.gpus)
    stated = asked.stated("tp", "pp", "dp")
    found = Layout(**stated)
    product = found.gpus
    if total is not None and total % product:
        raise InputError(f"gpus = {total}: {_product(stated)} must divide it; change one of them")
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
    return found._replace(**asked.stated("ep"))


def plan(model: Model, kind: Accelerator, asked: Sharing, base: Layout, how: Recipe) -> Plan:
    """Return a plan of training on the sizes stated; what is free fills up the GPUs.

    ``base`` gives cp and etp. Raises ``InputError``.
    """
    from paramcalc.deploy.training import Plan
    from paramcalc.deploy.training_fit import chosen

    total = args.optional("gpus", asked.gpus)
    stated = asked.stated("tp", "pp", "dp")
    base = base._replace(**asked.stated("ep"))
    if total is not None and not stated:
        return chosen(model, total, base, how, kind.visible_bytes)
    found = base._replace(**stated)
    if total is not None and total != found.gpus:
        words = _product({**stated, **({"cp": base.cp} if base.cp > 1 else {})})
        if total % found.gpus:
            raise InputError(f"gpus = {total:,}: {words} must divide it; change one of them")
        if "dp" in stated:
            raise InputError(f"gpus = {total:,}: {words} is {found.gpus:,}; leave one of them out")
        found = found._replace(dp=total // found.gpus)
    return Plan(model, found, how)


def run(
    plan: Plan,
    kind: Accelerator,
    tokens: Size | None,
    mfu: Number | None,
    tokens_per_second: Size | None,
    compute: str | None,
    pue: Number,
) -> Run:
    """Return a run of a plan: how many tokens, how fast, at what overhead of energy. Raises
    ``InputError``."""
    from paramcalc.deploy.training_run import Run

    return Run(
        plan,
        kind,
        args.optional("tokens", tokens),
        None if mfu is None else share("mfu", mfu),
        args.optional("tokens_per_second", tokens_per_second),
        compute,
        ratio("pue", pue),
    )


def _product(sizes: Mapping[str, int]) -> str:
    return " x ".join(f"{name} {size}" for name, size in sizes.items())


class Tuning(NamedTuple):
    """An engine's settings as asked for; None for the engine's own on a GPU."""

    utilization: Number = UTILIZATION
    page: Size = PAGE
    reserve: Size | None = None
    max_seqs: Size | None = None
    max_batched_tokens: Size | None = None

    def engine(self, gpu: Accelerator) -> Engine:
        """Return the settings on a GPU. Raises ``InputError``."""
        from paramcalc.deploy.engine import for_gpu

        own = for_gpu(gpu)
        tokens = args.optional("max_batched_tokens", self.max_batched_tokens, tokens=True)
        return own._replace(
            utilization=share("utilization", self.utilization),
            page=args.size("page", self.page, tokens=True),
            max_batched_tokens=own.max_batched_tokens if tokens is None else tokens,
            max_seqs=args.optional("max_seqs", self.max_seqs) or own.max_seqs,
            reserve=None if self.reserve is None else args.size("reserve", self.reserve, 0),
        )


def kinds(words: args.Texts, files: Sequence[str]) -> list[Accelerator]:
    """Return the kinds of GPU that words name (a list, or commas between alternatives), the user's
    own first; ``all`` of them, or ``none``. Raises ``InputError`` where a word names none.
    """
    from paramcalc.views import hardware_table

    wanted = ",".join(args.texts("kinds", words)).strip().lower()
    if wanted == "none" or (not wanted and not isinstance(words, str)):
        return []
    asked = [[]] if wanted == "all" else [part.split() for part in wanted.split(",")]
    if wanted != "all" and not all(part and all(map(_names_a_kind, part)) for part in asked):
        raise InputError(
            f"kinds = {shown(wanted)}: must be names or makers of GPUs; as h100,mi300x or nvidia"
        )
    found = {}
    for part in asked:
        for unit in hardware_table.chosen(part, list(files))[0]:
            found[unit.name] = unit
    return list(found.values())


def _names_a_kind(word: str) -> bool:
    """Whether a word can name a GPU: it has a letter, or is a number such as 4090; digits alone
    stand somewhere in most names."""
    return any(c.isalpha() for c in word) or re.fullmatch(r"[1-9][0-9]{2,}", word) is not None


class Asked(NamedTuple):
    """A deployment as asked for: a model in formats, shared out over GPUs of one kind.

    ``files`` are hardware files; ``price`` is dollars for a GPU-hour; ``dtype`` None is as
    released.
    """

    model: Model
    gpu: str
    sharing: Sharing
    tuning: Tuning
    dtype: str | None = None
    kv_dtype: str = "bf16"
    price: str | float | None = None
    files: Sequence[str] = ()

    def placed(self) -> tuple[Deployment, Accelerator]:
        """Return the deployment and its kind of GPU. Raises ``InputError``."""
        from paramcalc.deploy.fit import Deployment

        kind = args.gpu(self.gpu, self.files, self.price)
        return Deployment(
            self.model,
            layout(self.model, self.sharing),
            self.model.released_format if self.dtype is None else self.dtype,
            self.kv_dtype,
            self.tuning.engine(kind),
        ), kind


def fit(asked: Asked, context: Size | None, batch: Size, words: args.Texts) -> Answer:
    """Return what fits of sequences of ``context`` tokens, and the fewest GPUs of the kinds that
    ``words`` name. Raises ``InputError``, also for a GPU without the arithmetic."""
    from paramcalc import formats
    from paramcalc.deploy import fitting
    from paramcalc.deploy.fit import Load
    from paramcalc.views.fit_view import Answer

    deployment, kind = asked.placed()
    formats.compute_format(deployment.format, kind.peaks or None)  # refuses a GPU without it
    n = args.optional("context", context)
    load = Load(asked.model.context if n is None else n, args.size("batch", batch))
    found = fitting.Fit(deployment, kind, load)
    listed = kinds(words, asked.files)
    smallest = fitting.smallest(found, listed, asked.tuning.engine)
    return Answer(found, smallest, len(listed) - len(smallest))


def serve(
    asked: Asked, work: tuple[Size, Size, Size], flops: Number, bandwidth: Number, hop: Number
) -> Service:
    """Return the service of a workload: tokens of a prompt, tokens written, requests at once; at
    shares of the peak FLOP/s and of the bandwidth, ``hop`` in microseconds. Raises ``InputError``.
    """
    from paramcalc.deploy.serving import Service, Workload, machine

    deployment, kind = asked.placed()
    speed = machine(
        kind,
        deployment.format,
        percent("flops_efficiency", flops),
        percent("bandwidth_efficiency", bandwidth),
        nanoseconds("hop", hop),
    )
    sizes = (args.size(name, value) for name, value in zip(Workload._fields, work, strict=True))
    return Service(deployment, kind, speed, Workload(*sizes))
