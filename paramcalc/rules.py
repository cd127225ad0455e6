"""The rules of a specification: fields that must fit together.

Each broken rule raises a ``ValueError`` whose text is ``field = value: rule; fix``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paramcalc.layout import View, groups, sections_of
from paramcalc.spelling import fail

if TYPE_CHECKING:
    from paramcalc.sections import EncoderSpec
    from paramcalc.spec import ModelSpec

MOST_LAYERS = 100_000
MOST_COUNT = 1_000_000
MOST_PERIOD = 1_000
MOST_SIZE = 1_000_000_000
MOST_TOKENS = 1_000_000_000_000


def check(spec: ModelSpec) -> None:
    """Raise ``ValueError`` for fields that are each fine and do not fit together."""
    _check_stack("", spec, spec)
    if spec.encoder is not None:
        if not spec.causal:
            fail("causal", "false", "an encoder-decoder's decoder is causal", "remove one of them")
        _check_stack("encoder.", spec.encoder, spec)
    dense = spec.n_dense_layers
    if dense is not None:
        if spec.layers is not None:
            fail(
                "n_dense_layers",
                dense,
                "layers are already spelled group by group",
                "say n_experts: 0 in a group instead",
            )
        if dense > spec.n_layers:
            fail("n_dense_layers", dense, f"there are {spec.n_layers} layers", "lower it")
    if spec.pooler and spec.causal:
        fail("pooler", "true", "belongs to an encoder", "set causal: false")
    if spec.share_layers and len(groups(spec, spec)) > 1:
        fail("share_layers", "true", "needs layers of one kind", "remove layers")


def _check_stack(prefix: str, section: ModelSpec | EncoderSpec, spec: ModelSpec) -> None:
    if section.layers is not None:
        _check_repeats(prefix, section)
    for group in groups(section, spec):
        _check_layer(group.view, spec)
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
    n = section.n_layers
    if open_ended > 1:
        fail(
            f"{prefix}layers",
            f"{open_ended} groups without repeat",
            "only one group can take the layers left over",
            "give the others a repeat",
        )
    if sum(stated) > n or (not open_ended and sum(stated) != n):
        fail(
            f"{prefix}n_layers",
            n,
            f"the groups under layers repeat {sum(stated)} in all",
            "make them add up, or leave one group without repeat",
        )


def _check_layer(view: View, spec: ModelSpec) -> None:
    heads, kv = view.get("n_heads"), view.get("n_kv_heads")
    if kv is not None and heads % kv:
        fail(
            view.where("n_kv_heads"),
            kv,
            f"must divide n_heads = {heads}",
            f"take one of {_near(heads, kv)}",
        )
    if view.get("mla") is None:
        if view.get("head_dim") is None and spec.d_model % heads:
            fail(
                view.where("n_heads"),
                heads,
                f"must divide d_model = {spec.d_model}",
                f"take one of {_near(spec.d_model, heads)}, or give head_dim",
            )
    else:
        _check_latent(view)
    if view.get("window") is not None and view.get("chunk") is not None:
        fail(
            view.where("window"),
            view.get("window"),
            "a layer is either windowed or chunked",
            "remove window or chunk",
        )
    if view.is_moe:
        experts, k = view.get("n_experts"), view.get("top_k")
        if k is None:
            fail(
                view.where("n_experts"),
                experts,
                "a router needs to know how many work on a token",
                "give top_k",
            )
        if k > experts:
            fail(
                view.where("top_k"),
                k,
                f"cannot exceed n_experts = {experts}",
                f"take 1 to {experts}",
            )


def _check_latent(view: View) -> None:
    mla = view.get("mla")
    given = [mla.index_n_heads, mla.index_head_dim, mla.index_top_k]
    if any(g is None for g in given) and any(g is not None for g in given):
        fail(
            "mla.index_n_heads",
            mla.index_n_heads,
            "an indexer has three sizes",
            "give index_n_heads, index_head_dim and index_top_k",
        )
    for field in ("window", "chunk", "n_kv_heads", "head_dim"):
        if view.get(field) is not None:
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
