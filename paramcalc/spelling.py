"""Spelling: short names, sizes such as 8k, biases as letters, and pydantic's errors as one line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

from paramcalc.errors import printable

if TYPE_CHECKING:
    from pydantic import ValidationError

ALIASES = {
    "d": "d_model",
    "L": "n_layers",
    "heads": "n_heads",
    "experts": "n_experts",
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
    {"context", "n_positions", "window", "chunk", "index_top_k", "prompt", "output"}
)
"""Fields in which 1k is 1,024; everywhere else it is 1,000."""

_TEXT = frozenset(
    {"name", "label", "source", "published", "where", "note", "hub", "norm", "qk_norm"}
)
MOST_PLACES = 60
"""Decimal places of a size; more cannot be whole."""
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+\D*")
_SUFFIXES = {"k": 1, "m": 2, "b": 3, "g": 3, "t": 4}


def parse_size(text: str, *, tokens: bool = False) -> int:
    """Return the whole number that a text such as ``4096``, ``8k``, ``1.5M`` or ``7B`` stands for.

    With ``tokens`` a step is 1,024 (8k = 8,192), else 1,000. Raises ``ValueError`` if the text is
    no number or the result is not whole.
    """
    plain = text.strip().replace("_", "")
    if _THOUSANDS.fullmatch(plain):
        plain = plain.replace(",", "")
    power = _SUFFIXES.get(plain[-1:].lower(), 0)
    number = plain[:-1] if power else plain
    try:
        value = Decimal(number)
    except InvalidOperation:
        value = None
    if value is None or value.is_nan() or not number.isascii():  # Decimal reads other scripts too
        raise ValueError(f"{text!r} is not a number; write it as 4096, 8k, 1.5M or 7B")
    if not value.is_finite() or value.adjusted() > 40:
        raise ValueError(f"{text!r} is too large to be a size")
    if int(value.as_tuple().exponent) > -MOST_PLACES:  # a Fraction of more would take long to make
        scaled = Fraction(value) * (1024 if tokens else 1000) ** power
        if scaled.denominator == 1:
            return int(scaled)
    raise ValueError(f"{text!r} is not a whole number")


def canonical(name: str) -> str:
    """Return the full name of a field that may be given by its short name."""
    return ALIASES.get(name, name)


def normalize(data: dict[Any, Any]) -> dict[str, Any]:
    """Return one section with full names, sizes as ints and biases as letters."""
    result: dict[str, Any] = {}
    for key, value in data.items():
        if not isinstance(key, str):
            fail(str(key), "a field's name", "is not text", "quote it or remove it")
        name = canonical(key)
        if name in result:
            fail(name, value, "stands twice, once under a short name", "keep one of them")
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
    """True, False or a list of q, k, v, o as one string of letters in that order."""
    if isinstance(value, bool):
        return "qkvo" if value else ""
    given = value
    if isinstance(value, str):
        value = [letter for letter in value if letter not in ", "]
    if isinstance(value, list | tuple) and all(isinstance(v, str) for v in value):
        letters = "".join(letter for letter in "qkvgo" if letter in value)
        if len(letters) == len(value):
            return letters
    if value is not None:
        fail("attention_bias", shown(given), "must be letters of qkvo", "write [q, k, v]")
    return None


def shown(value: object) -> str:
    """Return a value as short text for a message."""
    text = "none" if value is None else str(value)
    text = printable(" ".join(text.split()))
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
    found.sort(key=lambda e: e["type"] != "extra_forbidden")  # a misspelt field is missing too
    first = found[0]
    kind, field = first["type"], ".".join(str(part) for part in first["loc"])
    missing = [str(e["loc"][-1]) for e in found if e["type"] == "missing"]
    if kind == "value_error":
        line = where + str(first["ctx"]["error"])
    elif kind == "missing":
        names = ", ".join(missing)
        verb = "is" if len(missing) == 1 else "are"
        return f"{where}{names}: {verb} required; add {missing[0]}: ..."
    elif kind == "extra_forbidden":
        line = f"{where}{field}: unknown field{_known(error.title, field)}"
    else:
        rule = _RULES.get(kind, first["msg"]).format(**first.get("ctx", {}))
        fix = _FIXES.get(kind, "change it")
        line = f"{(where + field).rstrip('.')} = {shown(first['input'])}: {rule}; {fix}"
    more = len(found) - 1
    return line + (f" (and {more} more)" if more else "")


def _known(title: str, field: str) -> str:
    from paramcalc import sections, spec
    from paramcalc.errors import did_you_mean

    kind = getattr(spec, title, None) or getattr(sections, title)
    near = did_you_mean(field, [*kind.model_fields, *ALIASES])
    return near or "; paramcalc show --help lists the card"


def fail(field: str, value: object, rule: str, fix: str) -> NoReturn:
    """Raise ``ValueError`` with field, value, rule and fix on one line."""
    raise ValueError(f"{field} = {value}: {rule}; {fix}")


def place(data: dict[str, Any], name: str, value: Any) -> None:
    """Set a field of nested sections by its name, such as ``window`` or ``layers.0.window``.

    A plain name means the model's own field; where only inner sections state it (the window of
    Gemma's sliding layers), it means those. Raises ``ValueError`` if there is no such section.
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
            raise ValueError(
                f"{name}: there is no section {'.'.join(way[: i + 1])}; check the name"
            )
    if not isinstance(here, dict):
        raise ValueError(f"{name}: {'.'.join(way)} is a list; name an entry by its number")
    stating = [] if way or data.get(last) is not None else list(stated_inside(data, last))
    for _, section in stating or [("", here)]:
        section[last] = value


def stated_inside(data: dict[str, Any], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place and fields of each inner section that states a field itself."""
    for number, group in enumerate(data.get("layers") or ()):
        yield from _stating(f"layers.{number}.", group, name)
        for entry, kind in enumerate(group.get("pattern") or ()):
            yield from _stating(f"layers.{number}.pattern.{entry}.", kind, name)
    encoder = data.get("encoder")
    if isinstance(encoder, dict):
        yield from _stating("encoder.", encoder, name)
        for where, section in stated_inside(encoder, name):
            yield f"encoder.{where}", section


def _stating(
    where: str, section: dict[str, Any], name: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    if section.get(name) is not None:
        yield where, section
