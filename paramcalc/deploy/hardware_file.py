"""Files of accelerators: YAML to ``Accelerator``, checked at the door.

A file holds one accelerator's fields, or a list of them under ``accelerators:``. ``sources:`` maps
keys to titles, addresses and dates; an entry's ``source`` is the key of all its figures, and
``cells`` names those that stand elsewhere (``peaks`` for every format, ``peaks.fp8`` for one).
``extends`` starts from another entry, earlier in the file or in the catalogue. Amounts are written
with their unit (80 GiB, 3.35 TB/s, 989.4T), money in dollars; no float is made of either.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from paramcalc.deploy.figures import MICRO
from paramcalc.deploy.hardware import FORMATS, Accelerator, Source, key, keys
from paramcalc.errors import FileError, InputError, did_you_mean
from paramcalc.sources import yaml_file
from paramcalc.spelling import explain, fail, shown

_AMOUNT = re.compile(
    r"((?:[0-9]{1,3}(?:,[0-9]{3}){1,8}|[0-9]{1,40})(?:\.[0-9]{1,40})?)"
    r" ?(?:([kKMGTP])(i?))?(?:B|B/s|FLOP/s|OP/s)?"
)
_DOLLARS = re.compile(r"\$?((?:[0-9]{1,3}(?:,[0-9]{3}){1,3}|[0-9]{1,12})(?:\.[0-9]{1,40})?)")
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_LEAST = 10**8
"""Of bytes, bytes a second and FLOP/s: less is a number whose unit was left out."""
_MOST = 10**20
_CELLS = ("memory", "visible", "bandwidth", "link", "watts", "price_per_hour")


def amount(field: str, value: object) -> int:
    """Return a number with a unit, such as 80 GiB or 3.35 TB/s, as an int; a fraction of one is
    rounded. Raises ``ValueError`` with one line."""
    found = None if isinstance(value, bool) else _AMOUNT.fullmatch(str(value).strip())
    if found is None:
        fail(field, shown(value), "is no amount", "write it as 80 GiB, 3.35 TB/s or 989.4T")
    number, power, binary = found.groups(default="")
    scaled = Fraction(number.replace(",", ""))
    result: int = round(scaled * (1024 if binary else 1000) ** _POWERS[power.lower()])
    if not _LEAST <= result <= _MOST:
        rule = f"must be from {_LEAST:,} to 10^20"
        fail(field, shown(value), rule, "write the unit: 80 GiB, 3.35 TB/s, 989.4T")
    return result


def micro_dollars(value: object) -> int:
    """Return dollars, typed as a decimal, as micro-dollars. Raises ``ValueError`` with one line."""
    found = None if isinstance(value, bool) else _DOLLARS.fullmatch(str(value).strip())
    exact = Fraction(found[1].replace(",", "")) * MICRO if found else None
    if exact is None or exact.denominator != 1 or not 0 < exact <= 10**6 * MICRO:
        rule = "must be dollars above 0, to the millionth"
        fail("price_per_hour", shown(value), rule, "write it as 2.49")
    return int(exact)


def priced(unit: Accelerator, dollars: str) -> Accelerator:
    """Return an accelerator at so many dollars an hour. Raises ``InputError``."""
    try:
        return unit._replace(price_per_hour_micro=micro_dollars(dollars))
    except ValueError as error:
        raise InputError(str(error)) from None


def _peaks(value: object) -> dict[str, int]:
    if not isinstance(value, dict):
        fail("peaks", shown(value), "must be a section of formats", "write peaks: {bf16: 989.4T}")
    for name in value:
        if name not in FORMATS:
            near = did_you_mean(str(name), FORMATS)
            fail(f"peaks.{name}", shown(value[name]), f"unknown format{near}", "use a known one")
    given = {name: amount(f"peaks.{name}", text) for name, text in value.items()}
    return {name: given[name] for name in FORMATS if name in given}


Amount = Annotated[int, BeforeValidator(lambda value, info: amount(info.field_name, value))]
Text = Annotated[str, Field(min_length=1, max_length=200)]


class Entry(BaseModel):
    """One accelerator as a file states it; what is left out comes from what it extends."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,59}$")] | None = None
    label: Text | None = None
    aliases: tuple[Text, ...] = ()
    extends: Text | None = None
    vendor: Text | None = None
    unit: Literal["card", "die", "chip"] | None = None
    memory: Amount | None = None
    visible: Amount | None = None
    bandwidth: Amount | None = None
    link: Amount | None = None
    link_kind: Text | None = None
    peaks: Annotated[dict[str, int], BeforeValidator(_peaks)] = Field(default_factory=dict)
    watts: Annotated[int, Field(strict=True, ge=1, le=100_000)] | None = None
    price_per_hour: Annotated[int, BeforeValidator(micro_dollars)] | None = None
    note: Text | None = None
    source: Text | None = None
    cells: dict[str, str] = Field(default_factory=dict)


class _Sources(BaseModel):
    """A file's sources, by key."""

    sources: dict[str, Source] = Field(default_factory=dict)


_Model = TypeVar("_Model", bound=BaseModel)
_REQUIRED = ("name", "vendor", "unit", "memory", "bandwidth")
Find = Callable[[str], Accelerator]


def read(path: Path, find: Find | None = None) -> list[Accelerator]:
    """Return the accelerators of a file; ``find`` looks up what is extended and not in it.

    Raises ``FileError`` with one line.
    """
    data = yaml_file.read(path, as_written=True, example="extends: h100")
    where = f"{path}: "
    sources = _checked(_Sources, {"sources": data.pop("sources", {})}, where).sources
    entries = data.pop("accelerators", None)
    if entries is None:
        entries, data = [data], {}
    if data:
        raise FileError(f"{where}{next(iter(data))}: stands beside accelerators; move it in")
    if not isinstance(entries, list) or not entries:
        raise FileError(f"{where}accelerators = {shown(entries)}: must be a list; write - name: x")
    found: list[Accelerator] = []
    for number, fields in enumerate(entries):
        place = where if len(entries) == 1 else f"{where}accelerators.{number}."
        entry = _checked(Entry, fields, place)
        try:
            unit = _built(entry, sources, _base(entry, found, find), str(path))
        except InputError as error:
            raise FileError(f"{place}{error}") from None
        if any(key(unit.name) == key(other.name) for other in found):
            raise FileError(f"{place}name = {unit.name}: stands twice; rename one")
        found.append(unit)
    return found


def _checked(model: type[_Model], fields: Any, where: str) -> _Model:
    """Return the fields as a model. Raises ``FileError`` with the first fault as one line."""
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        extra = [e for e in error.errors() if e["type"] == "extra_forbidden"]
        if not extra:
            raise FileError(explain(error, where)) from None
        name = ".".join(map(str, extra[0]["loc"]))
        near = did_you_mean(name, model.model_fields) or "; remove it"
        raise FileError(f"{where}{shown(name)}: unknown field{near}") from None


def _base(entry: Entry, earlier: list[Accelerator], find: Find | None) -> Accelerator | None:
    """Return what an entry extends: one earlier in the file, else the catalogue's."""
    if entry.extends is None:
        return None
    wanted = key(entry.extends)
    for unit in earlier:
        if wanted in keys(unit):
            return unit
    if find is None:
        raise InputError(f"extends = {entry.extends}: no entry above has that name; check it")
    try:
        return find(entry.extends)
    except InputError as error:
        raise InputError(str(error).replace("gpu = ", "extends = ", 1)) from None


def _built(
    entry: Entry, sources: dict[str, Source], base: Accelerator | None, file: str
) -> Accelerator:
    """Return an entry, completed by what it extends, each figure with its source."""
    if base is None and (missing := [n for n in _REQUIRED if getattr(entry, n) is None]):
        verb = "is" if len(missing) == 1 else "are"
        raise InputError(f"{', '.join(missing)}: {verb} required; add {missing[0]}: ...")
    stated = [name for name in _CELLS if getattr(entry, name) is not None]
    stated += [f"peaks.{name}" for name in entry.peaks]
    cited = _cited(entry, stated, sources, file)
    old: dict[str, Any] = base._asdict() if base else {"peaks": {}, "sources": {}, "aliases": ()}
    kept = dict(old["sources"])
    if entry.memory is not None:  # what was measured belongs to the memory it was measured on
        kept.pop("visible", None)
    memory = entry.memory or old["memory_bytes"]
    seen = entry.visible or (old["visible_bytes"] if "visible" in kept else memory)
    if seen > memory:
        raise InputError(f"visible = {seen:,}: must be at most memory ({memory:,}); lower it")
    # a name that the base answers to is no other accelerator: it keeps what that one is called
    same = base is not None and (entry.name is None or key(entry.name) in keys(base))
    called = (base.name, *base.aliases) if base is not None and same else ()
    new = {
        "name": entry.name,
        "label": entry.label or (None if same else entry.name),
        "vendor": entry.vendor,
        "unit": entry.unit,
        "bandwidth": entry.bandwidth,
        "link_bandwidth": entry.link,
        "link_kind": entry.link_kind,
        "watts": entry.watts,
        "price_per_hour_micro": entry.price_per_hour,
        "note": entry.note,
    }
    return Accelerator(
        **old
        | {name: value for name, value in new.items() if value is not None}
        | {
            "memory_bytes": memory,
            "visible_bytes": seen,
            "peaks": _peaks(old["peaks"] | entry.peaks),
            "aliases": (*entry.aliases, *called),
            "sources": kept | cited,
        }
    )


def _cited(
    entry: Entry, stated: list[str], sources: dict[str, Source], file: str
) -> dict[str, Source]:
    """Return the source of each stated figure: the file itself where it names none."""
    for cell, named in [("source", entry.source), *entry.cells.items()]:
        if named is not None and named not in sources:
            place = cell if cell == "source" else f"cells.{cell}"
            near = did_you_mean(named, sources)
            raise InputError(f"{place} = {shown(named)}: is not among sources{near}; add it there")
    for cell in entry.cells:
        if cell not in stated and not (cell == "peaks" and entry.peaks):
            raise InputError(f"cells.{shown(cell)}: no such figure in this entry; remove it")
    found = {}
    for name in stated:
        group = name.partition(".")[0]
        named = entry.cells.get(name) or entry.cells.get(group) or entry.source
        found[name] = sources[named] if named else Source(file)
    return found
