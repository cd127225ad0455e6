"""The two lists that a deployment is chosen from: formats with their scale rules, accelerators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from paramcalc.deploy import serving
from paramcalc.deploy.arithmetic import lack
from paramcalc.deploy.columns import BANDWIDTH_PERCENT, FLOPS_PERCENT, HOP
from paramcalc.deploy.engine import for_gpu
from paramcalc.deploy.figures import MICRO
from paramcalc.deploy.hardware import FORMATS, Accelerator
from paramcalc.deploy.roofline import Machine
from paramcalc.errors import InputError
from paramcalc.formats import KV_FORMATS, compute_format
from paramcalc.formats.schemes import SCHEMES, Format
from paramcalc.symbols import Formula, lift, symbol
from paramcalc.views.workbook import checks
from paramcalc.views.workbook.book import Book, letters

MOST_BITS = 8
"""Bits of an element of a quantized format, and of a zero point."""
MOST_BLOCK = 65_536


class FormatList:
    """The sheet of formats. ``formats`` are the library's own, with the cells of this sheet in
    place of their numbers, so that a formula of bytes follows what is typed here."""

    def __init__(self, book: Book, names: Iterable[Format], limits: dict[str, int]) -> None:
        self.plain = [*SCHEMES.values()]
        self.plain += [f for f in names if f.name not in SCHEMES]
        page = book.page("Formats", 14, 20, *(14,) * 9, 20, 76, 4, 12, 9, 9)
        self.page = page
        page.text(0, 0, "Formats of weights and of the cache", "title")
        page.text(1, 0, "Blue cells are used by every formula of bytes and may be changed.", "note")
        heads = ["bits", "block rows", "block columns", "scale bits", "zero bits", "runs on"]
        heads += ["outer block", "input bits", "matrix bytes"]
        page.heads(3, ["format", "in the format"])
        page.heads(3, heads, 2, over="numbers")
        page.heads(3, ["kernels", ""], 11)
        last = self.first + len(self.plain) - 1
        self.names = page.span(self.first, 0, last)
        for row, note in enumerate(_NOTES, start=last + 2):
            page.text(row, 0, note, "note")
        row = last + len(_NOTES) + 3
        page.text(row, 0, "In use; the number as written while what is typed cannot be", "group")
        self.shift = row + 1 - self.first
        self.formats = [
            self._row(row, fmt, limits) for row, fmt in enumerate(self.plain, start=self.first)
        ]
        page.heads(3, ["cache"], 14)
        page.heads(3, ["bits"], 15, over="numbers")
        for row, (name, fmt) in enumerate(KV_FORMATS.items(), start=self.first):
            for place in (row, row + self.shift):
                page.text(place, 14, name)
            self._used(row, 15, fmt.bits, 64, name)
            self._check(row, 16, [15])
        below = last + self.shift
        spans = [page.span(self.first + self.shift, column, below) for column in (11, 16)]
        self.wrong = "+".join(map(checks.broken, spans))
        """How many formats cannot be used, as text of a cell."""
        for column, end in ((2, 10), (15, 15)):
            own, used = (page.local(row, column) for row in (self.first, self.first + self.shift))
            text = f'AND({used}<>"",{own}<>{used})'
            page.colour_where(self.first, column, last, end, text, good=False)
        for column in (11, 16):
            page.checks(self.first + self.shift, column, below, column)
        last = self.first + len(KV_FORMATS) - 1
        self.kv_names = page.span(self.first, 14, last)
        self.kv_bits = page.span(self.first + self.shift, 15, last + self.shift)
        page.freeze(4, 1)

    first = 4

    def _used(self, row: int, column: int, value: int, most: int, what: str) -> str:
        """Write a number that may be changed, and below what is in use; return the latter."""
        page = self.page
        page.number(row, column, value, "input")
        page.whole_from(row, column, 1, most, what)
        own = page.cell(row, column)
        inside = f"IF(AND({own}>=1,{own}<={most},INT({own})={own}),{own},{value})"
        text = f"=IF(ISNUMBER({own}),{inside},{value})"
        return page.formula(row + self.shift, column, text, value)

    def _row(self, row: int, fmt: Format, limits: dict[str, int]) -> Format:
        page = self.page
        whole = fmt.covers == "all"
        columns = []

        def used(column: int, value: int, most: int) -> Any:
            """The symbol of a cell that formulas use; 0 and 1 are structure, and stay numbers."""
            if value <= 1:
                page.number(row, column, value)
                return value
            columns.append(column)
            ref = self._used(row, column, value, most, fmt.name)
            limits[ref] = most
            return symbol(ref, value)

        for place in (row, row + self.shift):
            page.text(place, 0, fmt.name)
        page.text(row, 1, fmt.covers)
        page.text(row, 7, "storage order" if fmt.flat else "rows" if fmt.block[1] else "", "right")
        page.text(row, 11, ", ".join(fmt.compute), "note")
        page.text(row, 12, fmt.note, "note")
        placed = fmt._replace(
            bits=used(2, fmt.bits, 64 if whole else MOST_BITS),
            block=(used(3, fmt.block[0], MOST_BLOCK), used(4, fmt.block[1], MOST_BLOCK)),
            scale_bits=used(5, fmt.scale_bits, 64),
            zero_bits=used(6, fmt.zero_bits, MOST_BITS),
            outer_block=used(8, fmt.outer_block, MOST_BLOCK),
            input_bits=used(9, fmt.input_bits, 64),
            matrix_bytes=used(10, fmt.matrix_bytes, 10**6),
        )
        self._check(row, 11, columns)
        return placed

    def _check(self, row: int, place: int, columns: list[int]) -> None:
        """Say whether what is typed into a row is what is in use of it."""
        page, below = self.page, row + self.shift
        same = ",".join(f"{page.cell(row, at)}={page.cell(below, at)}" for at in columns)
        wrong = checks.words("must be whole numbers within their limits")
        page.formula(below, place, f'=IF(AND({same}),"{checks.OK}",{wrong})', checks.OK)

    def place(self, name: str) -> int:
        """A format's place in the list, from 1."""
        return [fmt.name for fmt in self.plain].index(name) + 1


_NOTES = (
    "all: every tensor. layers: matrices of attention, mixers and feed-forward parts; the others"
    " stay in 16 bits. experts or layers: the experts where there are any.",
    "A block shares one scale (and zero point); 0 rows or columns stand for all of them. Each"
    " outer block of scales shares an FP32 scale. Input bits are kept for each input channel.",
)


_PLACES = {"visible": 3, "tokens": 10, "requests": 11}


class HardwareList:
    """The sheet of accelerators: memory, rates, and the arithmetic that each format gets."""

    first = 4

    def __init__(self, book: Book, units: list[Accelerator], formats: FormatList) -> None:
        self.units = units
        self.formats = formats
        kinds = [kind for kind in FORMATS if any(unit.has(kind) for unit in units)]
        own = (24, 36, 19, 19, 22, 21, 8, 11, 11, 11, 11, 11)
        rates = (11,) * (len(formats.plain) + 1)
        page = book.page("Hardware", *own, *(26,) * len(kinds), *rates)
        self.page = page
        page.text(0, 0, "Accelerators", "title")
        page.text(
            1,
            0,
            "Bytes, bytes a second, dense FLOP/s; sources: paramcalc hardware NAME. Rates from"
            " column I on are what formulas use: bytes a microsecond, FLOPs a nanosecond.",
            "note",
        )
        heads = ["accelerator", "", "memory", "visible", "bytes a second", "link, one way"]
        heads += ["watts", "$ an hour", "memory rate", "link rate"]
        heads += ["tokens a step", "requests a step"]
        self.peaks = len(heads)
        heads += [f"peak {kind}" for kind in kinds]
        self.rates = len(heads)
        names = [fmt.name for fmt in formats.plain]
        heads += [*names, "16 bits"]
        page.heads(3, heads[:2])
        page.heads(3, heads[2:], 2, over="numbers")
        for row, unit in enumerate(units, start=self.first):
            self._row(row, unit, kinds)
        self.last = self.first + len(units) - 1
        self.names = page.span(self.first, 0, self.last)
        page.freeze(4, 1)

    def column(self, column: int) -> str:
        """A reference to one column of the list."""
        return self.page.span(self.first, column, self.last)

    def of(self, row: int, *what: str) -> list[Formula]:
        """Cells of an accelerator's row as numbers of formulas."""
        places = [_PLACES[name] for name in what]
        return [symbol(self.page.ref(row, at), int(self.page.values[row, at])) for at in places]

    @property
    def by_format(self) -> str:
        """A reference to the rates by format."""
        last = self.rates + len(self.formats.plain) - 1
        return self.page.span(self.first, self.rates, self.last, last)

    @property
    def sixteen(self) -> str:
        """A reference to the rates of what a format leaves in 16 bits."""
        return self.column(self.rates + len(self.formats.plain))

    def sixteen_of(self, unit: Accelerator) -> int:
        """The same rate of one accelerator; 0 where it has none."""
        row = self.first + [own.name for own in self.units].index(unit.name)
        return int(self.page.values.get((row, self.rates + len(self.formats.plain)), 0))

    def _row(self, row: int, unit: Accelerator, kinds: list[str]) -> None:
        page = self.page
        page.text(row, 0, unit.name)
        page.text(row, 1, unit.label)
        link = unit.link_one_way
        for column, value in enumerate(
            (unit.memory_bytes, unit.visible_bytes, unit.bandwidth, link, unit.watts), start=2
        ):
            if value is not None:
                page.number(row, column, value)
        if unit.price_per_hour_micro is not None:
            page.sheet.write_number(
                row, 7, unit.price_per_hour_micro / MICRO, page.book.style("dollars")
            )
        for column, own, size in ((8, "E", unit.bandwidth), (9, "F", link or 0)):
            page.formula(row, column, _rate(f"{own}{row + 1}", 6), size // 10**6)
        engine = for_gpu(unit)
        page.number(row, 10, engine.max_batched_tokens)
        page.number(row, 11, engine.max_seqs)
        peak = {}
        for column, kind in enumerate(kinds, start=self.peaks):
            if unit.has(kind):
                page.number(row, column, unit.peak(kind))
                peak[kind] = f"{letters(column)}{row + 1}"
        plain: int | None = None
        for column, fmt in enumerate(self.formats.plain, start=self.rates):
            speed = machine_of(unit, fmt)
            if speed is None:
                if lack(unit, fmt, timed=False) is None:
                    page.number(row, column, 0, "rate")
                continue
            cell = peak[compute_format(fmt, unit.peaks)]
            page.formula(row, column, _rate(cell, 9), speed.peak)
            plain = plain or speed.plain
        if plain is not None:
            cell = peak["bf16" if unit.has("bf16") else "fp16"]
            page.formula(row, self.rates + len(self.formats.plain), _rate(cell, 9), plain)

    def wrong(self, number: str) -> str:
        """Whether an accelerator's memory or engine is no number, as 1 or 0 of a cell; its place in
        the list is the text of a cell."""
        places = (f"INDEX({self.column(at)},{number})" for at in _PLACES.values())
        return f"IF(AND({','.join(f'ISNUMBER({place})' for place in places)}),0,1)"

    def usable(self, row: int) -> str:
        """The condition that they are numbers, for an accelerator's row."""
        cells = (self.page.ref(row, at) for at in _PLACES.values())
        return f"AND({','.join(f'ISNUMBER({cell})' for cell in cells)})"

    def runs(self, row: int, place: str) -> str:
        """The condition that an accelerator's arithmetic is not known to lack a format, whose place
        in the list is the text of a cell."""
        last = self.rates + len(self.formats.plain) - 1
        span = self.page.span(row, self.rates, row, last)
        return f"ISNUMBER(INDEX({span},1,{place}))"

    def runs_now(self, unit: Accelerator, place: int) -> bool:
        """Whether it does as written."""
        return lack(unit, self.formats.plain[place - 1], timed=False) is None


def _rate(cell: str, digits: int) -> str:
    return f"=IF(ISNUMBER({cell}),INT({cell}/10^{digits}),0)"


def machine_of(unit: Accelerator, fmt: Format) -> Machine | None:
    """Return an accelerator's rates for a format, or None where it has no such arithmetic."""
    try:
        return serving.machine(unit, fmt, FLOPS_PERCENT, BANDWIDTH_PERCENT, HOP)
    except InputError:
        return None


def budget(visible: Any, permille: Any) -> Formula:
    """Bytes of a GPU's memory that an engine takes, of symbols: ``Engine.budget`` in thousandths,
    so that a percent may have a decimal."""
    share: Formula = lift(visible) * permille // 1000
    return share
