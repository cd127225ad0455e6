"""A spec with symbols in place of its numbers."""

from __future__ import annotations

from typing import Any, cast

from paramcalc.build import default_d_ff, default_head_dim
from paramcalc.layout import View, is_literal
from paramcalc.numbers import Num
from paramcalc.spec import ModelSpec
from paramcalc.spelling import stated_inside
from paramcalc.symbols import Formula, symbol

NAMES = {
    "d_model": "d",
    "n_layers": "L",
    "n_heads": "H",
    "n_kv_heads": "H_kv",
    "head_dim": "d_h",
    "v_head_dim": "d_v",
    "d_ff": "d_ff",
    "vocab_size": "V",
    "n_experts": "E",
    "top_k": "k",
    "d_expert": "d_e",
    "d_shared": "d_s",
    "n_shared_experts": "E_s",
    "context": "n",
    "window": "W",
    "chunk": "C",
    "n_dense_layers": "L_dense",
    "n_positions": "n_pos",
    "n_token_types": "T",
    "relative_buckets": "b",
    "d_embedding": "d_emb",
    "d_positions": "d_pos",
    "q_lora_rank": "r_q",
    "kv_lora_rank": "r_kv",
    "qk_nope_head_dim": "d_nope",
    "qk_rope_head_dim": "d_rope",
    "index_n_heads": "H_i",
    "index_head_dim": "d_i",
    "index_top_k": "k_i",
}
"""The card's symbols; a field that is not here stays a number."""


class _Names:
    """Gives each value its symbol; the same name with another value gets its section's name."""

    def __init__(self) -> None:
        self.taken: dict[str, int] = {}

    def give(self, field: str, value: int, where: str) -> Formula:
        name = NAMES[field]
        if self.taken.setdefault(name, value) != value:
            name = f"{name}[{where}]"
            while self.taken.setdefault(name, value) != value:
                name = f"{name[:-1]}']"
        return symbol(name, value)


def symbolic(spec: ModelSpec, n: int) -> tuple[ModelSpec, Num]:
    """Return the spec on symbols, default sizes written out, and the symbol of the context n."""
    names = _Names()
    context = cast(Num, names.give("context", n, ""))
    return _symbolic(_filled(spec), names, ""), context


def legend(spec: ModelSpec, n: int) -> list[tuple[str, str, int]]:
    """Return (symbol, field, value) for each number the spec states."""
    names = _Names()
    names.give("context", n, "")
    _symbolic(_filled(spec), names, "")
    fields = {short: field for field, short in reversed(NAMES.items())}
    found = []
    for name, value in names.taken.items():
        short, bracket, place = name.partition("[")
        found.append((name, fields[short] + bracket + place, value))
    return found


def _filled(spec: ModelSpec) -> ModelSpec:
    """A spec with its default sizes written out, so that each gets a symbol of its own.

    Where an inner section changes what a default is made from, it stays a formula of its own.
    """
    data = spec.model_dump(exclude_unset=True)
    fill: dict[str, Any] = {}
    inner = {name for name in ("n_heads", "gated_ffn", "mla") if any(stated_inside(data, name))}
    heads = None if inner & {"n_heads", "mla"} else spec.n_heads
    if spec.head_dim is None and spec.mla is None and heads is not None:
        fill["head_dim"] = default_head_dim(spec.d_model, heads)
    if spec.d_ff is None and "gated_ffn" not in inner:
        fill["d_ff"] = default_d_ff(spec.d_model, bool(spec.gated_ffn), spec.ff_multiple_of)
    return spec.model_copy(update=fill)


def _symbolic(section: Any, names: _Names, where_: str) -> Any:
    """A copy of a section with its numbers replaced by symbols, inner sections too."""
    update: dict[str, Any] = {}
    for field in type(section).model_fields:
        value = getattr(section, field)
        if field in NAMES and type(value) is int and not is_literal(value, 0):
            update[field] = names.give(field, value, where_)
        elif field in ("mla", "encoder") and value is not None:
            update[field] = _symbolic(value, names, field)
        elif field in ("layers", "pattern") and value is not None:
            update[field] = tuple(
                _symbolic(v, names, v.label or _trait(v, i)) for i, v in enumerate(value)
            )
    return section.model_copy(update=update)


def _trait(section: Any, place: int) -> str:
    attention, _ = View(("", section)).traits()
    if attention != "full":
        return attention
    return "dense" if is_literal(section.n_experts, 0) else str(place)
