"""Where the parameters sit: the ledger's tensors gathered into the parts a reader thinks in."""

from __future__ import annotations

from typing import Any, NamedTuple

from paramcalc.ledger import Ledger, Role, Tensor
from paramcalc.numbers import Num
from paramcalc.quantities.params import is_tied


class Part(NamedTuple):
    """One part: ``one_layer`` and ``n_layers`` are None outside the layers.

    ``group`` names the kind of layer it is in (empty outside). ``kind`` is ``part``, ``title`` (a
    kind of layer, before its parts), ``layer`` (their sum), ``sum`` or ``total``.
    """

    name: str
    group: str
    one_layer: Num | None
    n_layers: Num | None
    params: Num
    kind: str = "part"

    @property
    def key(self) -> tuple[str, str, str]:
        """What the part is, whatever its counts: 8 experts and 4 experts are the same part."""
        plain = self.name.partition(" (")[0]
        return self.group, self.kind, plain.lstrip("0123456789, ")


class _Kind(NamedTuple):
    """Kinds of layers of a stack that hold the same tensors, as one."""

    stack: str
    labels: tuple[str, ...]
    n_layers: Num
    shared: bool
    lines: list[Part]


def parts(ledger: Ledger) -> list[Part]:
    """Return the parts in the order of a forward pass, then sums and the total.

    Kinds of layers that hold the same tensors (sliding and full attention, say) stand as one.
    """
    outer = [r for r in ledger.outer if isinstance(r, Tensor) and r.use != "buffer"]
    before = [t for t in outer if t.role in ("embedding", "position")]
    head = [t for t in outer if t.role == "head" or t.name.startswith("head.")]
    around = [t for t in outer if t not in before and t not in head]
    lines = _gather(before) + _layer_parts(ledger) + _gather(around) + _gather(head)
    ends = sum(t.params for t in before + head)
    lines.append(Part("embedding + head", "", None, None, ends, "sum"))
    lines.append(Part("total", "", None, None, sum(t.params for t in ledger.tensors), "total"))
    return lines


def _layer_parts(ledger: Ledger) -> list[Part]:
    same: dict[Any, _Kind] = {}
    for layer in ledger.layers:
        lines = _gather([r for r in layer.rows if isinstance(r, Tensor) and r.use != "buffer"])
        key = (layer.stack, tuple(lines))
        held = same.get(key)
        labels, count = (
            ((*held.labels, layer.label), held.n_layers) if held else ((layer.label,), 0)
        )
        same[key] = _Kind(layer.stack, labels, count + layer.n_layers, layer.shared, lines)
    kinds = list(same.values())
    result: list[Part] = []
    for kind in kinds:
        group = _group_name(kind, kinds)
        stored = 1 if kind.shared else kind.n_layers
        if group:
            result.append(Part(f"{group} layers", group, None, None, 0, "title"))
        result += [
            p._replace(group=group, one_layer=p.params, n_layers=stored, params=p.params * stored)
            for p in kind.lines
        ]
        one = sum(p.params for p in kind.lines)
        name = "= layer (shared)" if kind.shared else "= layer"
        result.append(Part(name, group, one, stored, one * stored, "layer"))
    return result


def _group_name(kind: _Kind, kinds: list[_Kind]) -> str:
    """The stack if there are two, and what sets this kind apart from the stack's others."""
    stack = (kind.stack or "decoder") if any(k.stack != kind.stack for k in kinds) else ""
    several = sum(k.stack == kind.stack for k in kinds) > 1
    own = (_shared_words(kind.labels) or " and ".join(kind.labels)) if several else ""
    return " ".join(word for word in (stack, own) if word)


class Move(NamedTuple):
    """A part beside what it was: ``change`` in parameters; a part that is gone has 0 left."""

    part: Part
    change: Num


def moves(now: list[Part], was: list[Part]) -> list[Move]:
    """Return each part's change between two shapes of a model; the changes add up to the total's.

    Where the kinds of layers differ, parts are compared over all layers of a stack.
    """
    if [p.group for p in now if p.kind == "layer"] != [p.group for p in was if p.kind == "layer"]:
        now, was = _over_layers(now), _over_layers(was)
    old = {p.key: p for p in was}
    new = {p.key for p in now}
    gone = [p for p in was if p.key not in new and p.params]
    result: list[Move] = []
    for part in now:
        if part.kind in ("layer", "sum"):
            result += [_left(p) for p in gone if p.group == part.group and p.kind == "part"]
            gone = [p for p in gone if p.group != part.group]
        before = old.get(part.key)
        result.append(Move(part, part.params - (before.params if before else 0)))
    return result


def _left(part: Part) -> Move:
    return Move(part._replace(one_layer=None, n_layers=None, params=0), -part.params)


def _over_layers(lines: list[Part]) -> list[Part]:
    """Add up equal parts of all kinds of layers."""
    found: dict[tuple[str, str, str], Part] = {}
    for part in lines:
        if part.kind in ("title", "layer"):
            continue
        plain = part._replace(group="", one_layer=None, n_layers=None)
        held = found.get(plain.key)
        found[plain.key] = plain._replace(params=plain.params + held.params) if held else plain
    return list(found.values())


def _shared_words(labels: tuple[str, ...]) -> str:
    """What the labels of equal kinds have in common: chunked-moe and full-moe are moe."""
    words = [label.split("-") for label in labels]
    return "-".join(word for word in words[0] if all(word in other for other in words))


def _gather(tensors: list[Tensor]) -> list[Part]:
    """Sum the tensors that have one name for a reader, in order of first appearance."""
    found: dict[str, Num] = {}
    for tensor in sorted(tensors, key=lambda t: (t.role == "norm", t.use not in _CORE)):
        name = part_name(tensor, tensors)
        found[name] = found.get(name, 0) + tensor.params
    return [Part(name, "", None, None, count) for name, count in found.items()]


_CORE = ("matmul", "lookup", "scale")
_PAIRS = {
    "gate": "attention gate",
    "q": "W_Q + W_O",
    "o": "W_Q + W_O",
    "k": "W_K + W_V",
    "v": "W_K + W_V",
}
_OTHER: dict[Role, str] = {
    "embedding": "embeddings, other",
    "position": "positions, other",
    "attention": "attention, other",
    "mixer": "mixer",
    "ffn": "FFN, other",
    "router": "router",
    "residual": "residual connections",
    "norm": "norms",
    "head": "head, other",
    "tower": "towers",
}
_PLAIN = {
    "embedding": "embedding",
    "embedding.project": "embedding projection",
    "token_types": "token types",
    "head": "head",
    "head.project": "head projection",
    "head.dense": "head transform",
    "head.norm": "head transform",
}


def part_name(tensor: Tensor, among: list[Tensor]) -> str:
    """Return what a reader calls a tensor's part, such as ``W_Q + W_O`` or ``8 experts``."""
    name = tensor.name.removesuffix(".bias")
    first, _, rest = name.partition(".")
    if first in ("head", "pooler") or name in _PLAIN:
        plain = _PLAIN.get(name, name)
        if is_tied(tensor):
            return f"{plain} (tied)"
        return f"{plain} bias" if name == "head" and tensor.use == "bias" else plain
    if name.endswith(("final_norm", "embedding_norm")):
        return name.replace("_", " ").replace(".", " ")
    if tensor.role == "norm":
        return "norms"
    if tensor.role in ("mixer", "residual", "tower"):
        return _OTHER[tensor.role]
    if first in ("attention", "cross_attention"):
        return _attention_name(tensor, first, rest, among)
    if first == "ffn":
        return _ffn_name(tensor, rest, among)
    if name.endswith(("relative_positions", "positions")) or first == "indexer":
        return name.replace("_", " ").replace(".", " ")
    return _OTHER[tensor.role]


def _attention_name(tensor: Tensor, first: str, rest: str, among: list[Tensor]) -> str:
    cross = "cross " if first == "cross_attention" else ""
    if tensor.use == "bias":
        return f"{cross}attention biases" if "sinks" not in rest else "attention sinks"
    if rest.startswith("indexer"):
        return "indexer"
    if any(t.name == "attention.kv_down" for t in among):
        return "latent attention"
    return cross + _PAIRS.get(rest, _OTHER["attention"])


def _ffn_name(tensor: Tensor, rest: str, among: list[Tensor]) -> str:
    if rest.startswith("router") or rest == "shared_gate":
        return "router"
    if tensor.use == "bias":
        return "FFN biases"
    if rest.startswith("experts"):
        return f"{tensor.copies:,} experts"
    if rest.startswith("shared"):
        return "shared expert"
    gated = any(t.name.endswith("gate") and t.role == "ffn" for t in among)
    return "FFN (gate, up, down)" if gated else "FFN (up, down)"
