"""The ledger as cells: one row a tensor, its bytes in every format, and its part of one GPU."""

from __future__ import annotations

from typing import Any, NamedTuple

from paramcalc import formats
from paramcalc.deploy.engine import padded_for_kernels
from paramcalc.deploy.parallel import Layout, shard
from paramcalc.formats.mixed import Mixed
from paramcalc.ledger import LayerRows, Ledger, Tensor
from paramcalc.numbers import Num
from paramcalc.quantities import params
from paramcalc.symbols import Formula, lift, symbol
from paramcalc.views.cells import Writer
from paramcalc.views.workbook.book import Book, Page, letters
from paramcalc.views.workbook.inputs import MOST_WIDTH, Placed
from paramcalc.views.workbook.lists import FormatList


class Block(NamedTuple):
    """The rows of one model on a sheet: the first and the last."""

    first: int
    last: int


class Chosen(Mixed):
    """The bytes of one copy of each tensor, by its name, in whatever format is chosen: symbols of
    the cells that look them up."""

    def of(self, tensor: Tensor) -> Num:
        """Bytes of all stored copies."""
        units: Any = self.rows
        bytes_: Num = tensor.copies * units[tensor.name]
        return bytes_


class Sizes:
    """Columns of a tensor's shape and copies, which two sheets have."""

    def __init__(self, page: Page, start: int, dims: int) -> None:
        self.page = page
        self.start = start
        self.dims = dims

    @property
    def heads(self) -> list[str]:
        """The headings: out and in for a matrix."""
        names = ["out", "in", "third", "fourth", "fifth", "sixth"]
        return [*names[: self.dims], "copies"]

    def write(self, row: int, tensor: Tensor, writer: Writer) -> Tensor:
        """Write a tensor's shape and copies; return it on the symbols of these cells."""
        shape = tuple(
            self._cell(row, self.start + place, size, writer, MOST_WIDTH)
            for place, size in enumerate(tensor.shape)
        )
        copies = self._cell(row, self.start + self.dims, tensor.copies, writer, None)
        return tensor._replace(shape=shape, copies=copies)

    def _cell(self, row: int, column: int, size: Any, writer: Writer, most: int | None) -> Any:
        if not isinstance(size, Formula):
            self.page.number(row, column, size)
            return size  # structure
        ref = self.page.formula(row, column, writer.cell(size), size.value)
        if most is not None:
            writer.limits[ref] = most
        return symbol(ref, size.value)


class TensorSheets:
    """Sheets Tensors, Weights and One_GPU. ``add`` writes a model's rows on all three."""

    first = 4

    def __init__(self, book: Book, formats_: FormatList, dims: int) -> None:
        self.formats = formats_
        names = [fmt.name for fmt in formats_.plain]
        sizes = (13,) * dims
        page = book.page("Tensors", 22, 46, 11, 9, *sizes, 11, 11, 20, 20, 21, 9)
        page.text(0, 0, "Tensors: the ledger, one row each", "title")
        page.text(
            1,
            0,
            "Shapes are formulas of the inputs. Parameters are copies x the product of the shape; a"
            " tied head has 0 copies. Bytes are in the format of sheet Deployment.",
            "note",
        )
        self.sizes = Sizes(page, 4, dims)
        heads = ["active", "parameters", "active parameters", "bytes", "share"]
        page.heads(3, ["model", "tensor", "role", "use"])
        page.heads(3, [*self.sizes.heads, *heads], 4, over="numbers")
        self.tensors, self.counts = page, 4 + dims + 1
        page.freeze(4, 2)
        page = book.page("Weights", 22, 46, *(20,) * len(names))
        page.text(0, 0, "Bytes of all copies of each tensor, in every format", "title")
        page.heads(3, ["model", "tensor"])
        page.heads(3, names, 2, over="numbers")
        page.freeze(4, 2)
        self.weights = page
        page = book.page("One_GPU", 22, 46, *sizes, 11, *(18,) * (len(names) + 5))
        page.text(0, 0, "What one GPU holds of each tensor, with tp of sheet Deployment", "title")
        page.text(
            1,
            0,
            "Bytes are those of one copy. MXFP4 kernels pad experts; held is with that.",
            "note",
        )
        self.parts = Sizes(page, 2, dims)
        own = ["mxfp4 padded", "mxfp4-all padded", "chosen", "held", "held, all copies"]
        page.heads(3, ["model", "tensor"])
        page.heads(3, [*self.parts.heads, *names, *own], 2, over="numbers")
        page.freeze(4, 2)
        self.one_gpu, self.units = page, 2 + dims + 1
        self.row = self.first

    def add(self, placed: Placed, layout: Layout, writer: Writer, number: Formula) -> ModelRows:
        """Write a model's rows; ``number`` is the place of the chosen format in the list."""
        ledger, first = placed.ledger, self.row
        settled = [formats.settled(fmt, ledger) for fmt in self.formats.formats]
        total = params.total(placed.model.ledger)
        last = first + len(ledger.tensors) - 1
        units: dict[str, Formula] = {}
        for tensor in ledger.tensors:
            row = self.row
            for page in (self.tensors, self.weights, self.one_gpu):
                page.text(row, 0, placed.model.name)
                page.text(row, 1, tensor.name)
            own = self.sizes.write(row, tensor, writer)
            self._counted(own, tensor, writer, total, number, (first, last), settled)
            units[tensor.name] = self._part(row, tensor, layout, writer, settled, number, placed)
            self.row += 1
        return ModelRows(self, Block(first, last), units)

    def _counted(
        self,
        own: Tensor,
        tensor: Tensor,
        writer: Writer,
        total: int,
        number: Formula,
        block: tuple[int, int],
        settled: list[Any],
    ) -> None:
        """The columns behind a tensor's shape, and its bytes in every format."""
        page, row, column = self.tensors, self.row, self.counts
        page.text(row, 2, tensor.role)
        page.text(row, 3, tensor.use)
        active = tensor.active
        if isinstance(active, Formula):
            ref = page.formula(row, column, writer.cell(active), active.value)
            own = own._replace(active=symbol(ref, active.value))
        else:
            page.number(row, column, active)
        for place, count in enumerate((own.params, own.active_params), start=column + 1):
            page.formula(row, place, writer.cell(count), lift(count).value)
        held = [lift(formats.tensor_bytes(own, fmt)) for fmt in settled]
        for place, value in enumerate(held, start=2):
            self.weights.formula(row, place, writer.cell(value), value.value)
        line = self.weights.span(row, 2, row, 1 + len(held))
        chosen = f"=INDEX({line},1,{writer.text(number)})"
        page.formula(row, column + 3, chosen, held[number.value - 1].value)
        name = letters(column + 1)
        sum_ = f"SUM(${name}${block[0] + 1}:${name}${block[1] + 1})"
        share = lift(own.params).value / total
        page.formula(row, column + 4, f"={name}{row + 1}/{sum_}", share, "share")

    def _part(
        self,
        row: int,
        tensor: Tensor,
        layout: Layout,
        writer: Writer,
        settled: list[Any],
        number: Formula,
        placed: Placed,
    ) -> Formula:
        """One GPU's part; returns the symbol of the bytes of one copy in the chosen format."""
        page = self.one_gpu
        part = shard(tensor, layout)
        assert isinstance(part, Tensor)
        own = self.parts.write(row, part, writer)
        one = own._replace(copies=1)
        column = self.units
        values = [lift(formats.tensor_bytes(one, fmt)) for fmt in settled]
        for place, value in enumerate(values, start=column):
            page.formula(row, place, writer.cell(value), value.value)
        line = page.span(row, column, row, column + len(values) - 1)
        column += len(values)
        unit = values[number.value - 1].value
        chosen = page.formula(
            row, column + 2, f"=INDEX({line},1,{writer.text(number)})", unit, "whole"
        )
        held, text = unit, chosen
        for place, name in enumerate(_PADDED, start=column):
            padded = _padded(one, name)
            if padded == one:
                continue
            at = self.formats.place(name)
            bytes_ = lift(formats.tensor_bytes(padded, settled[at - 1]))
            ref = page.formula(row, place, writer.cell(bytes_), bytes_.value)
            text = f"IF({placed.prefix}format_number={at},{ref},{text})"
            held = bytes_.value if number.value == at else held
        ref = page.formula(row, column + 3, f"={text}", held)
        all_: Formula = lift(own.copies) * symbol(ref, held)
        page.formula(row, column + 4, writer.cell(all_), all_.value)
        return symbol(chosen, unit)


_PADDED = ("mxfp4", "mxfp4-all")


def _padded(tensor: Tensor, name: str) -> Tensor:
    """A tensor of one layer as kernels store it."""
    layer = LayerRows("", "", 1, (), (tensor,))
    row = padded_for_kernels(Ledger.of((), [layer]), name).layers[0].rows[0]
    assert isinstance(row, Tensor)
    return row


class ModelRows(NamedTuple):
    """A model's rows on the three sheets, and the symbols of one copy's bytes on one GPU."""

    sheets: TensorSheets
    block: Block
    units: dict[str, Formula]

    @property
    def chosen(self) -> Chosen:
        """The format that looks bytes up: for counting code that asks for a format."""
        rows: Any = self.units
        return Chosen("chosen", 0, rows, 0, 1)

    def params(self, place: int = 0) -> str:
        """The parameters (0) or active parameters (1) of all rows."""
        return self._span(self.sheets.tensors, self.sheets.counts + 1 + place)

    def roles(self) -> str:
        """The roles of all rows."""
        return self._span(self.sheets.tensors, 2)

    def shapes(self) -> str:
        """The shapes of all rows."""
        start = self.sheets.sizes.start
        first, last = self.block
        return self.sheets.tensors.span(first, start, last, start + self.sheets.sizes.dims - 1)

    def weights(self, place: int) -> str:
        """The bytes of all rows in a format, by its place in the list from 0."""
        return self._span(self.sheets.weights, 2 + place)

    def held(self) -> str:
        """The bytes of all rows on one GPU, in the chosen format."""
        width = len(self.sheets.formats.plain)
        return self._span(self.sheets.one_gpu, self.sheets.units + width + 4)

    def _span(self, page: Page, column: int) -> str:
        return page.span(self.block.first, column, self.block.last)
