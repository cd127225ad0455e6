"""The ledger's tensors against those that files hold: by name, then by shape."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from math import prod
from typing import NamedTuple

from paramcalc.audit.namings import namings
from paramcalc.audit.packed import Held, unpacked
from paramcalc.families.names import Names, Stored, stored, stored_apart
from paramcalc.model import Model
from paramcalc.sources.contents import Contents

Shape = tuple[int, ...]

PREFIXES = ("", "model.", "transformer.", "language_model.", "model.language_model.", "bert.")
_BUFFER = re.compile(
    r"(inv_freq|masked_bias|position_ids|token_type_ids|e_score_correction_bias|rope_freqs\.weight"
    r"|attn\.bias|attention\.bias|expert_bias|exp_probs_b\.bias)$"
)
_TOWER = re.compile(r"(^|\.)(vision|visual|audio|image|multi_modal|mm_|v\.|mm\.)\w*")
_MTP = re.compile(r"(^|\.)(mtp|nextn)(_\w+)?\b")
_PREDICTION = re.compile(r"\.(eh_proj|e_proj|enorm|hnorm|shared_head)\b|\.nextn\.")
"""What a layer of multi-token prediction holds beside what any layer does."""
_LAYER = re.compile(r"(?:layers|blk|h|block)\.(\d+)\.")
_NUMBER = re.compile(r"(?<=[._])\d+(?=\.|$)")


class Item(NamedTuple):
    """Equal tensors: their name with * for numbers, shape, how many; ``was`` is the other side's
    shape where both have the name."""

    name: str
    shape: Shape
    copies: int
    was: Shape | None = None

    @property
    def elements(self) -> int:
        """Elements of all of them."""
        return self.copies * prod(self.shape)


class Audit(NamedTuple):
    """What an audit found. ``beside`` holds what files have next to the model, with its cause."""

    by_name: tuple[Item, ...]
    by_shape: tuple[Item, ...]
    missing: tuple[Item, ...]
    different: tuple[Item, ...]
    extra: tuple[Item, ...]
    beside: tuple[tuple[str, Item], ...]
    packed: tuple[Held, ...]
    params: int
    contents: Contents
    held: tuple[Held, ...]

    @property
    def elements(self) -> int:
        """True elements of all tensors in the files."""
        return sum(t.elements for t in self.held)

    @property
    def equal(self) -> bool:
        """Whether nothing is missing, different or extra."""
        return not (self.missing or self.different or self.extra)


def audit(model: Model, contents: Contents) -> Audit:
    """Return how the ledger of a model and the contents of its files compare.

    Names are compared as the release has them, where its family states them; fused, stacked and
    transposed storage is tried for the rest. Numbers in names (layers, experts) are one item.
    Layers beside the model (multi-token prediction) are compared too where the files hold any.
    """
    held = unpacked(contents)
    own, apart = _parted(model, held)
    tables = list(namings(model, contents.ggml))
    best = _best((stored(model.ledger, names) for names in tables), own)
    predicted, beside = _beside(model, tables, apart)
    extra, more = _explained(model, best.extra + predicted.extra)
    return Audit(
        tuple(best.by_name),
        tuple(best.by_shape),
        tuple(best.missing + predicted.missing),
        tuple(best.different + predicted.different),
        tuple(extra),
        (*beside, *more),
        tuple(t for t in held if t.packed),
        model.params.total,
        contents,
        tuple(held),
    )


def pattern(name: str) -> str:
    """Return a name with * for its numbers ({i} and {e} in a table)."""
    return _NUMBER.sub("*", name.replace("{i}", "0").replace("{e}", "0"))


class _Tried(NamedTuple):
    by_name: list[Item]
    by_shape: list[Item]
    missing: list[Item]
    different: list[Item]
    extra: list[Item]


def _best(ways: Iterable[list[Stored]], held: list[Held]) -> _Tried:
    """The best match of tensors with those wanted, each way of naming and fusing tried."""
    found = Counter((pattern(t.name), t.shape) for t in held)
    return max(
        (_match(_counted(way), found) for way in ways),
        key=lambda t: (sum(i.elements for i in t.by_name + t.by_shape), len(t.by_name)),
    )


def _match(wanted: Counter[tuple[str, Shape]], found: Counter[tuple[str, Shape]]) -> _Tried:
    strip = max(
        ((a, b) for a in PREFIXES for b in PREFIXES),
        key=lambda ab: len(_stripped(wanted, ab[0]).keys() & _stripped(found, ab[1]).keys()),
    )
    wanted, left = _stripped(wanted, strip[0]), _stripped(found, strip[1])
    by_name = _meet(wanted, left, lambda key: key)
    by_shape = _meet(wanted, left, lambda key: _plain(key[1]))
    by_shape += _meet(wanted, left, lambda key: _turned(key[1]))
    others = defaultdict(list)
    for name, shape in left:
        others[name].append(shape)
    different = []
    for (name, shape), count in list(wanted.items()):
        if len(others.get(name, [])) == 1:
            was = others[name][0]
            different.append(Item(name, shape, min(count, left[name, was]), was))
            _take(wanted, (name, shape), different[-1].copies)
            _take(left, (name, was), different[-1].copies)
    return _Tried(by_name, by_shape, _items(wanted), different, _items(left))


def _meet(
    wanted: Counter[tuple[str, Shape]], left: Counter[tuple[str, Shape]], key: object
) -> list[Item]:
    """Take out what both sides have under one key, and return it."""
    assert callable(key)
    pools: dict[object, list[tuple[str, Shape]]] = defaultdict(list)
    for held in left:
        pools[key(held)].append(held)
    met = []
    for want in list(wanted):
        for held in pools.get(key(want), []):
            count = min(wanted.get(want, 0), left.get(held, 0))
            if count:
                met.append(Item(held[0], want[1], count))
                _take(wanted, want, count)
                _take(left, held, count)
    return met


def _take(counts: Counter[tuple[str, Shape]], key: tuple[str, Shape], count: int) -> None:
    counts[key] -= count
    if not counts[key]:
        del counts[key]


def _items(counts: Mapping[tuple[str, Shape], int]) -> list[Item]:
    return [Item(name, shape, count) for (name, shape), count in counts.items()]


def _counted(tensors: Iterable[Stored]) -> Counter[tuple[str, Shape]]:
    found: Counter[tuple[str, Shape]] = Counter()
    for tensor in tensors:
        if not tensor.buffer:
            found[pattern(tensor.name), tensor.shape] += tensor.copies
    return found


def _stripped(counts: Counter[tuple[str, Shape]], prefix: str) -> Counter[tuple[str, Shape]]:
    found: Counter[tuple[str, Shape]] = Counter()
    for (name, shape), count in counts.items():
        found[name.removeprefix(prefix), shape] += count
    return found


def _plain(shape: Shape) -> Shape:
    """The shape without axes of one."""
    return tuple(size for size in shape if size != 1) or (1,)


def _turned(shape: Shape) -> Shape:
    """A key that a matrix and its transpose share, whatever stands in front of them."""
    plain = _plain(shape)
    return (*plain[:-2], *sorted(plain[-2:]))


def _parted(model: Model, held: list[Held]) -> tuple[list[Held], list[Held]]:
    """Part the model's own tensors from those of layers beside it: under ``mtp``, or in layers
    numbered after its own, where the ledger has any or the layer is one of prediction by what it
    holds."""
    if model.spec.count_mtp:
        return held, []
    own: list[Held] = []
    apart: list[Held] = []
    numbers = [_late(model, t.name) for t in held]
    predicting = {n for n, t in zip(numbers, held, strict=True) if _PREDICTION.search(t.name)}
    for number, tensor in zip(numbers, held, strict=True):
        late = number is not None and (bool(model.ledger.apart) or number in predicting)
        (apart if late or _MTP.search(tensor.name) else own).append(tensor)
    return own, apart


def _late(model: Model, name: str) -> int | None:
    """The number of a layer after the model's own, else None."""
    found = None if _TOWER.search(name) else _LAYER.search(name)
    late = found is not None and model.spec.encoder is None and int(found[1]) >= model.spec.n_layers
    return int(found[1]) if found is not None and late else None


def _beside(
    model: Model, tables: list[Names], apart: list[Held]
) -> tuple[_Tried, list[tuple[str, Item]]]:
    """Compare the layers beside the model, and say what there is of them."""
    what = "multi-token prediction"
    if not apart:
        absent = [(f"{what}, not in the files", Item("mtp", (), 0))] if model.ledger.apart else []
        return _Tried([], [], [], [], []), absent
    if not model.ledger.apart:
        items = _items(Counter((pattern(t.name), t.shape) for t in apart))
        return _Tried([], [], [], [], []), [(f"{what}, not counted here", i) for i in items]
    tried = _best((stored_apart(model.ledger, names) for names in tables), apart)
    over = [item for item in tried.extra if not _BUFFER.search(item.name)]
    whole = not (tried.missing or tried.different or over)
    says = f"{what}, as counted apart" if whole else f"{what}, what is equal of it"
    return tried, [(says, item) for item in tried.by_name + tried.by_shape]


def _explained(model: Model, extra: list[Item]) -> tuple[list[Item], list[tuple[str, Item]]]:
    """Part what a file holds beside any model of the kind from what nothing explains."""
    rest, found = [], []
    table = (model.spec.vocab_size, model.spec.d_model)
    for item in extra:
        if _BUFFER.search(item.name):
            found.append(("buffers, no parameters", item))
        elif model.spec.tie_embeddings and item.shape == table and item.copies == 1:
            found.append(("the tied head, stored again", item))
        elif model.reading and model.reading.left_out and _TOWER.search(item.name):
            found.append(("a tower left out of the count", item))
        else:
            rest.append(item)
    return rest, found
