"""Explain: the ledger's own formulas, in symbols, with numbers, with their integers.

The spec's numbers are replaced by symbols, the same blocks yield the same rows, and what their
shapes, FLOPs and caches come to is shown, kind of layer by kind of layer. A test holds every sum
made here equal to the calculator's own fold.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from paramcalc.build import default_d_ff, default_head_dim, ledger_of, plan
from paramcalc.layout import is_literal
from paramcalc.ledger import ROLES, Cache, Ledger, Operation, Row, Tensor
from paramcalc.model import Model
from paramcalc.numbers import Num
from paramcalc.quantities import flops, params
from paramcalc.sight import Both, Causal
from paramcalc.symbolic import symbolic
from paramcalc.symbols import Formula, lift, symbol


class Step(NamedTuple):
    """One line of an explanation: what it is, its formula, the formula in numbers, the integer."""

    group: str
    name: str
    symbols: str
    numbers: str
    value: int
    unit: str


def explain(model: Model, n: int) -> list[Step]:
    """Return the explanation of a model at a context of n tokens, in the order of reading."""
    spec, context = symbolic(model.spec, n)
    steps = _defaults(model.spec, spec)
    layout = plan(spec)
    counted = []
    for layer in layout.layers:
        if len(layout.layers) > 1:
            name = where(layer)
            count = symbol(f"L[{name}]", lift(layer.n_layers).value)
            steps.append(_step("layers", f"{name} layers", layer.n_layers, "layers", count.text()))
            layer = layer._replace(n_layers=cast(Num, count))
        counted.append(layer)
    ledger = ledger_of(layout._replace(layers=tuple(counted)))
    return steps + _parameters(ledger) + _compute(ledger, context) + _memory(ledger, context)


def where(layer: Any) -> str:
    """Return the stack and label of a kind of layer as one name."""
    return " ".join(w for w in (layer.stack, layer.label) if w) or "decoder"


def _step(group: str, name: str, value: Num | Formula, unit: str, symbols: str = "") -> Step:
    formula = lift(value)
    text = f"{symbols} = {formula.text()}" if symbols else formula.text()
    return Step(group, name, text, formula.numbers(), formula.value, unit)


class _Sum:
    """A quantity summed over a model: what stands outside layers, then each kind of layer.

    With several kinds, each gets a step and a symbol of its own, and the sum is in those.
    """

    def __init__(self, group: str, unit: str, letter: str) -> None:
        self.group, self.unit, self.letter = group, unit, letter
        self.steps: list[Step] = []

    def over(
        self, ledger: Ledger, outer: Num, one: list[Num], *, stored: bool = False, title: str
    ) -> Formula:
        """Return outer + the sum of layers x one; ``stored`` counts shared layers once.

        Kinds of layers with the same formula share a step.
        """
        terms = [lift(value) for value in one]
        if len(terms) > 1:
            for name, alike in _alike(ledger, [term.text() for term in terms]):
                term, short = terms[alike[0]], f"{self.letter}[{name}]"
                if term.value:
                    title_ = f"{title}, one {name} layer".replace("one any", "any")
                    self.steps.append(_step(self.group, title_, term, self.unit, short))
                for i in alike:
                    terms[i] = symbol(short, term.value) if term.value else term
        total = lift(outer)
        for layer, term in zip(ledger.layers, terms, strict=True):
            total = total + term * (1 if stored and layer.shared else layer.n_layers)
        return total


def _alike(ledger: Ledger, texts: list[str]) -> list[tuple[str, list[int]]]:
    """Gather the kinds of layers that share a text: their joint name and their numbers."""
    found: dict[str, list[int]] = {}
    for i, text in enumerate(texts):
        found.setdefault(text, []).append(i)
    if len(found) == 1 and len(texts) > 1:
        return [("any", list(range(len(texts))))]
    return [(", ".join(where(ledger.layers[i]) for i in same), same) for same in found.values()]


def _defaults(own: Any, spec: Any) -> list[Step]:
    steps = []
    if own.head_dim is None and own.mla is None and own.n_heads is not None:
        steps.append(
            _step(
                "defaults",
                "head_dim",
                default_head_dim(spec.d_model, spec.n_heads),
                "elements",
                "d_h",
            )
        )
    if own.d_ff is None and own.ffn is not False:
        width = default_d_ff(spec.d_model, bool(own.gated_ffn), own.ff_multiple_of)
        steps.append(_step("defaults", "d_ff", width, "elements", "d_ff"))
    return steps


_TITLES = {
    "embedding": "embedding",
    "position": "positions",
    "attention": "attention",
    "mixer": "mixer",
    "ffn": "feed-forward",
    "router": "router",
    "residual": "residual connections",
    "norm": "norms",
    "head": "head",
    "tower": "tower",
}


def _held(name: str, tensors: list[Tensor]) -> Step:
    """The parameters of some tensors: as their formula, or as their shapes where no field of the
    model stands in them."""
    step = _step("parameters", name, sum(t.params for t in tensors), "parameters")
    if step.symbols != f"{step.value:,}":
        return step
    shapes: dict[str, int] = {}
    for tensor in tensors:
        sizes = [lift(size).value for size in (tensor.copies, *tensor.shape)]
        text = "·".join(f"{size:,}" for size in sizes if size != 1) or "1"
        shapes[text] = shapes.get(text, 0) + (1 if 0 not in sizes else 0)
    parts = [f"{times}·{text}" if times > 1 else text for text, times in shapes.items() if times]
    spelled = " + ".join(parts) or "0"
    return step._replace(symbols=spelled, numbers=spelled)


def _parameters(ledger: Ledger) -> list[Step]:
    steps = []
    outer = [r for r in ledger.outer if isinstance(r, Tensor)]
    layers = [[r for r in layer.rows if isinstance(r, Tensor)] for layer in ledger.layers]
    formulas = [
        {
            role: lift(params.of_roles(tensors, role))
            for role in ROLES
            if any(t.role == role for t in tensors)
        }
        for tensors in layers
    ]
    texts = [str({role: formula.text() for role, formula in kind.items()}) for kind in formulas]
    for name, alike in _alike(ledger, texts):
        place = "one layer" if len(layers) == 1 else f"one {name} layer".replace("one any", "any")
        kind = formulas[alike[0]]
        steps += [
            _held(f"{_TITLES[role]}, {place}", [t for t in layers[alike[0]] if t.role == role])
            for role in kind
        ]
        if len(layers) == 1:
            whole = params.of_roles(layers[0], *ROLES)
            steps.append(_step("parameters", place, whole, "parameters"))
    for role in ROLES:
        found = [t for t in outer if t.role == role]
        if found:
            tied = " (tied)" if any(params.is_tied(t) for t in found) else ""
            steps.append(_held(f"{_TITLES[role]}{tied}, outside layers", found))
    fold = _Sum("parameters", "parameters", "P")
    total = fold.over(
        ledger,
        sum(t.params for t in outer),
        [sum(t.params for t in ts) for ts in layers],
        stored=True,
        title="all",
    )
    steps += [*fold.steps, _step("parameters", "total", total, "parameters", "N")]
    if lift(params.active(ledger)).value != total.value:
        fold = _Sum("parameters", "parameters", "P_act")
        active = fold.over(
            ledger,
            sum(t.active_params for t in outer),
            [sum(t.active_params for t in ts) for ts in layers],
            stored=True,
            title="active",
        )
        steps += [*fold.steps, _step("parameters", "active", active, "parameters", "N_act")]
    if lift(params.buffers(ledger)).value:
        steps.append(_step("parameters", "stored buffers", params.buffers(ledger), "values"))
    return steps


def _matmuls(rows: tuple[Row, ...]) -> Num:
    """What a token is multiplied by: no pooler, and no tower."""
    own = ("token", "source")
    return sum(r.flops for r in rows if isinstance(r, Tensor) and r.stream in own)


def _work(operation: Operation) -> Num:
    """FLOPs a pair, of all its copies."""
    each = operation.flops_per_pair
    return each if is_literal(operation.copies, 1) else operation.copies * each


def _compute(ledger: Ledger, n: Num) -> list[Step]:
    rows = [layer.rows for layer in ledger.layers]
    fold = _Sum("FLOPs", "FLOPs", "M")
    matmuls = fold.over(
        ledger,
        _matmuls(ledger.outer),
        [_matmuls(rs) for rs in rows],
        title="matmuls",
    )
    steps = [*fold.steps, _step("FLOPs", "matmuls, one token", matmuls, "FLOPs", "M")]
    outer = [r for r in ledger.outer if isinstance(r, Operation)]
    work = [[r for r in rs if isinstance(r, Operation)] for rs in rows]
    fold = _Sum("FLOPs", "FLOPs", "A")
    attention = fold.over(
        ledger,
        sum(_work(o) * o.sight.positions(n) for o in outer),
        [sum(_work(o) * o.sight.positions(n) for o in ops) for ops in work],
        title="attention, token n",
    )
    steps += [*fold.steps, _step("FLOPs", "attention, token n", attention, "FLOPs", "A")]
    m, a = symbol("M", matmuls.value), symbol("A", attention.value)
    steps.append(_step("FLOPs", "forward, token n", m + a, "FLOPs"))
    seen: dict[str, Formula] = {}
    for operation in (o for ops in (outer, *work) for o in ops):
        pairs = lift(operation.sight.pairs(n))
        if pairs.text() not in seen:
            name = f"p_{len(seen) + 1}" if seen else "p"
            seen[pairs.text()] = symbol(name, pairs.value)
            steps.append(
                _step(
                    "FLOPs", f"pairs over n tokens, {_sees(operation.sight)}", pairs, "pairs", name
                )
            )

    def total(operations: list[Operation]) -> Num:
        each = ((_work(o), cast(Num, seen[lift(o.sight.pairs(n)).text()])) for o in operations)
        return sum(work * pairs for work, pairs in each)

    fold = _Sum("FLOPs", "FLOPs", "S")
    pairs = fold.over(
        ledger,
        total(outer),
        [total(ops) for ops in work],
        title="attention, n tokens",
    )
    steps += [*fold.steps, _step("FLOPs", "attention, n tokens", pairs, "FLOPs", "S")]
    forward = m * n + symbol("S", pairs.value) + lift(flops.per_sequence(ledger))
    steps.append(_step("FLOPs", "forward, n tokens", forward, "FLOPs", "F"))
    steps.append(_step("FLOPs", "training, n tokens", 3 * symbol("F", forward.value), "FLOPs"))
    used, held = lift(params.working(ledger)).value, lift(params.total(ledger)).value
    own = "N_act" if used == lift(params.active(ledger)).value else "N_text"  # towers left out
    active = symbol("N" if used == held else own, used)
    steps.append(_step("FLOPs", "the rule 6 N n", flops.six_n(cast(Num, active), n), "FLOPs"))
    if ledger.operations and all(type(o.sight) in (Causal, Both) for o in ledger.operations):
        equal = cast(Num, flops.equal_at(ledger, cast(Num, m)))
        steps.append(_step("FLOPs", "attention = matmuls at n", equal, "tokens"))
    return steps


def _sees(sight: Any) -> str:
    return {
        "Causal": "causal",
        "Window": "a window",
        "Chunk": "chunks",
        "Sparse": "the top k",
        "Both": "all",
        "BothWindow": "a window on both sides",
        "BothChunk": "its chunk, on both sides",
        "BothCompressed": "all blocks",
        "Compressed": "blocks before it",
        "Blocks": "the best blocks",
        "State": "its state",
    }[type(sight).__name__]


def _memory(ledger: Ledger, n: Num) -> list[Step]:
    stored = symbol("N", lift(params.total(ledger)).value) + lift(params.buffers(ledger))
    steps = [_step("bytes", "weights in BF16", 2 * stored, "bytes")]
    for letter, title, length in (
        ("c", "first token", 1),
        ("C", f"{lift(n).value:,} tokens", n),
    ):
        if ledger.caches:
            fold = _Sum("bytes", "bytes", letter)
            cache = fold.over(
                ledger,
                0,
                [
                    sum(2 * c.elements(length) for c in layer.rows if isinstance(c, Cache))
                    for layer in ledger.layers
                ],
                title=f"KV cache, {title}",
            )
            steps += [*fold.steps, _step("bytes", f"KV cache in BF16, {title}", cache, "bytes")]
    return steps
