"""Which layers share which fields: a spec's sections merged, group by group.

Only plain arithmetic touches ``n_layers``, so that it may be an array or a symbol.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from paramcalc.numbers import Num, ceil_div

if TYPE_CHECKING:
    from paramcalc.sections import EncoderSpec, LayerSpec
    from paramcalc.spec import ModelSpec

Range = tuple[Num, Num, Num]
_DENSE = SimpleNamespace(n_experts=0)


def is_literal(value: Any, number: int) -> bool:
    """Whether a value is that very int (arrays and symbols never are): a switch, not a size."""
    return type(value) is int and value == number


class View:
    """The fields of one kind of layer: the innermost section that states a field wins.

    Sections are (place, fields) pairs, innermost first; a place is a prefix such as ``layers.0.``.
    """

    def __init__(self, *sections: tuple[str, Any]) -> None:
        self.sections = sections

    def get(self, name: str, default: Any = None) -> Any:
        """Return the field from the innermost section that states it, else ``default``."""
        for _, section in self.sections:
            value = getattr(section, name, None)
            if value is not None:
                return value
        return default

    def limit(self, name: str) -> Any:
        """Return a window or chunk; None where there is none or an inner section says 0."""
        value = self.get(name)
        return None if is_literal(value, 0) else value

    def where(self, name: str) -> str:
        """Return the field's name with the section that states it, such as ``layers.0.window``."""
        for place, section in self.sections:
            if getattr(section, name, None) is not None:
                return place + name
        return name

    @property
    def has_ffn(self) -> bool:
        """Whether the layer has a feed-forward part at all."""
        return bool(self.get("ffn", True))

    @property
    def is_moe(self) -> bool:
        """Whether the layer has experts."""
        return self.has_ffn and not is_literal(self.get("n_experts", 0), 0)

    def traits(self) -> tuple[str, str]:
        """Name the kind of attention and of feed-forward part, for labels."""
        attention = "chunked" if self.limit("chunk") is not None else "full"
        attention = "sliding" if self.limit("window") is not None else attention
        if not self.get("attention", True):
            attention = _mixer(self.get("blocks", ()))
        ffn = ("moe" if self.is_moe else "dense") if self.has_ffn else "attention-only"
        return attention, ffn


def _mixer(blocks: Any) -> str:
    """A word for what stands in attention's place: the class of the block that mixes."""
    names = [type(block).__name__ for block in blocks]
    return next((name.lower() for name in names if name not in ("Rows", "Norm")), "own")


class Group(NamedTuple):
    """Layers of one kind: their label, the view of their fields, and where they stand.

    ``ranges`` are (first, stop, step) triples of layer numbers.
    """

    label: str
    view: View
    ranges: tuple[Range, ...]

    @property
    def n_layers(self) -> Num:
        """How many layers there are of this kind."""
        total: Num = 0
        for first, stop, step in self.ranges:
            span = stop - first
            total = total + (span if is_literal(step, 1) else ceil_div(span, step))
        return total


def groups(section: ModelSpec | EncoderSpec, spec: ModelSpec) -> list[Group]:
    """Return the kinds of layers of a stack; ``section`` is the spec itself or its encoder.

    Equal kinds inside one pattern are one group. Labels name what differs: attention, feed-forward
    part, or a number.
    """
    outer = sections_of(section, spec)
    here = outer[0][0]
    n, dense = section.n_layers, spec.n_dense_layers
    kinds: list[tuple[View, tuple[Range, ...]]] = []
    if section.layers is not None:
        stated: Num = sum(g.repeat for g in section.layers if g.repeat is not None)
        start: Num = 0
        for number, group in enumerate(section.layers):
            stop = start + (n - stated if group.repeat is None else group.repeat)
            place = f"{here}layers.{number}."
            pattern = group.pattern or ()
            period = sum(kind.repeat or 1 for kind in pattern) or 1
            for number, kind, places in _distinct(pattern):
                ranges = tuple((start + p, stop, period) for p in places)
                own = (f"{place}pattern.{number}.", kind)
                kinds.append((View(own, (place, group), *outer), ranges))
            if not pattern:
                kinds.append((View((place, group), *outer), ((start, stop, 1),)))
            start = stop
    elif section is spec and dense is not None and not is_literal(dense, 0):
        kinds = [
            (View(("n_dense_layers: ", _DENSE), *outer), ((0, dense, 1),)),
            (View(*outer), ((dense, n, 1),)),
        ]
    else:
        kinds = [(View(*outer), ((0, n, 1),))]
    labels = _labels([view for view, _ in kinds])
    return [Group(name, view, r) for name, (view, r) in zip(labels, kinds, strict=True)]


def sections_of(section: ModelSpec | EncoderSpec, spec: ModelSpec) -> tuple[tuple[str, Any], ...]:
    """Return the sections of a stack outside its layers, innermost first."""
    return (("", spec),) if section is spec else (("encoder.", section), ("", spec))


def places(view: View, spec: ModelSpec) -> Any:
    """Return the length of a stack's learned table of positions, beside its offset; None where it
    has no such table, or none of a stated length."""
    kind = view.get("positions", "learned" if spec.gpt2 else "none")
    return view.get("n_positions", spec.context) if kind == "learned" else None


def longest(spec: ModelSpec) -> int | None:
    """Return the most tokens that every learned table of positions has a vector for; None where
    there is no table. Ints only."""
    found = [places(View(*sections_of(spec, spec)), spec)]
    if spec.encoder is not None:
        found.append(places(View(*sections_of(spec.encoder, spec)), spec))
    return min((size for size in found if size is not None), default=None)


def _distinct(pattern: tuple[LayerSpec, ...]) -> list[tuple[int, LayerSpec, list[int]]]:
    """Return each different kind of a pattern: its number there, itself, its places in a period."""
    found: dict[Any, tuple[int, LayerSpec, list[int]]] = {}
    start = 0
    for number, kind in enumerate(pattern):
        own = range(start, start + (kind.repeat or 1))
        start = own.stop
        _, _, places = found.setdefault(_fields_of(kind), (number, kind, []))
        places.extend(own)
    return list(found.values())


def _fields_of(kind: LayerSpec) -> Any:
    """What a kind states, as a key; one with arrays, which do not hash, is equal only to itself."""
    values = tuple(getattr(kind, name) for name in type(kind).model_fields if name != "repeat")
    return values if all(isinstance(value, Hashable) for value in values) else id(kind)


def _labels(views: list[View]) -> list[str]:
    given = [getattr(view.sections[0][1], "label", None) for view in views]
    if len(views) == 1:
        return [given[0] or ""]
    traits = [view.traits() for view in views]
    differ = [len({t[i] for t in traits}) > 1 for i in range(2)]
    names = ["-".join(t[i] for i in range(2) if differ[i]) for t in traits]
    names = [own or name for own, name in zip(given, names, strict=True)]
    counts = Counter(names)
    return [n if n and counts[n] == 1 else f"{n}{i}" for i, n in enumerate(names)]
