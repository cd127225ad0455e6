"""The numbers of a model as cells: each field the spec states, by name, with its limits.

A person types into ``m1_d_model``; ``u1_d_model`` holds what is in use, which is the same while it
is right. A spec is placed on symbols that are called as the latter, and the ledger's counting code
runs on it once. A default of the card (``head_dim``, ``d_ff``, ``n_kv_heads``) is a cell too: a
formula, which a number may replace.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

from paramcalc import rules
from paramcalc.build import default_d_ff, default_head_dim, ledger_of, plan
from paramcalc.deploy.columns import fits as fits_on_gpus
from paramcalc.errors import InputError
from paramcalc.layout import is_literal
from paramcalc.ledger import Ledger
from paramcalc.model import Model
from paramcalc.sections import has_blocks
from paramcalc.spec import ModelSpec
from paramcalc.spelling import TOKEN_FIELDS, stated_inside
from paramcalc.symbolic import NAMES
from paramcalc.symbols import Formula, symbol
from paramcalc.views.conditions import Condition, Live

MOST_WIDTH = 4_000_000
"""The widest dimension that a cell may hold: matrices stay where ``INT`` is exact."""
MOST_COUNT = 100_000
MOST_TOKENS = 10**9
MOST_BATCH = 2**24
"""Sequences at once: the chain of squares for experts has this many binary digits."""
MOST_GPUS = 1_000_000
FIELDS = (*NAMES, "repeat", "position_offset")
"""Fields whose numbers become cells."""
_COUNTS = frozenset(
    {
        "n_layers",
        "n_heads",
        "n_kv_heads",
        "n_experts",
        "top_k",
        "n_shared_experts",
        "n_dense_layers",
        "n_token_types",
        "relative_buckets",
        "index_n_heads",
        "repeat",
        "position_offset",
    }
)
_MEANING = {
    "d_model": "width of the residual stream",
    "n_layers": "layers",
    "n_heads": "query heads; must divide d_model where head_dim is the default",
    "n_kv_heads": "key and value heads (GQA; 1 is MQA); must divide n_heads",
    "head_dim": "width of a head",
    "v_head_dim": "width of a value head",
    "d_ff": "hidden width of the feed-forward part",
    "vocab_size": "rows of the token table",
    "n_experts": "routed experts a layer",
    "top_k": "experts that work on a token; at most n_experts",
    "d_expert": "hidden width of an expert",
    "d_shared": "hidden width of the shared expert",
    "n_shared_experts": "experts that every token passes",
    "context": "tokens that the model was made for; also the length of a table of positions",
    "window": "tokens that a layer sees, itself included",
    "chunk": "attention inside chunks of so many tokens",
    "n_dense_layers": "first layers without experts",
    "n_positions": "rows of the table of positions",
    "position_offset": "rows added to the table of positions",
    "n_token_types": "segments",
    "relative_buckets": "rows of the table of relative positions",
    "d_embedding": "width of the token table",
    "d_positions": "width of the table of positions",
    "q_lora_rank": "width of the compressed query",
    "kv_lora_rank": "width of the compressed keys and values",
    "qk_nope_head_dim": "width of a head without positions",
    "qk_rope_head_dim": "width of a head's rotary part, one for all heads",
    "index_n_heads": "heads of the indexer",
    "index_head_dim": "width of a head of the indexer",
    "index_top_k": "positions that the indexer picks",
    "repeat": "layers of this group",
}


class Input(NamedTuple):
    """A cell of a model: the field's path (as ``--set`` takes it), the name of the value in use
    and of the cell that is typed into, its value and limits; ``default`` is its formula where the
    spec leaves the field out."""

    path: str
    name: str
    cell: str
    value: int
    low: int
    high: int
    unit: str
    note: str
    default: Formula | None = None


class Rule(NamedTuple):
    """A rule of the spec as a condition of cells: in words, and what breaks it."""

    text: str
    broken: Condition


class Placed:
    """A model on symbols: ``spec`` and ``ledger`` call each number by its cell's name.

    Where layers are blocks that no field spells (Mamba, Gemma 3n, ...), their numbers are fixed:
    ``fixed`` is true, the fields are shown and only the deployment is live. Raises ``InputError``
    for a number that is too large for a cell.
    """

    def __init__(self, model: Model, number: int) -> None:
        self.model = model
        self.prefix, self.used = f"m{number}_", f"u{number}_"
        self.fixed = has_blocks(model.spec)
        self.inputs: dict[str, Input] = {}
        self._names: set[str] = set()
        spec = model.spec
        for path, value in _numbers(spec):
            self._add(path, value)
        self.defaults = _defaults(spec) if not self.fixed else {}
        for field, make in self.defaults.items():
            self._add(field, make(spec), cast(Formula, make(self._swap(spec, self._symbol))))
        self.spec: ModelSpec = spec
        if not self.fixed:
            self.spec = self._swap(spec, self._symbol)
            self.spec = self.spec.model_copy(
                update={field: self._symbol(field, 0) for field in self.defaults}
            )
        self.ledger: Ledger = ledger_of(plan(self.spec))

    def _add(self, path: str, value: int, default: Formula | None = None) -> None:
        field = path.rpartition(".")[2]
        key = re.sub(r"\W+", "_", path)
        while key in self._names:
            key += "_"
        self._names.add(key)
        name, cell = (self.prefix if self.fixed else self.used) + key, self.prefix + key
        tokens = field in TOKEN_FIELDS
        most = MOST_TOKENS if tokens else MOST_COUNT if field in _COUNTS else MOST_WIDTH
        if field in ("n_positions",):
            most = MOST_WIDTH  # rows of a table
        if value > most:
            raise InputError(
                f"{path} = {value:,}: a workbook takes up to {most:,}, where its divisions are"
                f" exact; lower it, or leave {self.model.name} out"
            )
        unit = "tokens" if tokens else "" if field in _COUNTS else "elements"
        low = 0 if field == "position_offset" else 1
        note = _MEANING.get(field, "")
        if default is not None:
            note += " (the default, a formula; a number may replace it)"
        self.inputs[path] = Input(path, name, cell, value, low, most, unit, note, default)

    def _symbol(self, path: str, value: int) -> Formula:
        own = self.inputs[path]
        return symbol(own.name, own.value)

    def _swap(self, spec: ModelSpec, make: Callable[[str, int], Any]) -> ModelSpec:
        found: ModelSpec = swapped(spec, make, "")
        return found

    @property
    def limits(self) -> dict[str, int]:
        """The most that each named number may be."""
        return {own.name: own.high for own in self.inputs.values()}

    def rules(self) -> Iterator[Rule]:
        """Yield the rules about sizes as conditions of cells."""
        if self.fixed:
            return
        spec = self._live_spec()
        for fit in rules.fits(spec):
            broken = fit.broken
            if not isinstance(broken, Condition) or _cannot_break(broken):
                continue
            if fit.rule == "n_heads must divide d_model" and "head_dim" in self.inputs:
                default = self.inputs["head_dim"]
                if default.default is not None:  # a head_dim that was typed needs no rule
                    own = Live(symbol(default.name, default.value))
                    broken = broken & (own == default.default)
            yield Rule(f"{fit.rule}{_place(fit.field)}", broken)

    def rules_of_gpus(self, gpus: Formula, tp: Formula) -> Iterator[Rule]:
        """Yield the rules of sharing the model out over GPUs as conditions of cells."""
        spec = self.spec if self.fixed else self._live_spec(filled=True)
        for fit in fits_on_gpus(ledger_of(plan(spec)), Live(gpus), Live(tp)):
            if isinstance(fit.broken, Condition):
                yield Rule(fit.rule, fit.broken)

    def _live_spec(self, *, filled: bool = False) -> ModelSpec:
        def live(path: str, value: int) -> Live:
            return Live(self._symbol(path, value))

        spec = self._swap(self.model.spec, live)
        names = [n for n in self.defaults if filled or n == "n_kv_heads"]
        return spec.model_copy(update={name: live(name, 0) for name in names})


def _cannot_break(broken: Condition) -> bool:
    """Whether a condition asks for a size below 0."""
    return broken.sign == "<" and broken.right.constant == 0


def _place(field: str) -> str:
    place = field.rpartition(".")[0]
    return f" ({place})" if place else ""


def _defaults(spec: ModelSpec) -> dict[str, Callable[[ModelSpec], Any]]:
    """The defaults of the card that a spec leaves out, each as arithmetic on the spec.

    Where an inner section changes what a default is made from, it has no cell of its own.
    """
    data = spec.model_dump(exclude_unset=True, exclude={"outer"}, warnings=False)
    latent = spec.mla is not None or any(stated_inside(data, "mla"))
    found: dict[str, Callable[[ModelSpec], Any]] = {}
    if spec.n_heads is not None and not latent and not any(stated_inside(data, "n_heads")):
        if spec.n_kv_heads is None:
            found["n_kv_heads"] = lambda s: s.n_heads
        if spec.head_dim is None:
            found["head_dim"] = lambda s: default_head_dim(s.d_model, cast(int, s.n_heads))
    if spec.d_ff is None and not any(stated_inside(data, "gated_ffn")) and spec.ffn is not False:
        gated = bool(spec.gated_ffn)
        found["d_ff"] = lambda s: default_d_ff(s.d_model, gated, s.ff_multiple_of)
    return found


def _is_number(field: str, value: Any) -> bool:
    return field in FIELDS and type(value) is int and not is_literal(value, 0)


def _numbers(section: Any, path: str = "") -> Iterator[tuple[str, int]]:
    """Yield the path and value of each number that a section and those inside it state."""
    inner = []
    for field in type(section).model_fields:
        value = getattr(section, field)
        if field == "repeat" and ".pattern." in path:
            continue  # how often a kind stands in a pattern is structure
        if _is_number(field, value):
            yield path + field, value
        elif field in ("mla", "encoder") and value is not None:
            inner.append((value, f"{path}{field}."))
        elif field in ("layers", "pattern") and value is not None:
            own = {place: part for part, place in zip(value, _places(field, value), strict=True)}
            inner += [(part, f"{path}{place}.") for place, part in own.items()]
    for part, place in inner:
        yield from _numbers(part, place)


def _places(field: str, parts: tuple[Any, ...]) -> list[str]:
    """The place of each section of a list; equal kinds of one pattern are the first of them."""
    found: list[str] = []
    stated: list[dict[str, Any]] = []
    for number, part in enumerate(parts):
        own = {name: getattr(part, name) for name in type(part).model_fields if name != "repeat"}
        same = stated.index(own) if field == "pattern" and own in stated else number
        stated.append(own)
        found.append(f"{field}.{same}")
    return found


def swapped(section: Any, make: Callable[[str, int], Any], path: str) -> Any:
    """A copy of a section whose numbers are what ``make`` gives for their path and value."""
    update: dict[str, Any] = {}
    for field in type(section).model_fields:
        value = getattr(section, field)
        if field == "repeat" and ".pattern." in path:
            continue
        if _is_number(field, value):
            update[field] = make(path + field, value)
        elif field in ("mla", "encoder") and value is not None:
            update[field] = swapped(value, make, f"{path}{field}.")
        elif field in ("layers", "pattern") and value is not None:
            places = zip(value, _places(field, value), strict=True)
            update[field] = tuple(swapped(part, make, f"{path}{own}.") for part, own in places)
    return section.model_copy(update=update)
