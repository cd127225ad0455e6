"""Audits and the contents of files, for a person and for a machine."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

from paramcalc.audit.compare import Audit, Item, pattern
from paramcalc.audit.packed import Held, unpacked
from paramcalc.errors import printable
from paramcalc.sources.contents import Contents
from paramcalc.views.tables import Section, Share, Size

MOST_TENSORS = 2_000
MOST_ROWS = 40
"""Of one kind of finding on a screen; JSON has all."""


def contents_headline(name: str, contents: Contents, held: list[Held]) -> str:
    """Return the name of a file with its elements, tensors and files."""
    files = f" in {len(contents.files):,} files" if len(contents.files) > 1 else ""
    elements = sum(t.elements for t in held)
    return f"{name}  {elements:,} elements in {len(held):,} tensors{files}"


def contents_sections(contents: Contents, held: list[Held]) -> list[Section]:
    """Return the dtype mix and the tensors, layers and experts as *."""
    return [dtype_section(contents, held), _tensors_section(held)]


def dtype_section(contents: Contents, held: list[Held]) -> Section:
    """Return how the tensors are stored: packed ones at their true element count."""
    section = Section(
        "Stored as",
        [
            ("", "left"),
            ("tensors", "right"),
            ("elements", "right"),
            ("bits each", "right"),
            ("GB and GiB", "right"),
            ("share", "right"),
        ],
    )
    total = contents.total_bytes or 1
    for kind, own in _by_kind(held).items():
        elements, n_bytes = sum(t.elements for t in own), sum(t.n_bytes for t in own)
        bits = f"{8 * n_bytes / elements:.4f}".rstrip("0").rstrip(".") if elements else ""
        share = Share(Fraction(n_bytes, total))
        section.add(kind, len(own), elements, bits, Size(n_bytes), share)
    elements = sum(t.elements for t in held)
    bits = f"{8 * contents.total_bytes / elements:.4f}".rstrip("0").rstrip(".") if elements else ""
    section.add("total", len(held), elements, bits, Size(contents.total_bytes), None, strong=True)
    return section


def _by_kind(held: list[Held]) -> dict[str, list[Held]]:
    found: dict[str, list[Held]] = {}
    for tensor in held:
        found.setdefault(tensor.stored_as, []).append(tensor)
    return dict(sorted(found.items(), key=lambda item: -sum(t.n_bytes for t in item[1])))


def _merged(held: list[Held]) -> list[tuple[str, tuple[int, ...], str, int]]:
    counts = Counter((pattern(t.name), t.shape, t.stored_as) for t in held)
    return [(*key, copies) for key, copies in counts.items()]


def _tensors_section(held: list[Held]) -> Section:
    section = Section(
        "Tensors",
        [("", "left"), ("shape", "right"), ("copies", "right"), ("stored as", "left")],
        paths=True,
    )
    merged = _merged(held)
    for name, shape, kind, copies in merged[:MOST_TENSORS]:
        section.add(printable(name), _shape(shape), copies, kind)
    if len(merged) > MOST_TENSORS:
        section.notes.append(f"and {len(merged) - MOST_TENSORS:,} more; --csv lists all")
    return section


def _shape(shape: tuple[int, ...]) -> str:
    return " × ".join(str(size) for size in shape) or "1"


def audit_headline(name: str, found: Audit) -> str:
    """Return the verdict in one line."""
    if found.equal:
        return f"{name}  equal: every tensor is there, {found.params:,} parameters"
    return (
        f"{name}  different: {_copies(found.missing):,} missing, {_copies(found.different):,} of"
        f" another shape, {_copies(found.extra):,} extra"
    )


def _copies(items: tuple[Item, ...]) -> int:
    return sum(item.copies for item in items)


def audit_sections(found: Audit) -> list[Section]:
    """Return what agrees, what does not, and how the files store it."""
    summary = Section(
        "Tensors compared", [("", "left"), ("tensors", "right"), ("elements", "right")]
    )
    for label, items in (
        ("equal by name and shape", found.by_name),
        ("equal by shape and number", found.by_shape),
        ("missing in the files", found.missing),
        ("of another shape", found.different),
        ("extra in the files", found.extra),
    ):
        if items or label.startswith("equal by name"):
            summary.add(label, _copies(items), sum(i.elements for i in items))
    for why in dict.fromkeys(why for why, _ in found.beside):
        items = tuple(item for own, item in found.beside if own == why)
        summary.add(f"beside: {why}", _copies(items), sum(i.elements for i in items))
    summary.add("the model", None, found.params, strong=True)
    summary.add("the files", len(found.held), found.elements, strong=True)
    sections = [summary]
    for title, items in (
        ("Missing in the files", found.missing),
        ("Of another shape", found.different),
        ("Extra in the files", found.extra),
    ):
        if items:
            sections.append(_items_section(title, items))
    return [*sections, dtype_section(found.contents, list(found.held))]


def _items_section(title: str, items: tuple[Item, ...]) -> Section:
    columns = [("", "left"), ("shape", "right"), ("copies", "right")]
    section = Section(title, columns, paths=True)
    for item in items[:MOST_ROWS]:
        shape = _shape(item.shape)
        if item.was is not None:
            shape = f"{shape}, in the files {_shape(item.was)}"
        section.add(printable(item.name), shape, item.copies)
    if len(items) > MOST_ROWS:
        section.notes.append(f"and {len(items) - MOST_ROWS:,} more; --json lists all")
    return section


def audit_record(name: str, found: Audit) -> dict[str, Any]:
    """Return an audit for a machine."""
    return {
        "model": name,
        "equal": found.equal,
        "params": found.params,
        "elements_in_files": found.elements,
        "matched_by_name": _records(found.by_name),
        "matched_by_shape": _records(found.by_shape),
        "missing": _records(found.missing),
        "different": _records(found.different),
        "extra": _records(found.extra),
        "beside": [{"why": why, **_records((item,))[0]} for why, item in found.beside],
        **contents_record(found.contents),
    }


def _records(items: tuple[Item, ...]) -> list[dict[str, Any]]:
    return [
        {
            "name": item.name,
            "shape": list(item.shape),
            "copies": item.copies,
            "shape_in_files": None if item.was is None else list(item.was),
        }
        for item in items
    ]


def audit_rows(found: Audit) -> list[dict[str, Any]]:
    """Return flat rows for CSV: one a group of equal tensors, with what became of it."""
    kinds = {
        "by name": found.by_name,
        "by shape": found.by_shape,
        "missing": found.missing,
        "different": found.different,
        "extra": found.extra,
        "beside": tuple(item for _, item in found.beside),
    }
    return [
        {"found": kind, "name": i.name, "shape": _shape(i.shape), "copies": i.copies}
        for kind, items in kinds.items()
        for i in items
    ]


def contents_record(contents: Contents) -> dict[str, Any]:
    """Return what files hold for a machine."""
    held = unpacked(contents)
    return {
        "files": list(contents.files),
        "bytes": contents.total_bytes,
        "stored_as": [
            {
                "dtype": kind,
                "tensors": len(own),
                "elements": sum(t.elements for t in own),
                "bytes": sum(t.n_bytes for t in own),
            }
            for kind, own in _by_kind(held).items()
        ],
        "file_tensors": [
            {"name": name, "shape": list(shape), "dtype": kind, "copies": copies}
            for name, shape, kind, copies in _merged(held)
        ],
    }
