"""The ledger's tensors against those that files hold: by name, then by shape."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from math import prod
from typing import NamedTuple

from paramcalc.audit.packed import Held, unpacked
from paramcalc.families.names import Names, Stored, stored, stored_apart
from paramcalc.model import Model
from paramcalc.sources.contents import Contents

Shape = tuple[int, ...]

GGUF = {
    "layers": "blk",
    "embedding": "token_embd",
    "positions": "position_embd",
    "final_norm": "output_norm",
    "head": "output",
    "norm1": "attn_norm",
    "norm2": "ffn_norm",
    "attention.q": "attn_q",
    "attention.k": "attn_k",
    "attention.v": "attn_v",
    "attention.o": "attn_output",
    "attention.q_norm": "attn_q_norm",
    "attention.k_norm": "attn_k_norm",
    "attention.sinks": "attn_sinks",
    "ffn.gate": "ffn_gate",
    "ffn.up": "ffn_up",
    "ffn.down": "ffn_down",
    "ffn.router": "ffn_gate_inp",
    "ffn.experts.*.gate": "ffn_gate_exps",
    "ffn.experts.*.up": "ffn_up_exps",
    "ffn.experts.*.down": "ffn_down_exps",
    "ffn.shared.gate": "ffn_gate_shexp",
    "ffn.shared.up": "ffn_up_shexp",
    "ffn.shared.down": "ffn_down_shexp",
    "ffn.shared_gate": "ffn_gate_inp_shexp",
}
"""Names in GGUF files (docs/gguf.md of ggml, and the tensor list of llama.cpp)."""

SEPARATE = {
    f"ffn.experts.*.{part}": f"mlp.experts.{{e}}.{part}_proj" for part in ("gate", "up", "down")
}
"""Experts as most checkpoints hold them: each on its own."""
MIXTRAL = {
    f"ffn.experts.*.{part}": f"block_sparse_moe.experts.{{e}}.{name}"
    for part, name in (("gate", "w1"), ("up", "w3"), ("down", "w2"))
} | {"ffn.router": "block_sparse_moe.gate"}
_QKV = {f"attention.{x}": "attention.qkv" for x in "qkv"}
_GATE_UP = {"ffn.gate": "ffn.gate_up", "ffn.up": "ffn.gate_up"}
_STACKED = {f"ffn.experts.*.{x}": "ffn.experts.gate_up !" for x in ("gate", "up")}
_APART = {f"ffn.experts.*.{x}": f"ffn.experts.{{e}}.{x}" for x in ("gate", "up", "down")}

PREFIXES = ("", "model.", "transformer.", "language_model.", "model.language_model.", "bert.")
_BUFFER = re.compile(
    r"(inv_freq|masked_bias|position_ids|token_type_ids|e_score_correction_bias|rope_freqs\.weight"
    r"|attn\.bias|attention\.bias|expert_bias|exp_probs_b\.bias)$"
)
_TOWER = re.compile(r"(^|\.)(vision|visual|audio|image|multi_modal|mm_|v\.|mm\.)\w*")
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
    elements: int
    contents: Contents

    @property
    def equal(self) -> bool:
        """Whether nothing is missing, different or extra."""
        return not (self.missing or self.different or self.extra)


def audit(model: Model, contents: Contents) -> Audit:
    """Return how the ledger of a model and the contents of its files compare.

    Names are compared as the release has them, where its family states them; fused, stacked and
    transposed storage is tried for the rest. Numbers in names (layers, experts) are one item.
    """
    held = unpacked(contents)
    own, beside = _apart(model, held)
    found = Counter((pattern(t.name), t.shape) for t in own)
    tries = [_match(model, names, found) for names in _namings(model, contents.ggml)]
    best = max(
        tries, key=lambda t: (sum(i.elements for i in t.by_name + t.by_shape), len(t.by_name))
    )
    extra, more = _explained(model, best.extra)
    return Audit(
        tuple(best.by_name),
        tuple(best.by_shape),
        tuple(best.missing),
        tuple(best.different),
        tuple(extra),
        (*beside, *more),
        tuple(t for t in held if t.packed),
        model.params.total,
        sum(t.elements for t in held),
        contents,
    )


def _quality(tried: _Tried) -> tuple[int, int]:
    """Elements matched, and how many tensors by name."""
    return sum(i.elements for i in tried.by_name + tried.by_shape), len(tried.by_name)


def pattern(name: str) -> str:
    """Return a name with * for its numbers ({i} and {e} in a table)."""
    return _NUMBER.sub("*", name.replace("{i}", "0").replace("{e}", "0"))


def _namings(model: Model, ggml: bool) -> Iterable[Names]:
    own: Names = model.reading.names if model.reading else {}
    if ggml:
        yield {**GGUF}
        yield {**GGUF, **dict.fromkeys(_QKV, "attn_qkv")}
        yield {**GGUF, **dict.fromkeys(_GATE_UP, "ffn_up")}
        return
    yield own
    yield {**own, **SEPARATE}
    yield {**own, **MIXTRAL}
    for fused in ({}, _QKV, _GATE_UP, {**_QKV, **_GATE_UP}):
        yield {**_APART, **fused}
        yield {**_STACKED, **fused}


class _Tried(NamedTuple):
    by_name: list[Item]
    by_shape: list[Item]
    missing: list[Item]
    different: list[Item]
    extra: list[Item]


def _match(model: Model, names: Names, found: Counter[tuple[str, Shape]]) -> _Tried:
    wanted = _counted(stored(model.ledger, names))
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


def _apart(model: Model, held: list[Held]) -> tuple[list[Held], list[tuple[str, Item]]]:
    """Set aside the layers beside the model: those numbered after its own, or under ``mtp``."""
    depth = model.spec.n_layers
    own, beside = [], []
    for tensor in held:
        number = re.search(r"(?:layers|blk|h|block)\.(\d+)\.", tensor.name)
        after = number is not None and int(number[1]) >= depth and model.spec.encoder is None
        if after or re.search(r"(^|\.)(mtp|nextn)\b", tensor.name):
            beside.append(tensor)
        else:
            own.append(tensor)
    if not beside:
        return own, []
    counted = sum(t.copies * prod(t.shape) for t in stored_apart(model.ledger, {}))
    elements = sum(t.elements for t in beside)
    says = "as counted apart" if elements == counted else f"{counted:,} counted apart"
    names = Counter(pattern(t.name) for t in beside)
    item = Item(f"{len(names)} names", (elements,), 1)
    return own, [(f"multi-token prediction, {says}", item)]


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
