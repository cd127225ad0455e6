"""The rules of a specification: fields that must fit together.

Each broken rule raises a ``ValueError`` whose text is ``field = value: rule; fix``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from paramcalc.layout import View, groups, sections_of
from paramcalc.spelling import fail, shown

if TYPE_CHECKING:
    from paramcalc.sections import EncoderSpec
    from paramcalc.spec import ModelSpec

MOST_LAYERS = 100_000
MOST_COUNT = 1_000_000
MOST_PERIOD = 500
MOST_SIZE = 1_000_000_000
MOST_TOKENS = 1_000_000_000_000


def check(spec: ModelSpec) -> None:
    """Raise ``ValueError`` for fields that are each fine and do not fit together."""
    _check_blocks(spec)
    if spec.name is not None and not (0 < len(spec.name) <= 80 and spec.name.isprintable()):
        fail("name", shown(spec.name), "must be plain text of 1 to 80 letters", "change it")
    _check_stack("", spec, spec)
    if spec.encoder is not None:
        if not spec.causal:
            fail("causal", "false", "an encoder-decoder's decoder is causal", "remove one of them")
        _check_stack("encoder.", spec.encoder, spec)
    dense = spec.n_dense_layers
    if dense is not None and spec.layers is not None:
        fail(
            "n_dense_layers",
            dense,
            "layers are already spelled group by group",
            "say n_experts: 0 in a group instead",
        )
    if spec.pooler and spec.causal:
        fail("pooler", "true", "belongs to an encoder", "set causal: false")
    kinds = [groups(stack, spec) for stack in (spec, spec.encoder) if stack is not None]
    if spec.share_layers and any(len(stack) > 1 for stack in kinds):
        fail("share_layers", "true", "needs layers of one kind", "remove layers")
    chunks = [group.view for group in groups(spec, spec) if group.view.limit("chunk") is not None]
    for view in chunks[1:]:
        if view.get("chunk") != chunks[0].get("chunk"):
            fail(
                view.where("chunk"),
                view.get("chunk"),
                f"chunks of {chunks[0].get('chunk')} stand in other layers",
                "use one size of chunk in a model",
            )
    for fit in fits(spec):
        if fit.broken:
            fail(fit.field, fit.value, *fit.explain())


def _check_blocks(spec: ModelSpec) -> None:
    stacks = [stack for stack in (spec, spec.encoder) if stack is not None]
    views = [group.view for stack in stacks for group in groups(stack, spec)]
    stated = [("outer", spec.outer), *((v.where("blocks"), v.get("blocks", ())) for v in views)]
    for where, blocks in stated:
        if type(blocks) is not tuple or not all(hasattr(b, "rows") for b in blocks):
            fail(where, shown(blocks), "blocks are objects", "write a config: section instead")


class Fit(NamedTuple):
    """A rule about sizes: which field, its value, whether it is broken, and the rule in words.

    On a spec of arrays ``value`` and ``broken`` are arrays; ``explain`` is for ints.
    """

    field: str
    value: Any
    broken: Any
    rule: str
    explain: Callable[[], tuple[str, str]]


def fits(spec: ModelSpec) -> Iterator[Fit]:
    """Yield every rule about sizes, in arithmetic that ints and arrays share."""
    dense, n = spec.n_dense_layers, spec.n_layers
    if dense is not None:
        yield Fit(
            "n_dense_layers",
            dense,
            dense > n,
            "n_dense_layers cannot exceed n_layers",
            lambda: (f"there are {n} layers", "lower it"),
        )
    stacks: list[ModelSpec | EncoderSpec] = [spec]
    if spec.encoder is not None:
        stacks.append(spec.encoder)
    for section in stacks:
        yield from _repeats(section, spec)
        for group in groups(section, spec):
            yield from _layer_fits(group.view, spec)


def _repeats(section: ModelSpec | EncoderSpec, spec: ModelSpec) -> Iterator[Fit]:
    if section.layers is None:
        return
    prefix = "" if section is spec else "encoder."
    stated = [g.repeat for g in section.layers if g.repeat is not None]
    total, n = sum(stated), section.n_layers
    open_ended = len(stated) < len(section.layers)
    yield Fit(
        f"{prefix}n_layers",
        n,
        total > n if open_ended else total != n,
        "n_layers must hold what the groups under layers repeat",
        lambda: (
            f"the groups under layers repeat {total} in all",
            "make them add up, or leave one group without repeat",
        ),
    )


def _layer_fits(view: View, spec: ModelSpec) -> Iterator[Fit]:
    d, heads, kv = spec.d_model, view.get("n_heads"), view.get("n_kv_heads")
    if not view.get("attention", True):
        heads = kv = None
    if kv is not None:
        yield Fit(
            view.where("n_kv_heads"),
            kv,
            heads % kv != 0,
            "n_kv_heads must divide n_heads",
            lambda: (f"must divide n_heads = {heads}", f"take one of {_near(heads, kv)}"),
        )
    plain = view.get("mla") is None or spec.encoder is not None  # cross attention always is
    if plain and heads is not None and view.get("head_dim") is None:
        yield Fit(
            view.where("n_heads"),
            heads,
            d % heads != 0,
            "n_heads must divide d_model",
            lambda: (
                f"must divide d_model = {d}",
                f"take one of {_near(d, heads)}, or give head_dim",
            ),
        )
    if view.is_moe and view.get("top_k") is not None:
        experts, k = view.get("n_experts"), view.get("top_k")
        yield Fit(
            view.where("top_k"),
            k,
            k > experts,
            "top_k cannot exceed n_experts",
            lambda: (f"cannot exceed n_experts = {experts}", f"take 1 to {experts}"),
        )


def _check_stack(prefix: str, section: ModelSpec | EncoderSpec, spec: ModelSpec) -> None:
    if section.layers is not None:
        _check_repeats(prefix, section)
    encoding = section is not spec or not spec.causal
    for group in groups(section, spec):
        _check_layer(group.view)
        if encoding and group.view.limit("chunk") is not None:
            fail(
                group.view.where("chunk"),
                group.view.get("chunk"),
                "chunks are of causal attention",
                "use window in an encoder",
            )
    view = View(*sections_of(section, spec))
    learned = view.get("positions", "learned" if spec.gpt2 else "none") == "learned"
    if learned and view.get("n_positions") is None and spec.context is None:
        fail(
            f"{prefix}positions",
            "learned",
            "a table of positions needs its length",
            "give context or n_positions",
        )


def _check_repeats(prefix: str, section: ModelSpec | EncoderSpec) -> None:
    for number, group in enumerate(section.layers or ()):
        period = sum(kind.repeat or 1 for kind in group.pattern or ())
        if period > MOST_PERIOD:
            fail(
                f"{prefix}layers.{number}.pattern",
                f"{period} layers",
                f"a pattern spells at most {MOST_PERIOD:,}",
                "shorten it",
            )
    stated = [g.repeat for g in section.layers or () if g.repeat is not None]
    open_ended = len(section.layers or ()) - len(stated)
    if open_ended > 1:
        fail(
            f"{prefix}layers",
            f"{open_ended} groups without repeat",
            "only one group can take the layers left over",
            "give the others a repeat",
        )


def _check_layer(view: View) -> None:
    if view.get("attention", True) and view.get("n_heads") is None:
        raise ValueError("n_heads: is required; add n_heads: ...")
    if view.get("mla") is not None:
        _check_latent(view)
    if view.limit("window") is not None and view.limit("chunk") is not None:
        fail(
            view.where("window"),
            view.get("window"),
            "a layer is either windowed or chunked",
            "remove window or chunk",
        )
    if view.is_moe and view.get("top_k") is None:
        fail(
            view.where("n_experts"),
            view.get("n_experts"),
            "a router needs to know how many work on a token",
            "give top_k",
        )


def _check_latent(view: View) -> None:
    mla = view.get("mla")
    sizes = [mla.index_n_heads, mla.index_head_dim]  # without them another layer's choice is used
    missing = mla.index_top_k is None or None in sizes
    if missing and any(size is not None for size in sizes):
        fail(
            "mla.index_n_heads",
            mla.index_n_heads,
            "an indexer has three sizes",
            "give index_n_heads, index_head_dim and index_top_k",
        )
    for field in ("window", "chunk", "n_kv_heads", "head_dim"):
        if view.limit(field) is not None:
            fail(
                view.where(field),
                view.get(field),
                "has no meaning with latent attention (mla)",
                f"remove {field}",
            )


def _near(total: int, wanted: int) -> str:
    """The divisors of ``total`` just below and above ``wanted``."""
    low = next((i for i in range(min(wanted, total), 0, -1) if total % i == 0), 1)
    high = next((i for i in range(wanted, min(total, wanted + 9_999) + 1) if total % i == 0), total)
    return f"{low}, {high}" if low != high else str(low)


_OF_EXPERTS = (
    "top_k",
    "d_expert",
    "expert_bias",
    "n_shared_experts",
    "d_shared",
    "shared_gate",
    "router_bias",
    "router_correction",
    "n_dense_layers",
)


def unused(spec: ModelSpec) -> list[str]:
    """Return the fields a spec states that its structure has no place for."""
    found = []
    if not any(group.view.is_moe for group in groups(spec, spec)):
        found += [name for name in _OF_EXPERTS if getattr(spec, name)]
    if spec.d_embedding is None and spec.projection_bias:
        found.append("projection_bias")
    if (spec.positions or ("learned" if spec.gpt2 else "none")) == "none":
        names = ("n_positions", "position_offset", "d_positions")
        found += [name for name in names if getattr(spec, name)]
    return found
