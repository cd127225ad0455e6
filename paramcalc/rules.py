"""The rules of a specification: spelling (short names, sizes such as 8k) and consistency.

Each broken rule raises a ``ValueError`` whose text is ``field = value: rule; fix``.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, NoReturn

from paramcalc.layout import View, groups

if TYPE_CHECKING:
    from pydantic import ValidationError

    from paramcalc.spec import EncoderSpec, ModelSpec

MOST_LAYERS = 100_000
MOST_COUNT = 1_000_000
MOST_SIZE = 1_000_000_000
MOST_TOKENS = 1_000_000_000_000

ALIASES = {
    "d": "d_model",
    "L": "n_layers",
    "layers_count": "n_layers",
    "H": "n_heads",
    "H_kv": "n_kv_heads",
    "kv": "n_kv_heads",
    "d_h": "head_dim",
    "ff": "d_ff",
    "V": "vocab_size",
    "vocab": "vocab_size",
    "E": "n_experts",
    "k": "top_k",
    "n": "context",
    "tie": "tie_embeddings",
    "gated": "gated_ffn",
}
"""Short names, accepted wherever a person types a field."""

TOKEN_FIELDS = frozenset(
    {"context", "n_positions", "window", "chunk", "index_top_k"}
)
"""Fields in which 1k is 1,024; everywhere else it is 1,000."""

_TEXT = frozenset(
    {"name", "label", "source", "published", "where", "note", "hub", "norm", "qk_norm"}
)
_SUFFIXES = {"k": 1, "m": 2, "b": 3, "g": 3, "t": 4}


def parse_size(text: str, *, tokens: bool = False) -> int:
    """Return the whole number that a text such as ``4096``, ``8k``, ``1.5M`` or ``7B`` stands for.

    With ``tokens`` a step is 1,024 (8k = 8,192), else 1,000. Raises ``ValueError`` if the text is
    no number or the result is not whole.
    """
    plain = text.strip().replace(",", "").replace("_", "")
    power = _SUFFIXES.get(plain[-1:].lower(), 0)
    number = plain[:-1] if power else plain
    try:
        value = Decimal(number)
    except InvalidOperation:
        raise ValueError(f"{text!r} is not a number; write it as 4096, 8k, 1.5M or 7B") from None
    if not value.is_finite() or value.adjusted() > 40:
        raise ValueError(f"{text!r} is too large to be a size")
    scaled = value * (1024 if tokens else 1000) ** power
    if scaled != scaled.to_integral_value():
        raise ValueError(f"{text!r} is not a whole number")
    return int(scaled)


def canonical(name: str) -> str:
    """Return the full name of a field that may be given by its short name."""
    return ALIASES.get(name, name)


def normalize(data: dict[Any, Any]) -> dict[str, Any]:
    """Return one section with full names, sizes as ints and biases as letters."""
    result: dict[str, Any] = {}
    for key, value in data.items():
        if not isinstance(key, str):
            _fail(str(key), "a field's name", "is not text", "quote it or remove it")
        name = canonical(key)
        if name in result:
            _fail(name, value, "stands twice, once under a short name", "keep one of them")
        if name == "attention_bias":
            value = _letters(value)
        elif isinstance(value, str) and name not in _TEXT and value[:1].isdigit():
            try:
                value = parse_size(value, tokens=name in TOKEN_FIELDS)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        result[name] = value
    return result


def _letters(value: Any) -> Any:
    """True, False or a list of q, k, v, o as one sorted string of letters."""
    if isinstance(value, bool):
        return "qkvo" if value else ""
    if isinstance(value, list | tuple | str) and all(isinstance(v, str) for v in value):
        return "".join(sorted(value, key=lambda v: "qkvo".find(v)))
    return value


def shown(value: object) -> str:
    """Return a value as short text for a message."""
    text = "none" if value is None else str(value)
    text = " ".join(text.split())
    return text if len(text) <= 40 else text[:37] + "..."


_RULES = {
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "string_type": "must be text",
    "greater_than_equal": "must be at least {ge:,}",
    "less_than_equal": "must be at most {le:,}",
    "literal_error": "must be one of {expected}",
    "string_pattern_mismatch": "must match {pattern}",
    "model_type": "must be a section of fields",
}
_FIXES = {
    "int_type": "write it as 4096 or 8k",
    "bool_type": "write true or false",
    "greater_than_equal": "raise it",
    "less_than_equal": "lower it",
    "model_type": "write field: value lines",
}


def explain(error: ValidationError, where: str = "") -> str:
    """Return a pydantic error as one line: ``field = value: rule; fix``, the first of them."""
    found = error.errors(include_url=False)
    first = found[0]
    kind, field = first["type"], ".".join(str(part) for part in first["loc"])
    if kind == "value_error":
        line = where + str(first["ctx"]["error"])
    elif kind == "extra_forbidden":
        line = f"{where}{field}: unknown field{_known(error.title, field)}"
    elif kind == "missing":
        line = f"{where}{field}: is required; add {field}: ..."
    else:
        rule = _RULES.get(kind, first["msg"]).format(**first.get("ctx", {}))
        fix = _FIXES.get(kind, "change it")
        line = f"{where}{field} = {shown(first['input'])}: {rule}; {fix}"
    more = len(found) - 1
    return line + (f" (and {more} more)" if more else "")


def _known(title: str, field: str) -> str:
    from paramcalc import spec
    from paramcalc.errors import did_you_mean

    near = did_you_mean(field, [*getattr(spec, title).model_fields, *ALIASES])
    return near or f"; {title} has {len(getattr(spec, title).model_fields)} fields, see docs/fields.md"


def _fail(field: str, value: object, rule: str, fix: str) -> NoReturn:
    raise ValueError(f"{field} = {value}: {rule}; {fix}")


def check(spec: ModelSpec) -> None:
    """Raise ``ValueError`` for fields that are each fine and do not fit together."""
    _check_stack("", spec, spec)
    if spec.encoder is not None:
        if not spec.causal:
            _fail("causal", "false", "an encoder-decoder's decoder is causal", "remove one of them")
        _check_stack("encoder.", spec.encoder, spec)
    dense = spec.n_dense_layers
    if dense is not None:
        if spec.layers is not None:
            _fail("n_dense_layers", dense, "layers are already spelled group by group",
                  "say n_experts: 0 in a group instead")
        if dense > spec.n_layers:
            _fail("n_dense_layers", dense, f"there are {spec.n_layers} layers", "lower it")
    if spec.pooler and spec.causal:
        _fail("pooler", "true", "belongs to an encoder", "set causal: false")
    if spec.share_layers and any(v.ranges[0][0] != 0 for v in groups(spec, spec)):
        _fail("share_layers", "true", "needs layers of one kind", "remove layers")


def _check_stack(prefix: str, section: ModelSpec | EncoderSpec, spec: ModelSpec) -> None:
    if section.layers is not None:
        _check_repeats(prefix, section)
    for group in groups(section, spec):
        where = prefix + (f"layers.{group.label}." if group.label else "")
        _check_layer(where, group.view, spec)
    view = View(section, spec)
    learned = view.get("positions", "learned" if spec.gpt2 else "none") == "learned"
    if learned and view.get("n_positions") is None and spec.context is None:
        _fail(f"{prefix}positions", "learned", "a table of positions needs its length",
              "give context or n_positions")


def _check_repeats(prefix: str, section: ModelSpec | EncoderSpec) -> None:
    stated = [g.repeat for g in section.layers or () if g.repeat is not None]
    open_ended = len(section.layers or ()) - len(stated)
    n = section.n_layers
    if open_ended > 1:
        _fail(f"{prefix}layers", f"{open_ended} groups without repeat",
              "only one group can take the layers left over", "give the others a repeat")
    if sum(stated) > n or (not open_ended and sum(stated) != n):
        _fail(f"{prefix}n_layers", n, f"the groups under layers repeat {sum(stated)} in all",
              "make them add up, or leave one group without repeat")


def _check_layer(where: str, view: View, spec: ModelSpec) -> None:
    heads, kv = view.get("n_heads"), view.get("n_kv_heads")
    if kv is not None and heads % kv:
        _fail(f"{where}n_kv_heads", kv, f"must divide n_heads = {heads}",
              f"take one of {_near(heads, kv)}")
    if view.get("mla") is None:
        if view.get("head_dim") is None and spec.d_model % heads:
            _fail(f"{where}n_heads", heads, f"must divide d_model = {spec.d_model}",
                  f"take one of {_near(spec.d_model, heads)}, or give head_dim")
    else:
        _check_latent(where, view)
    if view.get("window") is not None and view.get("chunk") is not None:
        _fail(f"{where}window", view.get("window"), "a layer is either windowed or chunked",
              "remove window or chunk")
    if view.is_moe:
        experts, k = view.get("n_experts"), view.get("top_k")
        if k is None:
            _fail(f"{where}n_experts", experts, "a router needs to know how many work on a token",
                  "give top_k")
        if k > experts:
            _fail(f"{where}top_k", k, f"cannot exceed n_experts = {experts}",
                  f"take 1 to {experts}")


def _check_latent(where: str, view: View) -> None:
    mla = view.get("mla")
    given = [mla.index_n_heads, mla.index_head_dim, mla.index_top_k]
    if any(g is None for g in given) and any(g is not None for g in given):
        _fail(f"{where}mla.index_n_heads", mla.index_n_heads, "an indexer has three sizes",
              "give index_n_heads, index_head_dim and index_top_k")
    for field in ("window", "chunk", "n_kv_heads", "head_dim"):
        if view.get(field) is not None:
            _fail(f"{where}{field}", view.get(field), "has no meaning with latent attention (mla)",
                  f"remove {field}")


def _near(total: int, wanted: int) -> str:
    """The divisors of ``total`` just below and above ``wanted``."""
    low = next((i for i in range(min(wanted, total), 0, -1) if total % i == 0), 1)
    high = next((i for i in range(wanted, min(total, 64 * wanted) + 1) if total % i == 0), total)
    return f"{low}, {high}" if low != high else str(low)


def place(data: dict[str, Any], name: str, value: Any) -> None:
    """Set a field of nested sections by its dotted name, such as ``layers.0.window``.

    Raises ``ValueError`` if the way there does not exist.
    """
    *way, last = [canonical(part) for part in name.split(".")]
    here: Any = data
    for i, part in enumerate(way):
        if isinstance(here, list | tuple) and part.isdecimal() and int(part) < len(here):
            here = here[int(part)]
        elif isinstance(here, dict) and isinstance(here.get(part), dict | list | tuple):
            here = here[part]
        elif isinstance(here, dict) and part in ("mla", "encoder") and here.get(part) is None:
            here = here.setdefault(part, {})
        else:
            raise ValueError(f"{name}: there is no section {'.'.join(way[: i + 1])}; check the name")
    if not isinstance(here, dict):
        raise ValueError(f"{name}: {'.'.join(way)} is a list; name an entry by its number")
    here[last] = value
