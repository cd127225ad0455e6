"""ModelSpec: what a person writes down about a model, checked once, at the door."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from paramcalc import rules, spelling

Count = Annotated[int, Field(strict=True, ge=1, le=rules.MOST_COUNT)]
"""How many of something there are: layers, heads, experts."""
CountOrNone = Annotated[int, Field(strict=True, ge=0, le=rules.MOST_COUNT)]
Size = Annotated[int, Field(strict=True, ge=1, le=rules.MOST_SIZE)]
"""A width in elements."""
Tokens = Annotated[int, Field(strict=True, ge=1, le=rules.MOST_TOKENS)]
"""A length in tokens."""
TokensOrNone = Annotated[int, Field(strict=True, ge=0, le=rules.MOST_TOKENS)]
Flag = Annotated[bool, Field(strict=True)]

if TYPE_CHECKING:
    from paramcalc.blocks import Block
    from paramcalc.sections import EncoderSpec, LatentSpec, LayerGroup, LayerSpec

    _Blocks: TypeAlias = "tuple[Block, ...]"
    _Latent: TypeAlias = "LatentSpec | None"
    _Pattern: TypeAlias = "tuple[LayerSpec, ...] | None"
    _Groups: TypeAlias = "tuple[LayerGroup, ...] | None"
    _Encoder: TypeAlias = "EncoderSpec | None"
else:
    _Blocks = _Latent = _Pattern = _Groups = _Encoder = Any


INNER = frozenset({"mla", "encoder", "layers", "pattern", "mtp"})
"""Fields that hold sections (``paramcalc.sections``)."""


class Section(BaseModel):
    """Frozen, unknown fields refused, short names and sizes such as ``8k`` understood.

    A section's schema is built when one is first read, and inner sections are validated here
    rather than through the outer schema: most models have none, and building all of them would
    cost every start as much as the rest of the program.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _spelling(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        fields = spelling.normalize(data)
        for name in fields.keys() & INNER:
            from paramcalc.sections import read_inner

            fields[name] = read_inner(name, fields[name])
        return fields


class LayerFields(Section):
    """Everything that may differ from layer to layer. What an inner section leaves out stays as in
    the section around it."""

    n_heads: Count | None = None
    n_kv_heads: Count | None = None
    head_dim: Size | None = None
    v_head_dim: Size | None = None
    attention: Flag | None = None
    attention_gate: Literal["none", "element", "head"] | None = None
    window: TokensOrNone | None = None
    chunk: TokensOrNone | None = None
    attention_bias: str | None = None
    qk_norm: Literal["none", "head", "per_head", "full"] | None = None
    qk_norm_bias: Flag | None = None
    sinks: Flag | None = None
    cross_attention: Flag | None = None
    mla: _Latent = None
    ffn: Flag | None = None
    d_ff: Size | None = None
    gated_ffn: Flag | None = None
    ffn_bias: Flag | None = None
    expert_bias: Flag | None = None
    n_experts: CountOrNone | None = None
    top_k: Count | None = None
    d_expert: Size | None = None
    n_shared_experts: CountOrNone | None = None
    d_shared: Size | None = None
    shared_gate: Flag | None = None
    router_bias: Flag | None = None
    router_correction: Literal["none", "parameter", "buffer"] | None = None
    norm: Literal["rms", "layer", "none"] | None = None
    norm_bias: Flag | None = None
    norms_per_layer: Annotated[int, Field(strict=True, ge=0, le=16)] | None = None
    blocks: _Blocks | None = None


class StackFields(LayerFields):
    """What a decoder and an encoder both have. An encoder inherits all of it but its own layers."""

    layers: _Groups = None
    positions: Literal["none", "learned"] | None = None
    n_positions: Tokens | None = None
    position_offset: Annotated[int, Field(strict=True, ge=0, le=rules.MOST_COUNT)] | None = None
    relative_buckets: Count | None = None
    embedding_norm: Flag | None = None
    final_norm: Flag | None = None


class About(Section):
    """Where a preset comes from: never part of the count."""

    source: str
    published: str | int | None = None
    where: str | None = None
    hub: tuple[str, ...] = ()
    note: str | None = None
    weights: str | None = None
    assumed: tuple[str, ...] = ()
    not_counted: tuple[str, ...] = ()
    keys_not_used: tuple[str, ...] = ()


class ModelSpec(StackFields):
    """A transformer language model, field by field. See ``docs/fields.md`` for each field.

    Defaults: ``head_dim = d_model / n_heads``, ``n_kv_heads = n_heads``, dense, ``d_ff`` 4 x
    d_model or, gated, 8/3 x d_model rounded up to ``ff_multiple_of``; no biases, RMSNorm, no
    learned positions, an untied head. ``gpt2`` turns on biases everywhere, LayerNorm with a bias
    and learned positions. ``blocks`` of a layer and ``outer`` ones are what no field spells: a
    family of ``config.json`` states them as objects with a ``rows`` method.

    Raises pydantic's ``ValidationError`` for a field that is unknown, out of range or at odds with
    another; ``paramcalc.load`` turns that into one line.
    """

    name: str | None = None
    d_model: Size
    n_layers: Annotated[int, Field(strict=True, ge=1, le=rules.MOST_LAYERS)]
    n_heads: Count | None = None
    vocab_size: Size
    context: Tokens | None = None
    tie_embeddings: Flag = False
    gpt2: Flag = False
    causal: Flag = True
    ff_multiple_of: Size = 256
    n_dense_layers: CountOrNone | None = None
    encoder: _Encoder = None
    embedding: Flag = True
    d_embedding: Size | None = None
    d_positions: Size | None = None
    projection_bias: Flag = False
    n_token_types: Count | None = None
    head: Literal["lm", "masked", "none"] = "lm"
    head_bias: Flag = False
    pooler: Flag = False
    share_layers: Flag = False
    outer: _Blocks = ()
    mtp: _Groups = None
    count_mtp: Flag = False
    about: About | None = None

    @property
    def writes(self) -> bool:
        """Whether the model writes tokens: where every token sees all others, it has no next."""
        return self.causal or self.encoder is not None

    @model_validator(mode="after")
    def _rules(self) -> ModelSpec:
        rules.check(self)
        return self
