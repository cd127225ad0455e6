"""What can be changed on the page: the numbers of a specification, its switches, and their rules.

A number becomes a symbol and a switch a choice between two structures. Names are those that
``Model.with_`` takes, so that the page and the program can be asked the same question.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple, get_args

from paramcalc.errors import InputError
from paramcalc.model import Model, changed
from paramcalc.rules import MOST_SIZE
from paramcalc.sections import EncoderSpec, LatentSpec, has_blocks
from paramcalc.spec import ModelSpec
from paramcalc.spelling import TOKEN_FIELDS, stated_inside
from paramcalc.symbolic import NAMES

CARD = (
    *("d_model", "n_layers", "n_heads", "n_kv_heads", "head_dim", "d_ff", "vocab_size"),
    *("n_experts", "top_k", "context", "batch"),
)
"""The fields that every model has, in the order of the page."""
SWITCHES = ("gated_ffn", "tie_embeddings", "gpt2", "experts")
"""Switches; ``experts`` says whether ``n_experts`` is more than 0, which is structure too."""
DEFAULTED = ("n_kv_heads", "head_dim", "d_ff")
"""Fields that may be left out: their default is a formula of other fields."""
EXPERTS = {"n_experts": 8, "top_k": 2}
"""What a dense model gets when it is given experts (Mixtral's)."""

Bits = tuple[int, ...]
"""One bit a switch."""


class Field(NamedTuple):
    """A number: its name, whether it may be left out, its limits, and if it counts tokens."""

    name: str
    defaulted: bool
    least: int
    most: int
    tokens: bool


def fields(model: Model) -> list[Field]:
    """Return the numbers of a model that may change: the card's, then what else it states.

    Layers made of blocks that no field spells do not follow the card: only the context and the
    batch are left.
    """
    if has_blocks(model.spec):
        return [_field("context"), _field("batch")]
    found = [_field(name) for name in (*_card(model.spec), *_more(model.spec))]
    if SWITCHES.index("experts") in switches(model):
        return found
    data = model.spec.model_dump(exclude_unset=True)
    return [f for f in found if f.name not in EXPERTS or _value(model, data, f.name)]


def values(model: Model, names: list[str]) -> list[int | None]:
    """Return what a model states for each name; None for a default or what it has not."""
    data = model.spec.model_dump(exclude_unset=True)
    return [_value(model, data, name) for name in names]


def _value(model: Model, data: dict[str, Any], name: str) -> int | None:
    if name == "context":
        return model.context
    if name == "batch":
        return 1
    here: Any = data
    for part in name.split("."):
        here = here[int(part)] if isinstance(here, list | tuple) else here.get(part)
    if here is None:
        here = next((s[name] for _, s in stated_inside(data, name)), None)
    if name == "n_experts" and here is None:
        return 0
    return here if type(here) is int else None


def _card(spec: ModelSpec) -> Iterator[str]:
    data = spec.model_dump(exclude_unset=True)
    for name in CARD:
        if spec.mla is not None and name in ("n_kv_heads", "head_dim"):
            continue  # latent attention has its own widths
        if data.get(name) is None and not _is_one(data, name):
            continue
        yield name


def _is_one(data: dict[str, Any], name: str) -> bool:
    """Whether a field that only inner sections state, if any does, is one number in all of them.

    Then its plain name means all of them; a 0 among them is a switch.
    """
    inside = {section[name] for _, section in stated_inside(data, name)}
    if name in DEFAULTED:  # a default of the model's own would reach layers that have others
        others = {"head_dim": ("n_heads", "mla"), "d_ff": ("gated_ffn",)}.get(name, ())
        return not inside and not any(_states(data, other) for other in others)
    return not inside or (len(inside) == 1 and 0 not in inside)


def _states(data: dict[str, Any], name: str) -> bool:
    return any(True for _ in stated_inside(data, name))


def _more(spec: ModelSpec) -> Iterator[str]:
    """The other numbers that the specification states: its own, then those of inner sections."""
    data = spec.model_dump(exclude_unset=True)
    plain = [name for name in NAMES if name not in CARD]
    joined = []
    for name in plain:
        stated = [s[name] for _, s in stated_inside(data, name)]
        if data.get(name) or (data.get(name) is None and stated and _is_one(data, name)):
            joined.append(name)
    yield from joined
    for where, name in _inner(data, ""):
        if name not in joined or data.get(name) is not None:
            yield where + name


def _inner(data: dict[str, Any], where: str) -> Iterator[tuple[str, str]]:
    """The numbers of inner sections: their place and name. A 0 is a switch."""
    for key, value in data.items():
        if key in ("about", "mtp"):
            continue
        if isinstance(value, dict):
            yield from _inner(value, f"{where}{key}.")
        elif isinstance(value, list | tuple):
            for i, item in enumerate(value):
                if isinstance(item, dict):
                    yield from _inner(item, f"{where}{key}.{i}.")
        elif where and key in NAMES and type(value) is int and value:
            yield where, key


def _field(name: str) -> Field:
    last = name.rpartition(".")[2]
    most = MOST_SIZE if name == "batch" else _most(last)
    least = 0 if name == "n_experts" else 1
    return Field(name, name in DEFAULTED, least, most, last in TOKEN_FIELDS)


def _most(name: str) -> int:
    """The largest value that a field of a specification takes."""
    kind = next(k for k in (ModelSpec, LatentSpec, EncoderSpec) if name in k.model_fields)
    info = kind.model_fields[name]
    found = [getattr(m, "le", None) for m in _marks(info.annotation, info.metadata)]
    return next((int(limit) for limit in found if limit is not None), MOST_SIZE)


def _marks(annotation: Any, metadata: Any) -> Iterator[Any]:
    for mark in metadata:
        yield mark
        yield from getattr(mark, "metadata", ())
    for inner in get_args(annotation):
        yield from _marks(inner, getattr(inner, "__metadata__", ()))


def state(spec: ModelSpec) -> Bits:
    """Return a specification's switches as bits."""
    return (int(bool(spec.gated_ffn)), int(spec.tie_embeddings), int(spec.gpt2), _has(spec))


def _has(spec: ModelSpec) -> int:
    return int(bool(spec.n_experts))


def switched(model: Model, bits: Bits) -> ModelSpec:
    """Return a model's specification with its switches as the bits say. Raises ``InputError``."""
    spec = model.spec.model_copy(update={"context": model.context})
    wanted: dict[str, Any] = {}
    for name, bit, now in zip(SWITCHES, bits, state(spec), strict=True):
        if bit != now and name == "experts":
            wanted |= EXPERTS if bit else {"n_experts": 0}
        elif bit != now:
            wanted[name] = bool(bit)
    if not wanted:
        return spec
    beside = {"mtp": spec.mtp}  # blocks of a family's own, which no dump of fields carries over
    return changed(spec.model_copy(update={"mtp": None}), wanted).model_copy(update=beside)


@lru_cache(maxsize=1)  # asked several times of one model in a row, and each answer costs checks
def switches(model: Model) -> tuple[int, ...]:
    """Return which switches a model can have either way, by their place in ``SWITCHES``.

    A switch that inner sections set on their own is theirs.
    """
    spec = model.spec
    if has_blocks(spec):
        return ()
    data = spec.model_dump(exclude_unset=True)
    now = state(spec)
    found = []
    for place, name in enumerate(SWITCHES):
        field = "n_experts" if name == "experts" else name
        if data.get(field) is None and _states(data, field):
            continue
        try:
            switched(model, tuple(b ^ (i == place) for i, b in enumerate(now)))
        except InputError:
            continue
        found.append(place)
    return tuple(found)
