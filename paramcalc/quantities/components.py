"""Where the parameters sit: the ledger's tensors gathered into the parts a reader thinks in."""

from __future__ import annotations

from typing import NamedTuple

from paramcalc.ledger import Ledger, Tensor
from paramcalc.numbers import Num


class Part(NamedTuple):
    """One part: ``one_layer`` and ``n_layers`` are None outside the layers.

    ``kind`` is ``part``, ``layer`` (the sum of the parts above it), ``sum`` or ``total``.
    """

    name: str
    one_layer: Num | None
    n_layers: Num | None
    params: Num
    kind: str = "part"


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
    lines.append(Part("embedding + head", None, None, ends, "sum"))
    lines.append(Part("total", None, None, sum(t.params for t in ledger.tensors), "total"))
    return lines


def _layer_parts(ledger: Ledger) -> list[Part]:
    kinds: dict[tuple[str, tuple[Part, ...]], tuple[list[Part], list[str], Num, bool]] = {}
    stacks = {layer.stack for layer in ledger.layers}
    for layer in ledger.layers:
        tensors = [r for r in layer.rows if isinstance(r, Tensor) and r.use != "buffer"]
        lines = _gather(tensors)
        key = (layer.stack, tuple(lines))
        if key in kinds:
            held, labels, count, shared = kinds[key]
            kinds[key] = (held, [*labels, layer.label], count + layer.n_layers, shared)
        else:
            kinds[key] = (lines, [layer.label], layer.n_layers, layer.shared)
    several = len(kinds) > 1
    result: list[Part] = []
    for (stack, _), (lines, labels, count, shared) in kinds.items():
        stored = 1 if shared else count
        named = [stack or ("decoder" if len(stacks) > 1 else "")]
        if sum(k[0] == stack for k in kinds) > 1:
            named.append(_shared_words(labels))
        prefix = " ".join(n for n in named if n)
        title = f"= {prefix} layer".replace("  ", " ") if several else "= layer"
        if shared:
            title += " (shared)"
        result += [
            p._replace(one_layer=p.params, n_layers=stored, params=p.params * stored) for p in lines
        ]
        one = sum(p.params for p in lines)
        result.append(Part(title, one, stored, one * stored, "layer"))
    return result


def _shared_words(labels: list[str]) -> str:
    """What the labels of equal kinds have in common: chunked-moe and full-moe are moe."""
    words = [label.split("-") for label in labels]
    return "-".join(word for word in words[0] if all(word in other for other in words))


def _gather(tensors: list[Tensor]) -> list[Part]:
    """Sum the tensors that have one name for a reader, in order of first appearance."""
    found: dict[str, Num] = {}
    for tensor in sorted(tensors, key=lambda t: (t.role == "norm", t.use not in _CORE)):
        name = part_name(tensor, tensors)
        found[name] = found.get(name, 0) + tensor.params
    return [Part(name, None, None, count) for name, count in found.items()]


_CORE = ("matmul", "lookup", "scale")
_PAIRS = {"q": "W_Q + W_O", "o": "W_Q + W_O", "k": "W_K + W_V", "v": "W_K + W_V"}
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
        if tensor.copies == 0:
            return f"{plain} (tied)"
        return f"{plain} bias" if name == "head" and tensor.use == "bias" else plain
    if name.endswith(("final_norm", "embedding_norm")):
        return name.replace("_", " ").replace(".", " ")
    if tensor.role == "norm":
        return "norms"
    if first.endswith("attention"):
        return _attention_name(tensor, first, rest, among)
    if first == "ffn":
        return _ffn_name(tensor, rest, among)
    return name.replace("_", " ").replace(".", " ")


def _attention_name(tensor: Tensor, first: str, rest: str, among: list[Tensor]) -> str:
    cross = "cross " if first == "cross_attention" else ""
    if tensor.use == "bias":
        return f"{cross}attention biases" if "sinks" not in rest else "attention sinks"
    if rest.startswith("indexer"):
        return "indexer"
    if any(t.name == "attention.kv_down" for t in among):
        return "latent attention"
    return cross + _PAIRS[rest]


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
