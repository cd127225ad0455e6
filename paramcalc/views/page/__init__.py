"""The calculator as one HTML file: no network, no library, every integer exact.

The formulas are those of the ledger (``figures``), written as JavaScript (``paramcalc.views.
script``); the page's own script reads the controls, sets the variables and shows what comes out.
A policy in the page lets nothing run or load but the one script and style inside it.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from pathlib import Path
from typing import Any

from paramcalc import __version__, formats
from paramcalc.errors import InputError
from paramcalc.ledger import ROLES
from paramcalc.model import Model
from paramcalc.symbolic import NAMES
from paramcalc.views.page import units
from paramcalc.views.page.fields import EXPERTS, SWITCHES, state, values
from paramcalc.views.page.figures import AT_ENDS, CHUNK, Structure, Symbols, signature, structure
from paramcalc.views.script import Script

FIGURES = [
    *(f"params_{role}" for role in ROLES),
    *(f"flops_{role}" for role in ROLES),
    *("ffn_matrices", "attention_matrices", "params", "active_params", "non_embedding_params"),
    *("matmul_flops_per_token", "attention_flops_per_token", "flops_per_token", "prefill_flops"),
    *("prefill_flops_all_pairs", "training_flops", "training_flops_6n"),
    *(f"weight_bytes_{name}" for name in formats.FORMATS),
    *("kv_bytes_per_token", "kv_bytes", units.PAGED, units.WORKSPACE, AT_ENDS, CHUNK),
]
"""What the page shows, and what it searches the crossing by; parts before the sums that hold
them."""
FIRST = "llama3-8b"
"""The model that the page opens with, where it is there."""
_HERE = Path(__file__).parent
_SCRIPTS = ("engine.js", "results.js", "controls.js")
_VARIABLES = {
    "batch": "B",
    "kv_bits": "b_kv",
    "gated_ffn": "gated",
    "tie_embeddings": "tied",
    units.STEP_TOKENS: "t_s",
    units.STEP_REQUESTS: "r_s",
}


def page(models: list[Model]) -> str:
    """Return the page of some models as HTML. Raises ``InputError`` for two of one name."""
    names = [model.name for model in models]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"model = {name}: given twice; leave one out, or rename it")
    script = Script(_variables(models))
    shared = _Shared()
    numbered: dict[str, int] = {}
    structures: list[dict[str, Any]] = []
    lists: list[list[str]] = []
    symbols = Symbols()
    keys = [signature(model) for model in models]
    extra = _extra(models, keys)
    own = list(dict.fromkeys(name for names_ in extra.values() for name in names_))
    figures = [*FIGURES, *(f"weight_bytes_{n}" for n in own), *map(units.padded, own)]
    entries = []
    for model, key in zip(models, keys, strict=True):
        if key not in numbered:
            numbered[key] = len(structures)
            found = structure(model, symbols, extra[key])
            structures.append(_written(found, figures, script, shared))
            lists.append([field.name for field in found.fields])
        entries.append(_entry(model, numbered[key], lists[numbered[key]]))
    data = {
        "models": entries,
        "first": names.index(FIRST) if FIRST in names else 0,
        "structures": structures,
        "fields": [json.loads(item) for item in shared.fields],
        "laws": [json.loads(item) for item in shared.laws],
        "figures": figures,
        "switches": SWITCHES,
        "roles": ROLES,
        "experts": EXPERTS,
        "dtypes": [*formats.FORMATS, *own],
        "kv": {name: fmt.bits for name, fmt in formats.KV_FORMATS.items()},
        **units.data([*formats.FORMATS, *own]),
    }
    return _filled(script.source(), data, names)


def _extra(models: list[Model], keys: list[str]) -> dict[str, tuple[str, ...]]:
    """The formats that models of each structure are released in, beside the catalogue's."""
    found: dict[str, list[str]] = {key: [] for key in keys}
    for model, key in zip(models, keys, strict=True):
        name = units.released(model)
        if name not in (*formats.FORMATS, *found[key]):
            found[key].append(name)
    return {key: tuple(names) for key, names in found.items()}


def _variables(models: list[Model]) -> dict[str, str]:
    """Short identifiers for the symbols: those of ``explain``."""
    found = dict(NAMES) | _VARIABLES
    for model in models:
        data = model.spec.model_dump(exclude_unset=True)
        found |= dict(_paths(data, ""))
    return found


def _paths(data: Any, where: str) -> list[tuple[str, str]]:
    """The short name of each field of inner sections, by its place."""
    items = data.items() if isinstance(data, dict) else enumerate(data)
    found: list[tuple[str, str]] = []
    for key, value in items:
        if isinstance(value, dict | list | tuple):
            found += _paths(value, f"{where}{key}.")
        elif where and key in NAMES:
            found.append((f"{where}{key}", NAMES[key]))
    return found


class _Shared:
    """What structures have in common, written once and called by its number."""

    def __init__(self) -> None:
        self.fields: dict[str, int] = {}
        self.laws: dict[str, int] = {}


def _number(known: dict[str, int], **item: Any) -> int:
    return known.setdefault(json.dumps(item), len(known))


def _written(
    found: Structure, figures: list[str], script: Script, shared: _Shared
) -> dict[str, Any]:
    """A structure as data: its formulas by their numbers in the script."""
    numbers: dict[str, int] = {}
    for key, formula in found.figures.items():
        numbers[key] = script.add(formula, dict.fromkeys(numbers.values()))
    return {
        "fields": [
            _number(
                shared.fields,
                name=f.name,
                most=f.most,
                tokens=f.tokens,
                fallback=script.add(found.defaults[f.name]) if f.defaulted else None,
            )
            for f in found.fields
        ],
        "switches": found.switches,
        "figures": [numbers.get(key) for key in figures],
        "laws": [
            _number(
                shared.laws, field=x.field, rule=x.rule, excess=script.add(x.excess), when=x.when
            )
            for x in found.laws
        ],
    }


def _entry(model: Model, place: int, fields: list[str]) -> dict[str, Any]:
    """A model as data: its numbers in the order of its structure's fields."""
    about = model.spec.about
    words = " ".join([model.name, *(about.hub if about else ())])
    words += " moe" if model.params.active != model.params.total else " dense"
    return {
        "name": model.name,
        "structure": place,
        "values": values(model, fields),
        "on": state(model.spec),
        "dtype": units.released(model),
        "params": str(model.params.total),
        "published": _published(model),
        "notes": _notes(model),
        "words": words.lower(),
    }


def _published(model: Model) -> str | None:
    about = model.spec.about
    if about is None or about.published is None:
        return None
    where = f" ({about.where})" if about.where else ""
    if isinstance(about.published, str):
        return f"Published for {model.name}: {about.published}{where}"
    gap = model.params.total - about.published
    beside = "equal" if gap == 0 else f"ours {gap:+,}"
    return f"Published for {model.name}: {about.published:,}, {beside}{where}"


def _notes(model: Model) -> list[str]:
    about = model.spec.about
    found = [about.note] if about and about.note else []
    found += [f"assumed: {what}" for what in model.assumed]
    if model.spec.context is None:
        found.append(f"assumed: a context of {model.context:,}, which nobody states")
    if units.released(model) != model.released_format:
        found.append(f"released as {model.released_format}, which is no formula: bf16 is shown")
    found += [f"not counted: {what}" for what in model.left_out]
    if model.unused_keys:
        found.append(f"keys not used: {', '.join(model.unused_keys[:20])}")
    return found


def _filled(formulas: str, data: dict[str, Any], names: list[str]) -> str:
    """The template with its parts in place, and the policy that admits these parts alone."""
    parts = [(_HERE / name).read_text(encoding="utf-8") for name in _SCRIPTS]
    text = safe_json(data)
    script = f'"use strict";\n{formulas}const DATA={text};\n{"".join(map(_bare, parts))}'
    style = _bare((_HERE / "page.css").read_text(encoding="utf-8"))
    policy = (
        "default-src 'none'; "
        f"script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    title = f"{names[0]}, counted" if len(names) == 1 else "paramcalc: the calculator"
    own = {
        "policy": policy,
        "title": html.escape(title),
        "style": style,
        "budget": str(data["budget"]),
        "version": html.escape(__version__),
        "script": script,
    }
    pieces = (_HERE / "page.html").read_text(encoding="utf-8").split("@")
    return "".join(own[piece] if i % 2 else piece for i, piece in enumerate(pieces))


def safe_json(value: Any) -> str:
    """Return JSON that is inert inside an HTML script, whatever a name holds."""
    text = json.dumps(value, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _bare(text: str) -> str:
    """Source without its indentation and comment lines."""
    lines = (line.strip() for line in text.splitlines())
    return "".join(f"{line}\n" for line in lines if line and not line.startswith("//"))


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
