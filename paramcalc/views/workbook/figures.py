"""A model's figures on its GPUs: memory, a decode step, a prompt, cost, in the sheet's rows."""

from __future__ import annotations

from typing import Any

from paramcalc import formats
from paramcalc.deploy import fit, roofline
from paramcalc.deploy.columns import BANDWIDTH_PERCENT, FLOPS_PERCENT, HOP
from paramcalc.deploy.engine import Engine
from paramcalc.deploy.figures import GIB, MICRO
from paramcalc.deploy.parallel import Layout
from paramcalc.deploy.roofline import Machine, Step
from paramcalc.deploy.serving import SECOND, per_million
from paramcalc.formats.schemes import SCHEMES
from paramcalc.ledger import Ledger
from paramcalc.numbers import maximum
from paramcalc.symbols import Formula, lift, symbol
from paramcalc.views.cells import Writer
from paramcalc.views.workbook.column import Column
from paramcalc.views.workbook.rows import ROWS
from paramcalc.views.workbook.tensors import ModelRows

ROW_LABELS = {key: label for key, label, _ in ROWS}
LACKS = "not in this format"
"""Said where a GPU has no arithmetic for the format, as ``paramcalc fit`` refuses it."""
NO_RATE = "none: rate not known"
SEE_FITS = "none: see fits"
NO_TOKENS = "none: writes no tokens"
COVERS = ("all", "layers", "experts")
"""Which tensors a format holds: each is its own sum of FLOPs in the format and in 16 bits."""


def writes(column: Column) -> bool:
    """Whether a model writes tokens at all: an encoder alone has no decode step."""
    return column.placed.model.spec.writes


def layout_of(column: Column) -> Layout:
    """How a model's GPUs share the work, on symbols."""
    tp: Any = column.at("tp")
    replicas: Any = column.at("replicas")
    return Layout(tp=tp, dp=replicas)


def write(column: Column, rows: ModelRows, writer: Writer) -> None:
    """Write all figures of a model's column."""
    ledger = column.placed.ledger
    _memory(column, rows, ledger, writer)
    if writes(column):
        _Passes(column, rows, ledger, writer).write()
        _cost(column, writer)
    _times(column)


def workspace(column: Column, tokens: Any, requests: Any) -> Any:
    """Bytes of workspace on a GPU whose engine takes so many tokens and requests a step: those of
    one token and one request, as often (``Stage.workspace``)."""
    return maximum(column.at("pass_token") * tokens, column.at("sample_request") * requests)


def _memory(column: Column, rows: ModelRows, ledger: Ledger, writer: Writer) -> None:
    put, at = column.put, column.at
    vocab: Any = column.placed.spec.vocab_size
    engine = Engine(max_batched_tokens=1, max_seqs=1)
    stage = fit.stage_of(ledger, layout_of(column), SCHEMES["bf16"], engine, vocab)
    page = rows.sheets.one_gpu
    width = len(rows.sheets.formats.plain)
    held = sum(
        int(page.values[row, rows.sheets.units + width + 4])
        for row in range(rows.block.first, rows.block.last + 1)
    )
    put("gpu_weights", f"=SUM({rows.held()})", held)
    for key, value in (("pass_token", stage.forward), ("sample_request", stage.sampling)):
        put(key, writer.cell(value), lift(value).value)
    own = workspace(column, at("step_tokens"), at("step_requests"))
    for key, value in (("workspace", own), ("reserve", stage.reserve)):
        put(key, writer.cell(value), lift(value).value)
    context, bits = at("at_context"), at("kv_bits")
    page_size = engine.page

    def cache(batch: Any) -> Formula:
        return lift(fit.paged_bytes(stage.ledger, context, batch, bits, page_size))  # type: ignore[arg-type]

    all_ = cache(at("batch_replica"))
    put("gpu_cache", writer.cell(all_), all_.value)
    needed = at("gpu_weights") + at("workspace") + at("reserve") + at("gpu_cache")
    free = at("budget") - needed
    valid = "valid"
    column.put("needed", column.if_(valid, writer.text(needed)), needed.value)
    column.put("free", column.if_(valid, writer.text(free)), free.value)
    name = column.name
    for key, of, unit, size in (
        ("needed_gb", "needed", "10^9", needed.value / 10**9),
        ("needed_gib", "needed", "2^30", needed.value / GIB),
        ("free_gb", "free", "10^9", free.value / 10**9),
        ("free_gib", "free", "2^30", free.value / GIB),
    ):
        column.show(key, column.if_(valid, f"{name(of)}/{unit}"), size, "giga")
    _verdict(column, free.value)
    holds = int(free.value >= 0) * at("runs").value
    inside = f"IF({name('runs')}=1,IF({name('free')}>=0,1,0),0)"
    put("holds", f"=IF({name(valid)}=1,{inside},0)", holds)
    known = at("known").value
    put("timed", f"=IF({name('holds')}=1,{name('known')},0)", holds * known)
    one = cache(1)
    if one.constant == 0:
        return  # nothing is kept, so any number fits
    put("cache_sequence", writer.cell(one), one.value)
    room = at("budget") - at("gpu_weights") - at("workspace") - at("reserve")
    each: Any = room // at("cache_sequence")
    most = lift(maximum(0, each) * at("replicas"))
    column.put("largest_batch", column.if_(valid, writer.text(most)), most.value)


def _verdict(column: Column, free: int) -> None:
    """Whether it fits, or why that cannot be said."""
    name = column.name
    words = "fits" if free >= 0 else "does not fit"
    text = f'IF({name("free")}>=0,"fits","does not fit")'
    for key, holds, instead in (
        ("runs", "=0", LACKS),
        ("broken", ">0", "check the rules"),
        ("wrong", ">0", "check the inputs"),
    ):
        text = f'IF({name(key)}{holds},"{instead}",{text})'
    shown = words if column.at("runs").value else LACKS
    column.show("fits", f"={text}", shown, "right")


def _times(column: Column) -> None:
    """Whether there are times, or why not."""
    name = column.name
    if not writes(column):
        column.show("times", f'="{NO_TOKENS}"', NO_TOKENS, "right")
        return
    text = f'=IF({name("timed")}=1,"shown",IF({name("holds")}=1,"{NO_RATE}","{SEE_FITS}"))'
    shown = "shown" if column.at("timed").value else NO_RATE
    column.show("times", text, shown if column.at("holds").value else SEE_FITS, "right")


class _Passes:
    """The decode step and the prompt."""

    def __init__(self, column: Column, rows: ModelRows, ledger: Ledger, writer: Writer) -> None:
        self.column, self.rows, self.ledger, self.writer = column, rows, ledger, writer
        self.layout = layout_of(column)
        experts = any(t.shard.startswith("expert") for t in ledger.tensors)
        settled: list[Any] = [formats.settled(fmt, ledger) for fmt in rows.sheets.formats.plain]
        self.kinds = [COVERS.index(fmt.covers) + 1 for fmt in settled]
        """The place in ``covers`` of each format of the list, from 1."""
        self.covers = COVERS if experts else COVERS[:2]

    def write(self) -> None:
        """Write both passes, and tokens a second."""
        at, show = self.column.at, self.column.show
        self._pass("step")
        self._pass("first")
        time = at("step_time")
        batch = at("batch")
        for key, value in (
            ("tokens", batch * SECOND // time),
            ("tokens_request", SECOND // time),
            ("tokens_gpu", batch * SECOND // (time * at("gpus"))),
        ):
            shown = lift(value).value if at("timed").value else ""
            show(key, self.column.if_("timed", self.writer.text(value)), shown)
        for key, of, unit, size in (
            ("step_ms", "step_time", "10^6", time.value / 10**6),
            ("first_seconds", "first_time", "10^9", at("first_time").value / 10**9),
        ):
            text = self.column.if_("timed", f"{self.column.name(of)}/{unit}")
            show(key, text, size if at("timed").value else "", "thousandth")

    def _time(self, key: str, text: str, value: int) -> None:
        """Write a time in nanoseconds; text without ``=``."""
        label = ROW_LABELS[key]
        self.column.put_if("timed", key, f"{label}, ns ({key.partition('_')[0]})", text, value)

    def _machine(self, covers: str, *, linked: bool) -> Machine:
        at: Any = self.column.at
        return Machine(
            at("memory_rate"),
            at("peak"),
            at("link_rate") if linked else None,
            BANDWIDTH_PERCENT,
            FLOPS_PERCENT,
            HOP,
            None if covers == "all" else at("plain"),
        )

    def _run(self, which: str, fmt: Any, machine: Machine) -> Step:
        at: Any = self.column.at
        context, bits = at("at_context"), at("kv_bits")
        if which == "step":
            batch = at("batch_replica")
            return roofline.decode(self.ledger, self.layout, machine, fmt, bits, context, batch)
        return roofline.prefill(self.ledger, self.layout, machine, fmt, bits, context)

    def _pass(self, which: str) -> None:
        """Write the rows of a pass."""
        put, at, text = self.column.put, self.column.at, self.writer.text
        chosen = self._run(which, self.rows.chosen, self._machine("all", linked=True))
        for key, value in (("weights", chosen.weights), ("cache", chosen.cache)):
            put(f"{which}_{key}", self.writer.cell(value), lift(value).value)
        weights: Any = at(f"{which}_weights")
        cache: Any = at(f"{which}_cache")
        memory = lift(self._machine("all", linked=True).reading(weights + cache))
        self._time(f"{which}_memory", text(memory), memory.value)
        self._compute(which)
        unlinked = self._run(which, self.rows.chosen, self._machine("all", linked=False))
        alone = lift(unlinked.exchange)
        linked = lift(chosen.exchange)
        value = linked.value if at("link_known").value else alone.value
        known = self.column.name("link_known")
        part = self.writer.part
        exchange = f"IF({known}=1,{part(linked)},{part(alone)})"
        self._time(f"{which}_exchange", exchange, value)
        parts: Any = [at(f"{which}_{key}") for key in ("memory", "compute", "exchange")]
        time = lift(Step(weights, cache, 0, *parts).time)
        self._time(f"{which}_time", text(time), time.value)

    def _compute(self, which: str) -> None:
        """The arithmetic, for each of the ways in which formats cover tensors."""
        values = []
        for covers in self.covers:
            fmt = SCHEMES["bf16" if covers == "all" else "fp8"]._replace(covers=covers)  # type: ignore[arg-type]
            values.append(lift(self._run(which, fmt, self._machine(covers, linked=True)).compute))
        number = self.column.at("format_number").value
        kinds = ",".join(map(str, self.kinds))
        texts = ",".join(map(self.writer.part, values))
        at = self.column.name("format_number")
        text = f"CHOOSE(CHOOSE({at},{kinds}),{texts})"
        self._time(f"{which}_compute", text, values[self.kinds[number - 1] - 1].value)


def _cost(column: Column, writer: Writer) -> None:
    """Money, where there is a price and it fits; of tokens, where there are times."""
    name, at = column.name, column.at
    page, rows, place = column.sheet.page, column.sheet.rows, column.column
    typed = name("price")
    priced, micro = column.price is not None, column.price or 0
    number = f"IF(ISNUMBER({typed}),IF({typed}>0,ROUND({typed}*10^6,0),0),0)"
    counted = column.sheet.steps.put(column.placed.model.name, "price in use", number, micro)
    shown = f'IF({counted}>0,{counted},"")'
    column.put("price_micro", column.if_("valid", shown), micro if priced else "")
    price: Any = symbol(counted, micro)
    gpus: Any = at("gpus")
    million = per_million(price, gpus, at("step_time"), at("batch"))  # type: ignore[arg-type]
    prompts = per_million(price, at("tp"), at("first_time"), at("at_context"))  # type: ignore[arg-type]
    timed = priced and at("timed").value
    held = priced and at("holds").value
    for key, value, flag, is_shown in (
        ("cost_hour", price * gpus, "holds", held),
        ("cost_million", lift(million), "timed", timed),
        ("cost_prompt", lift(prompts), "timed", timed),
    ):
        whole = value.value if is_shown else ""
        text = f'IF({counted}>0,{writer.text(value)},"")'
        column.show(key, column.if_(flag, text), whole)
        ref = page.ref(rows[key], place)
        dollars = value.value / MICRO if is_shown else ""
        column.show(f"{key}_dollars", f'=IF({ref}="","",{ref}/10^6)', dollars, "dollars")
