"""Options that commands share: overrides of a model's fields, and the way of output."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paramcalc.errors import InputError

if TYPE_CHECKING:
    from paramcalc.model import Model

MOST_TEXT = 262_145
"""Characters read from standard input: a specification is a page."""


def complete_models(incomplete: str) -> list[str]:
    """Return the presets that start with what was typed."""
    from paramcalc.sources.presets import names

    return [name for name in names() if name.startswith(incomplete)]


def complete_kv_formats(incomplete: str) -> list[str]:
    """Return the formats of a cache that start with what was typed."""
    from paramcalc.formats import KV_FORMATS

    return [name for name in KV_FORMATS if name.startswith(incomplete)]


def complete_conventions(incomplete: str) -> list[str]:
    """Return the FLOPs conventions that start with what was typed."""
    from paramcalc.quantities.conventions import CONVENTIONS

    return [name for name in (*CONVENTIONS, "all") if name.startswith(incomplete)]


def _size(*spellings: str, says: str) -> Any:
    return typer.Option(*spellings, metavar="SIZE", help=says)


ModelName = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A preset, a YAML file, a config.json or its folder.",
        autocompletion=complete_models,
    ),
]
Like = Annotated[
    str | None,
    typer.Option("--like", metavar="TYPE", help="Read a config.json of an unknown type as TYPE."),
]
Arch = Annotated[
    str | None,
    typer.Option("--arch", metavar="CLASS", help="Count this class, not the file's architectures."),
]
Mtp = Annotated[bool, typer.Option("--mtp", help="Count multi-token-prediction layers too.")]
D = Annotated[str | None, _size("--d", says="d_model, the width of the stream.")]
Layers = Annotated[str | None, _size("--layers", "-L", says="Number of layers.")]
Heads = Annotated[str | None, _size("--heads", "-H", says="Number of query heads.")]
Kv = Annotated[str | None, _size("--kv", says="Number of key/value heads.")]
HeadDim = Annotated[str | None, _size("--head-dim", says="Width of a head.")]
Ff = Annotated[str | None, _size("--ff", says="d_ff, the width of the feed-forward part.")]
Vocab = Annotated[str | None, _size("--vocab", "-V", says="Size of the vocabulary.")]
Experts = Annotated[str | None, _size("--experts", "-E", says="Experts a layer; 0 is dense.")]
TopK = Annotated[str | None, _size("--top-k", "-k", says="Experts that work on a token.")]
Context = Annotated[str | None, _size("--context", "-n", says="Tokens in context; 1k is 1,024.")]
Tie = Annotated[bool | None, typer.Option("--tie/--no-tie", help="Tie the head to the embedding.")]
Gpt2 = Annotated[
    bool | None,
    typer.Option("--gpt2/--no-gpt2", help="Biases, LayerNorm, learned positions."),
]
Gated = Annotated[
    bool | None, typer.Option("--gated/--no-gated", help="A gated FFN (three matrices).")
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="FIELD=VALUE",
        help="Any other field (window=4096, mla.kv_lora_rank=512), or a key of the config.json.",
    ),
]
Batch = Annotated[str, typer.Option("--batch", metavar="N", help="Sequences in the KV cache.")]
KvDtype = Annotated[
    str,
    typer.Option(
        "--kv-dtype",
        metavar="DTYPE",
        help="Format of the KV cache.",
        autocompletion=complete_kv_formats,
    ),
]
As = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="NAME",
        help="FLOPs as another tool counts them: palm, megatron, ...; all lists them.",
        autocompletion=complete_conventions,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON with raw integers.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV with raw integers.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print Markdown, raw integers.")]


def overrides(
    sizes: dict[str, str | None], flags: dict[str, bool | None], sets: list[str] | None
) -> dict[str, Any]:
    """Return the fields a command line changes. Raises ``InputError`` for a value that is none."""
    fields: dict[str, Any] = {}
    for name, text in sizes.items():
        if text is not None:
            fields[name] = size(name, text)
    fields |= {name: flag for name, flag in flags.items() if flag is not None}
    pairs = assigned(sets, "must be field=value; write --set window=4096")
    return fields | {name: _value(text) for name, text in pairs}


def assigned(sets: list[str] | None, rule: str) -> list[tuple[str, str]]:
    """Return the name and text of each ``--set``. Raises ``InputError`` with the rule."""
    found = []
    for item in sets or []:
        name, equals, text = item.partition("=")
        if not equals or not name:
            raise InputError(f"--set {item}: {rule}")
        found.append((name.strip(), text.strip()))
    return found


def size(name: str, text: str) -> int:
    """Return a typed size as an int; 1k is 1,024 for a length in tokens. Raises ``InputError``."""
    from paramcalc.spelling import TOKEN_FIELDS, parse_size

    try:
        return parse_size(text, tokens=name in TOKEN_FIELDS)
    except ValueError as error:
        raise InputError(f"{name} = {text}: {error}") from None


def positive(name: str, text: str) -> int:
    """Return ``size`` of a text that must be at least 1. Raises ``InputError``."""
    value = size(name, text)
    if value < 1:
        raise InputError(f"{name} = {text}: must be at least 1; raise it")
    return value


def _value(text: str) -> Any:
    """Return a typed value as YAML reads it: a number, true, none, a list or text."""
    from paramcalc.sources.yaml_file import parse

    return parse(f"value: {text}", "--set")["value"]


def load(
    name: str,
    fields: dict[str, Any],
    like: str | None = None,
    arch: str | None = None,
    *,
    mtp: bool = False,
) -> tuple[Model, Model | None]:
    """Return the model with its overrides, and the model as it was (None without overrides).

    ``mtp`` counts layers of multi-token prediction in both.
    ``-`` reads a specification or a config.json from standard input.
    """
    from paramcalc.sources.loading import load as load_model
    from paramcalc.sources.loading import model_of

    if name == "-":
        from paramcalc.sources.yaml_file import parse

        data = parse(sys.stdin.read(MOST_TEXT), "-")
        base = model_of(data, "-", name="model", like=like, arch=arch)
    else:
        base = load_model(name, like=like, arch=arch)
    say_shadowed(name)
    if mtp:
        base = base.with_(count_mtp=True)
    if not fields:
        return base, None
    return base.with_(**fields), base


def say_shadowed(name: str) -> None:
    """Write a note where a preset was taken and a folder of the same name was not."""
    from paramcalc.sources.loading import is_shadowed
    from paramcalc.views import output

    if is_shadowed(name):
        output.say(f"note: {name} is the preset of that name; for the folder write ./{name}")


def kept(base: Model | None, fields: dict[str, Any]) -> list[str]:
    """Return the places that state an overridden field themselves and keep it."""
    from paramcalc.spelling import canonical, stated_inside

    if base is None:
        return []
    data = base.spec.model_dump(exclude_unset=True)
    return [
        place + name
        for name in map(canonical, fields)
        if data.get(name) is not None
        for place, _ in stated_inside(data, name)
    ]


def idle(model: Model, base: Model | None, fields: dict[str, Any]) -> list[str]:
    """Return the overridden fields without which the model would have the same ledger."""
    if base is None:
        return []
    found = []
    for name in fields.keys() - {"context", "name", "about"}:
        try:
            without = base.with_(**{k: v for k, v in fields.items() if k != name})
        except InputError:  # the others need it
            continue
        if without.ledger.rows == model.ledger.rows:
            found.append(name)
    return found


def say_notes(*models: Model) -> None:
    """Write to standard error what a reader must know beside the figures of models, under each
    one's name where there are several."""
    from paramcalc.views import output

    for model in models:
        name = f"{model.name}: " if len(models) > 1 else ""
        for line in notes(model):
            output.say(f"note: {name}{line}")


def notes(model: Model) -> list[str]:
    """Return what a reader of a count must know beside it (``views.summary.notes``)."""
    from paramcalc.views import summary

    return summary.notes(model)


def one_of(json: bool, csv: bool, markdown: bool) -> str:
    """Return the one way of output that was asked for. Raises ``InputError`` for two."""
    asked = [name for name, on in (("json", json), ("csv", csv), ("markdown", markdown)) if on]
    if len(asked) > 1:
        raise InputError(f"--{asked[0]} and --{asked[1]}: only one way of output; choose one")
    return asked[0] if asked else "terminal"
