"""Accelerators: what a card, a die or a chip holds and how fast it is, each figure with its source.

The catalogue is ``presets/hardware/*.yaml``; a person's own file has the same form
(``docs/hardware.md``). Conventions, the same for every entry:

* ``memory_bytes`` is what is installed. Makers print "80 GB" and install 80 x 2^30 bytes, so the
  files say ``80 GiB``. ``visible_bytes`` is what a driver or framework shows as total, measured,
  and falls back to what is installed.
* ``bandwidth`` and links are decimal bytes a second. ``link_bandwidth`` is both ways together, as
  datasheets print it; ``link_one_way`` is half of it.
* ``peaks`` are dense FLOP/s (OP/s for integers). A 2:4 sparse figure is never stored. ``fp64`` and
  ``fp32`` are those outside the tensor cores; tensor rates accumulate in FP32. A format that is
  absent is not in the hardware, or has no published rate.
* Prices are integer micro-dollars for an hour of one unit, and None where nobody gave one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from paramcalc.errors import InputError, did_you_mean
from paramcalc.quantities.catalogue import Known
from paramcalc.sources import presets

FORMATS = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp6", "fp4", "int4")
"""Formats that a peak may be stated for, widest first."""

_SAME = {
    "float64": "fp64",
    "float32": "fp32",
    "bfloat16": "bf16",
    "float16": "fp16",
    "mxfp8": "fp8",
    "mxfp6": "fp6",
    "mxfp4": "fp4",
    "nvfp4": "fp4",
}
_MAKERS = {"nvfp4": "NVIDIA"}
"""Formats of one maker's hardware only."""


class Source(NamedTuple):
    """Where a figure stands: its title, address (None for what has none) and date."""

    title: str
    url: str | None = None
    date: str = ""

    @property
    def known(self) -> Known:
        """A published figure is a measured one; what a person's own file states is assumed."""
        return "measured" if self.date else "assumed"


class Accelerator(NamedTuple):
    """One unit (``card``, ``die`` or ``chip``): the module's docstring says what each field means.

    ``sources`` has one entry a stated figure: ``memory``, ``visible``, ``bandwidth``, ``link``,
    ``watts``, ``price_per_hour`` and ``peaks.bf16`` and so on.
    """

    name: str
    label: str
    vendor: str
    unit: str
    memory_bytes: int
    visible_bytes: int
    bandwidth: int
    peaks: Mapping[str, int]
    sources: Mapping[str, Source]
    link_bandwidth: int | None = None
    link_kind: str | None = None
    watts: int | None = None
    price_per_hour_micro: int | None = None
    aliases: tuple[str, ...] = ()
    note: str | None = None

    @property
    def link_one_way(self) -> int | None:
        """Bytes a second that the links carry in one direction."""
        return None if self.link_bandwidth is None else self.link_bandwidth // 2

    def known(self, cell: str) -> Known:
        """How a figure of ``sources`` is known; ``visible`` falls back to ``memory``."""
        source = self.sources.get(cell)
        if source is None and cell == "visible":
            source = self.sources.get("memory")
        return "derived" if source is None else source.known

    def known_peak(self, dtype: str) -> Known:
        """How a format's peak is known."""
        return self.known(self.peak_cell(dtype))

    @staticmethod
    def peak_cell(dtype: str) -> str:
        """Return the name that a format's peak has in ``sources``."""
        plain = str(dtype).lower()
        return f"peaks.{_SAME.get(plain, plain)}"

    def has(self, dtype: str) -> bool:
        """Whether a peak is known for a format."""
        plain = str(dtype).lower()
        maker = _MAKERS.get(plain, self.vendor)
        return maker == self.vendor and _SAME.get(plain, plain) in self.peaks

    def peak(self, dtype: str) -> int:
        """Return the dense FLOP/s in a format. Raises ``InputError`` where none is known."""
        plain = str(dtype).lower()
        if self.has(plain):
            return self.peaks[_SAME.get(plain, plain)]
        if not self.peaks:
            raise InputError(
                f"dtype = {dtype}: no peak is published for {self.name}; "
                "state peaks in a file of your own (--hardware)"
            )
        raise InputError(
            f"dtype = {dtype}: {self.name} has no such peak; take one of {', '.join(self.peaks)}"
        )


def key(name: str) -> str:
    """Return a spelling without case, punctuation and the makers' names."""
    plain = re.sub(r"[^a-z0-9]", "", name[-presets.MOST_LETTERS :].lower())
    return re.sub(r"^(?:nvidia|amd|intel|google|apple|cloud|tesla|geforce|instinct)+", "", plain)


def find(name: str, files: Iterable[str | Path] = ()) -> Accelerator:
    """Return the accelerator that a name or alias means, those in ``files`` first.

    Raises ``InputError`` for an unknown name (with the nearest) or a broken file.
    """
    if not isinstance(name, str):
        raise InputError(f"gpu = {name}: must be a name; paramcalc hardware lists them")
    wanted = key(name)
    spelled = name.strip()[:1].isalnum()  # =h100 is a formula, -h100 an option
    for unit in given(files):
        if spelled and wanted in keys(unit):
            return unit
    path = _index().get(wanted) if spelled else None
    if path is not None:
        return next(unit for unit in _shipped(path) if wanted in keys(unit))
    raise InputError(
        f"gpu = {presets.shown(name)}: unknown accelerator{_near(wanted, files)}; "
        "paramcalc hardware lists them"
    )


def all(files: Iterable[str | Path] = ()) -> list[Accelerator]:
    """Return every accelerator: those of ``files``, then the catalogue's that they do not replace.

    Raises ``InputError`` for a broken file.
    """
    own = given(files)
    taken = {spelling for unit in own for spelling in keys(unit)}
    shipped = [unit for path in _paths() for unit in _shipped(path)]
    return own + [unit for unit in shipped if key(unit.name) not in taken]


def _paths() -> list[Path]:
    return sorted((presets.folder().parent / "hardware").glob("*.yaml"))


_NAMED = re.compile(r"^ +- \{?name: ([^\s,]+)|^ +aliases:\s+\[([^\]]*)\]", re.MULTILINE)


@cache
def _index() -> dict[str, Path]:
    """Map each shipped name and alias to its file: a scan of the text, which spares reading all."""
    found: dict[str, Path] = {}
    for path in _paths():
        for name, aliases in _NAMED.findall(path.read_text(encoding="utf-8")):
            for spelling in [name, *aliases.split(",")]:
                if plain := key(spelling):
                    found[plain] = path
    return found


@cache
def _shipped(path: Path) -> tuple[Accelerator, ...]:
    from paramcalc.deploy.hardware_file import read

    return tuple(read(path))


def given(files: Iterable[str | Path]) -> list[Accelerator]:
    """Return what a person's files state; what they extend comes from the catalogue.

    One that replaces an entry of the catalogue answers to all names of that entry. Of two with one
    name the first counts; a name goes before an alias. Raises ``InputError`` for a broken file.
    """
    found: dict[str, Accelerator] = {}
    for file in files:
        from paramcalc.deploy.hardware_file import read

        for unit in read(Path(file), find):
            found.setdefault(key(unit.name), unit)
    return _settled(list(found.values()))


def _settled(units: list[Accelerator]) -> list[Accelerator]:
    """Accelerators with the aliases of what they replace; each spelling means one of them."""
    taken = {"", *(key(unit.name) for unit in units)}
    settled = []
    for unit in units:
        old = [known.aliases for known in map(_replaced, keys(unit)) if known is not None]
        aliases = []
        for alias in (*unit.aliases, *(alias for names in old for alias in names)):
            if key(alias) not in taken:
                taken.add(key(alias))
                aliases.append(alias)
        settled.append(unit._replace(aliases=tuple(aliases)))
    return settled


def _replaced(spelling: str) -> Accelerator | None:
    """The catalogue's entry that has this name, if one has."""
    path = _index().get(spelling)
    units = () if path is None else _shipped(path)
    return next((unit for unit in units if key(unit.name) == spelling), None)


def keys(unit: Accelerator) -> set[str]:
    """Return the spellings of an accelerator's name and aliases."""
    return {key(spelling) for spelling in (unit.name, *unit.aliases)}


def _near(wanted: str, files: Iterable[str | Path]) -> str:
    """Suggest the names that start so, else the names and aliases that look like it."""
    units = all(files)
    same = [unit.name for unit in units if wanted and key(unit.name).startswith(wanted)]
    if same:
        return f" (did you mean {', '.join(same[:6])}?)"
    return did_you_mean(wanted, [known for unit in units for known in (unit.name, *unit.aliases)])
