"""What a deployment looks up in the lists of formats and accelerators, and the sheet of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paramcalc.deploy.engine import for_gpu
from paramcalc.formats import KV_FORMATS
from paramcalc.numbers import ceil_div, maximum
from paramcalc.symbols import lift
from paramcalc.views.cells import Writer
from paramcalc.views.workbook import checks
from paramcalc.views.workbook.book import Book, Page
from paramcalc.views.workbook.inputs import MOST_BATCH, MOST_GPUS
from paramcalc.views.workbook.lists import budget, machine_of
from paramcalc.views.workbook.rows import LOOKUPS, integers

if TYPE_CHECKING:
    from paramcalc.views.workbook.column import Column

MOST_RATE = 10**9
MOST_STEP = 2**20
LEAST = 100
"""FLOPs a nanosecond: no accelerator is slower, and a percent of it is not 0."""


class LookupSheet:
    """The sheet Lookups, one column a model: what formulas use, and nobody types or plans by."""

    first, start = 4, 2

    def __init__(self, book: Book, names: list[str]) -> None:
        page = book.page("Lookups", 46, 13, *(22,) * len(names), 24, 70)
        self.page, self.end = page, self.start + len(names)
        page.text(0, 0, "Lookups", "title")
        page.text(
            1,
            0,
            "What formulas use of sheets Deployment, Formats and Hardware; no results.",
            "note",
        )
        page.heads(3, ["", "unit"])
        page.heads(3, names, self.start, over="numbers")
        page.heads(3, ["exactness", ""], self.end)
        page.freeze(4, 2)
        self.rows: dict[str, int] = {}
        for row, (key, label, unit) in enumerate(LOOKUPS, start=self.first):
            if key:
                self.rows[key] = row
            page.text(row, 0, label, "text" if key else "group")
            page.text(row, 1, unit, "note")
        note = "as typed; as written while a check on sheet Deployment is not ok"
        page.text(self.rows["used at_context"], self.end + 1, note, "note")

    def place(self, key: str, number: int) -> tuple[Page, int, int]:
        """Where a model's figure stands: sheet, row, column."""
        return self.page, self.rows[key], self.start + number

    def finish(self) -> None:
        """Colour what keeps times away, and a word beside each row whose values pass 2^53."""
        page, known = self.page, self.rows["known"]
        page.colour(known, self.start, known, self.end - 1, ("=", 0, False))
        page.exactness([self.rows[key] for key in integers(LOOKUPS)], self.start, self.end)


def write(column: Column) -> None:
    """Write what is in use: places in the lists, the rates that stand there, and how GPUs share
    the sequences.

    A text counts as 0, as ``MAX`` takes it. A rate that is not there is shown as the least, and
    ``known`` or ``link_known`` as 0: what divides by it stands, and is not used.
    """
    sheet = column.sheet
    put, name, words, check = column.put, column.name, column.words, column.check
    hardware, listed, unit = sheet.hardware, sheet.formats, sheet.wish.gpu
    kinds = [fmt.name for fmt in listed.plain]
    number = listed.place(words["format"])
    found = f"MATCH({name('format')},{listed.names},0)"
    text = checks.in_use(check("format"), found, number)
    put("format_number", text, number, most=len(kinds))
    kv = f"INDEX({listed.kv_bits},MATCH({name('kv_format')},{listed.kv_names},0))"
    bits = KV_FORMATS[words["kv_format"]].bits
    put("kv_bits", checks.in_use(check("kv_format"), kv, bits), bits, most=64)
    place = [own.name for own in hardware.units].index(unit.name) + 1
    found = f"MATCH({name('gpu')},{hardware.names},0)"
    put("gpu_number", checks.in_use(check("gpu"), found, place), place)
    row = name("gpu_number")
    visible = put("visible", f"=MAX(0,INDEX({hardware.column(3)},{row}))", unit.visible_bytes)
    share = budget(visible, column.at("permille"))
    put("budget", Writer(sheet.limits).cell(share), share.value)
    engine = for_gpu(unit)
    for key, place_, size in (
        ("step_tokens", 10, engine.max_batched_tokens),
        ("step_requests", 11, engine.max_seqs),
    ):
        put(key, f"=MAX(0,INDEX({hardware.column(place_)},{row}))", size, most=MOST_STEP)
    rate, bandwidth = f"INDEX({hardware.column(8)},{row})", unit.bandwidth // 10**6
    put("memory_rate", f"=MAX({LEAST},{rate})", max(LEAST, bandwidth), most=MOST_RATE)
    speed = machine_of(unit, listed.plain[number - 1])
    own = speed.peak if speed else 0
    peak = f"INDEX({hardware.by_format},{row},{name('format_number')})"
    put("peak", f"=MAX({LEAST},{peak})", max(LEAST, own), most=MOST_RATE)
    sixteen = hardware.sixteen_of(unit)
    plain = f"INDEX({hardware.sixteen},{row})"
    put("plain", f"=MAX({LEAST},{plain})", max(LEAST, sixteen), most=MOST_RATE)
    link = f"INDEX({hardware.column(9)},{row})"
    linked = (unit.link_one_way or 0) // 10**6
    put("link_rate", f"=MAX(1,{link})", max(1, linked), most=MOST_RATE)
    put("known", f"=IF(AND({peak}>={LEAST},{rate}>={LEAST}),1,0)", int(own > 0))
    runs = int(hardware.runs_now(unit, number))
    put("runs", f"=IF(ISNUMBER({peak}),1,0)", runs)
    put("link_known", f"=IF({link}>0,1,0)", int(linked > 0))
    _shared(column)


def _shared(column: Column) -> None:
    text = Writer(column.sheet.limits)
    whole: Any = column.at("gpus") // column.at("tp")
    replicas = lift(maximum(1, whole))
    column.put("replicas", text.cell(replicas), replicas.value, most=MOST_GPUS)
    batch: Any = column.at("batch")
    among: Any = column.at("replicas")
    each = lift(ceil_div(batch, among))
    column.put("batch_replica", text.cell(each), each.value, most=MOST_BATCH)
