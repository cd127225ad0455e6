"""The page's figures: the ledger's counting code run on symbols, for each choice of switches.

A switch is structure, so each choice of switches has a formula of its own. They are joined into one
formula in which a switch is a number that is 0 or 1: what a switch changes, times the switch. At
every choice that is exactly the formula of the choice, since the differences add up to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple, cast

from paramcalc import rules
from paramcalc.build import default_d_ff, default_head_dim, ledger_of, plan
from paramcalc.ledger import ROLES, Ledger, Row
from paramcalc.model import Model
from paramcalc.numbers import Num, maximum, minimum
from paramcalc.quantities import flops, params, shape
from paramcalc.quantities.catalogue import CATALOGUE, At
from paramcalc.sight import Blocks, BothCompressed, Chunk, Compressed
from paramcalc.spec import ModelSpec
from paramcalc.sweep.columns import SOLVED
from paramcalc.sweep.placing import placed
from paramcalc.symbols import Formula, lift, symbol
from paramcalc.views.page import units
from paramcalc.views.page.fields import SWITCHES, Bits, Field, fields, state, switched, switches

KV_BITS = "kv_bits"
"""Bits of a cache element, set by the format that is chosen."""
AT_ENDS, CHUNK = "attention_flops_at_ends", "chunk_size"
"""What the page searches the crossing by: attention as if each token were the last of its chunk,
and the size of the chunks, 1 without any."""
UNSHOWN = {SOLVED, "buffers", "router_flops_per_token", "causal_links", "kv_bytes_next_token"}
"""Of the catalogue: the crossing is searched between bounds; the rest is not shown."""
ROUNDED = {"kv_bytes_per_token", "kv_bytes"}
"""Of the catalogue: what rounds a whole sum, so that its parts do not add up."""
EXPERTS_ON, DEFAULT_HEAD_DIM = 1, 2
"""When a rule holds at all: with experts, while ``head_dim`` is left out."""


class Law(NamedTuple):
    """A rule about sizes: broken where ``excess`` is above 0; ``when`` adds up its conditions."""

    field: str
    rule: str
    excess: Formula
    when: int


class Structure(NamedTuple):
    """What models of one structure share: fields, switches, and a formula for each figure."""

    fields: list[Field]
    switches: list[int]
    defaults: dict[str, Formula]
    figures: dict[str, Formula]
    laws: list[Law]


class Symbols:
    """A symbol for each name, with a value of its own.

    The values are primes, because a quotient that happens to be whole is written as if it always
    were.
    """

    def __init__(self) -> None:
        self._made: dict[str, Formula] = {}
        self._primes = _primes()

    def __getitem__(self, name: str) -> Formula:
        if name not in self._made:
            self._made[name] = symbol(name, next(self._primes))
        return self._made[name]


def _primes() -> Iterator[int]:
    number = 1_000_003
    while True:
        if all(number % i for i in range(3, int(number**0.5) + 1, 2)):
            yield number
        number += 2


def signature(model: Model) -> str:
    """Return a text that is equal for models of one structure, whatever their numbers."""
    offered = switches(model)
    off = tuple(0 if i in offered else bit for i, bit in enumerate(state(model.spec)))
    names = [field.name for field in fields(model)] + ["n_experts", "top_k"] * (3 in offered)
    spec = placed(switched(model, off), {name: f"<{name}>" for name in names})
    return repr((names, offered, spec.model_copy(update={"name": None, "about": None})))


def structure(model: Model, symbols: Symbols, extra: tuple[str, ...] = ()) -> Structure:
    """Derive the formulas of a model's structure; ``extra`` are formats beside the catalogue's."""
    offered = switches(model)
    now = state(model.spec)
    choices = [(0, 1) if i in offered else (bit,) for i, bit in enumerate(now)]
    numbers = fields(model)
    specs: dict[Bits, ModelSpec] = {}
    for bits in product(*choices):
        own = _symbols_of(numbers, symbols, experts=bits[3] == 1 or 3 not in offered)
        specs[bits] = placed(switched(model, bits), own)
    ledgers = {bits: ledger_of(plan(spec)) for bits, spec in specs.items()}
    vocab = {bits: spec.vocab_size for bits, spec in specs.items()}
    figures = _figures(ledgers, vocab, symbols, extra)
    figures |= _crossing(ledgers[now], cast(Num, symbols["context"]))
    defaults = {f.name: _default(f.name, model, symbols) for f in numbers if f.defaulted}
    used = {atom for formula in figures.values() for atom in _names(formula)}
    own_fields = [f for f in numbers if f.name in used or f.name in ("context", "batch")]
    idle = [i for i in offered if SWITCHES[i] not in used]
    return Structure(
        own_fields,
        [i for i in offered if i not in idle],
        {f.name: defaults[f.name] for f in own_fields if f.defaulted},
        figures,
        list(_laws(model, list(specs), own_fields, symbols)),
    )


def _symbols_of(numbers: list[Field], symbols: Symbols, *, experts: bool) -> dict[str, Any]:
    skipped = () if experts else ("n_experts", "top_k")
    return {f.name: symbols[f.name] for f in numbers if f.name not in skipped}


def _figures(
    ledgers: dict[Bits, Ledger], vocab: dict[Bits, Num], symbols: Symbols, extra: tuple[str, ...]
) -> dict[str, Formula]:
    """Every figure for all choices; parts first, so that sums can be written by them."""
    at = At(*(cast(Num, symbols[name]) for name in ("context", "batch", KV_BITS)))
    figures: dict[str, Formula] = {}
    for share, part in _parts(ledgers, symbols):
        for key, value in _sums(part, at).items():
            figures[key] = figures.get(key, lift(0)) + share * value
    step = symbols[units.STEP_TOKENS], symbols[units.STEP_REQUESTS]
    found: dict[Bits, dict[str, Any]] = {}
    for bits, ledger in ledgers.items():
        found[bits] = {key: CATALOGUE[key].of(ledger, at) for key in ROUNDED}
        found[bits] |= units.figures(ledger, vocab[bits], extra, at, *step)
    keys = next(iter(found.values()))
    return figures | {
        key: _joined({bits: lift(own[key]) for bits, own in found.items()}, symbols) for key in keys
    }


def _parts(ledgers: dict[Bits, Ledger], symbols: Symbols) -> Iterator[tuple[Formula, Ledger]]:
    """The rows that the same choices have, as a ledger, and how often they stand in it.

    A figure that is a sum over rows is then counted once for all choices.
    """
    rows: dict[Any, tuple[Row, Counter[Bits]]] = {}
    for bits, ledger in ledgers.items():
        for row in ledger.rows:  # by all but its name; a sight is a tuple, so its type tells
            kind = type(getattr(row, "sight", None))
            rows.setdefault((type(row), kind, row[1:]), (row, Counter()))[1][bits] += 1
    groups: dict[tuple[int, ...], list[Row]] = {}
    for row, counts in rows.values():
        groups.setdefault(tuple(counts[bits] for bits in ledgers), []).append(row)
    for pattern, own in groups.items():
        counted = {bits: lift(n) for bits, n in zip(ledgers, pattern, strict=True)}
        yield _joined(counted, symbols), Ledger((), (), tuple(own))


def _sums(ledger: Ledger, at: At) -> dict[str, Num]:
    """The figures that are sums over rows."""
    found: dict[str, Any] = {}
    for role in ROLES:
        found[f"params_{role}"] = params.of_roles(ledger.tensors, role)
        part = Ledger((), (), tuple(r for r in ledger.rows if getattr(r, "role", None) == role))
        found[f"flops_{role}"] = flops.per_token(part, at.n)
    tensors = list(ledger.tensors)
    found["ffn_matrices"] = shape.matrices(tensors, "ffn")
    found["attention_matrices"] = shape.matrices(tensors, "attention")
    keys = (key for key in CATALOGUE if key not in UNSHOWN | ROUNDED)
    return found | {key: CATALOGUE[key].of(ledger, at) for key in keys}


def _joined(choices: dict[Bits, Formula], symbols: Symbols) -> Formula:
    """One formula for all choices of switches."""
    parts = dict(choices)
    for place in range(len(SWITCHES)):
        for bits in parts:
            without = (*bits[:place], 0, *bits[place + 1 :])
            if bits[place] and without in parts:
                parts[bits] = parts[bits] - parts[without]
    total = lift(0)
    for bits, part in parts.items():
        for place, name in enumerate(SWITCHES):
            if bits[place] and (*bits[:place], 0, *bits[place + 1 :]) in parts:
                part = part * symbols[name]
        total = total + part
    return total


def _crossing(ledger: Ledger, n: Num) -> dict[str, Formula]:
    """What tells where attention costs as much as the matmuls, as in ``flops.crossover``.

    At the ends of chunks attention never falls and grows ever slower, so that the page may double
    n until it is enough, or until it grows no more; inside the chunk found it never falls either.
    Nothing is divided by, since a shape without a layer that sees everything has a slope of 0.
    """
    sights = [operation.sight for operation in ledger.operations]
    if any(isinstance(sight, Compressed | BothCompressed) for sight in sights):
        return {}  # grows in steps, without an end that is known beforehand
    total, chunk = lift(0), 1
    for operation, sight in zip(ledger.operations, sights, strict=True):
        seen = n if sight.most is None else minimum(n, sight.most)
        total = total + operation.copies * operation.flops_per_pair * seen
        if isinstance(sight, Chunk | Blocks):
            chunk = maximum(chunk, sight.size)
    return {AT_ENDS: total, CHUNK: lift(chunk)}


def _default(name: str, model: Model, symbols: Symbols) -> Formula:
    """What a field is where it is left out."""
    d, heads = cast(Num, symbols["d_model"]), cast(Num, symbols["n_heads"])
    if name == "n_kv_heads":
        return lift(heads)
    if name == "head_dim":
        return lift(default_head_dim(d, heads))
    gated = [lift(default_d_ff(d, on, model.spec.ff_multiple_of)) for on in (False, True)]
    if 0 not in switches(model):
        return gated[bool(model.spec.gated_ffn)]
    return _joined({(on, 0, 0, 0): gated[on] for on in (0, 1)}, symbols)


def _names(formula: Formula) -> Iterator[str]:
    for terms in formula.terms:
        for atom, _ in terms:
            if atom.parts:
                for part in atom.parts:
                    yield from _names(part)
            else:
                yield atom.name


class _Compared(Formula):
    """A symbol whose comparisons are formulas above 0 where the comparison holds."""

    def __mod__(self, other: Any) -> _Compared:
        rest = self - self // other * lift(other)
        return _Compared(rest.terms, rest.value)

    def __rmod__(self, other: Any) -> _Compared:
        return _Compared(lift(other).terms, lift(other).value) % self

    def __gt__(self, other: Any) -> Any:
        return self - other

    def __lt__(self, other: Any) -> Any:
        return lift(other) - self

    def __ne__(self, other: Any) -> Any:
        gap = self - other
        return (
            self if type(other) is int and other == 0 else gap * gap
        )  # a remainder is never negative

    __hash__ = Formula.__hash__


def _laws(model: Model, choices: list[Bits], own: list[Field], symbols: Symbols) -> Iterator[Law]:
    """The rules of a specification, asked on symbols."""
    offered, found = 3 in switches(model), dict[Any, Law]()
    for bits in choices:
        numbers = _symbols_of(own, symbols, experts=bits[3] == 1 or not offered)
        asked = {name: _Compared(s.terms, s.value) for name, s in numbers.items()}
        for left_out in (True, False) if "head_dim" in asked else (False,):
            spec = switched(model, bits)
            if left_out:
                spec = spec.model_copy(update={"head_dim": None})
            given = {n: s for n, s in asked.items() if not (left_out and n == "head_dim")}
            when = EXPERTS_ON * bits[3] + DEFAULT_HEAD_DIM * left_out
            for fit in rules.fits(placed(spec, given)):
                if isinstance(fit.broken, Formula) and fit.broken.constant is None:
                    key = (fit.field, fit.rule, fit.broken.text())
                    before = found[key].when if key in found else when
                    found[key] = Law(fit.field, fit.rule, fit.broken, before & when)
    yield from found.values()
