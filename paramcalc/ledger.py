"""The ledger: a model as a list of rows, and the sums over them.

Three kinds of row exist, and no quantity knows anything else about an architecture:

* ``Tensor``: weights, with shape, copies, active copies, use and shard rule;
* ``Operation``: work that has no weights of its own (attention scores and their weighted sum);
* ``Cache``: what a sequence leaves behind for its next token.

A row counts one block when a block yields it, and the whole model once ``times`` has multiplied it
by the layers that hold the block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from typing import Literal, NamedTuple, TypeAlias, get_args

from paramcalc.numbers import Num
from paramcalc.sight import Chunk, Sight, State, Window

Role: TypeAlias = Literal[
    "embedding",
    "position",
    "attention",
    "mixer",
    "ffn",
    "router",
    "residual",
    "norm",
    "head",
    "tower",
]
"""What a tensor is part of. A ``mixer`` is a recurrent, linear or convolutional one (Mamba, delta
nets); ``residual`` is what adds layers to the stream (hyper-connections, AltUp); a ``tower``
reads images or sound."""

Use: TypeAlias = Literal["matmul", "lookup", "scale", "bias", "conv", "buffer"]
"""How a tensor enters the forward pass; only ``matmul`` and ``conv`` cost FLOPs under this
package's rule, and a ``buffer`` is stored in a checkpoint without being a parameter."""

Stream: TypeAlias = Literal["token", "source", "sequence", "tower"]
"""What a row runs on: each token, each token of an encoder's input, once a sequence, or what a
tower of another modality reads (no part of a text's FLOPs)."""

CacheKind: TypeAlias = Literal["full", "window", "chunk", "latent", "state", "cross"]
"""How a layer's cache grows: with every position, up to a window or chunk, as one latent a
position, not at all (a recurrent state), or with an encoder's positions."""

Shard: TypeAlias = Literal[
    "column", "kv", "row", "vocab", "expert+column", "expert+row", "expert", "replicated"
]
"""How tensor and expert parallelism split a tensor: by outputs, inputs, tokens or experts; ``kv``
is ``column`` whose heads are copied where there are more ranks than heads."""

ROLES: tuple[Role, ...] = get_args(Role)


class Tensor(NamedTuple):
    """Weights of one shape.

    ``shape`` is (out, in) for a matrix. ``copies`` are stored; ``active`` of them are used for any
    one token (top-k experts); ``runs`` is how many times a token is multiplied by one: equal to
    ``active`` except for a tied head (stored 0, run 1) and shared layers (stored 1, run L times).
    ``units`` is what ranks may share out (heads); None for single rows or columns.
    """

    name: str
    role: Role
    shape: tuple[Num, ...]
    use: Use = "matmul"
    shard: Shard = "replicated"
    copies: Num = 1
    active: Num = 1
    runs: Num = 1
    stream: Stream = "token"
    units: Num | None = None

    @property
    def elements(self) -> Num:
        """Elements of one copy."""
        return prod(self.shape)

    @property
    def params(self) -> Num:
        """Stored parameters: copies x elements (0 for a buffer)."""
        return self.copies * self.elements if self.use != "buffer" else 0

    @property
    def active_params(self) -> Num:
        """Parameters used for one token: active copies x elements (0 for a buffer)."""
        return self.active * self.elements if self.use != "buffer" else 0

    @property
    def stored(self) -> Num:
        """Elements a checkpoint holds: parameters and buffers alike."""
        return self.copies * self.elements

    @property
    def flops(self) -> Num:
        """Forward FLOPs of one run, a multiply-add counted as 2; 0 unless it multiplies."""
        return 2 * self.runs * self.elements if self.use in ("matmul", "conv") else 0

    def times(self, count: Num, prefix: str, stream: Stream, shared: bool) -> Tensor:
        """Return this row for ``count`` layers; shared ones are stored once and all run."""
        stored = 1 if shared else count
        return self._replace(
            name=prefix + self.name,
            copies=self.copies * stored,
            active=self.active * stored,
            runs=self.runs * count,
            stream=stream if self.stream == "token" else self.stream,
        )


class Operation(NamedTuple):
    """Work between positions: ``flops_per_pair`` for each (token, position it sees) pair.

    ``copies`` are the layers it runs in; ``role`` names the component it is part of.
    """

    name: str
    role: Role
    flops_per_pair: Num
    sight: Sight
    copies: Num = 1
    stream: Stream = "token"

    def times(self, count: Num, prefix: str, stream: Stream, shared: bool) -> Operation:
        """Return this row for ``count`` layers; sharing weights does not share work."""
        return self._replace(name=prefix + self.name, copies=self.copies * count, stream=stream)


class Cache(NamedTuple):
    """What is kept for the next token: ``per_position`` elements for each position kept.

    ``of`` names what a sight does not tell: that it is a ``latent``, or ``cross`` attention's.
    ``units`` is what ranks may share out (heads); None where each rank keeps the whole.
    """

    name: str
    per_position: Num
    sight: Sight
    copies: Num = 1
    of: CacheKind | None = None
    units: Num | None = None

    @property
    def kind(self) -> CacheKind:
        """How it grows."""
        return self.of or _KINDS.get(type(self.sight), "full")

    def elements(self, n: Num) -> Num:
        """Elements kept in all layers after a sequence of ``n`` tokens."""
        return self.copies * self.per_position * self.sight.kept(n)

    def times(self, count: Num, prefix: str, stream: Stream, shared: bool) -> Cache:
        """Return this row for ``count`` layers; every layer keeps its own cache."""
        return self._replace(name=prefix + self.name, copies=self.copies * count)


_KINDS: dict[type, CacheKind] = {Window: "window", Chunk: "chunk", State: "state"}

Row: TypeAlias = Tensor | Operation | Cache


class LayerRows(NamedTuple):
    """The rows of one layer of a kind, and which layers are of that kind.

    ``ranges`` are (first, stop, step) triples of layer numbers; ``stack`` is empty for the decoder;
    ``shared`` layers are stored once and run ``n_layers`` times; ``tower`` is encoder or decoder.
    """

    stack: str
    label: str
    n_layers: Num
    ranges: tuple[tuple[Num, Num, Num], ...]
    rows: tuple[Row, ...]
    stream: Stream = "token"
    shared: bool = False
    tower: str = "decoder"

    @property
    def prefix(self) -> str:
        """What the names of its rows start with, such as ``encoder.layers.moe.*.``."""
        return ".".join(p for p in (self.stack, "layers", self.label, "*") if p) + "."

    def all_rows(self) -> Iterator[Row]:
        """Yield the rows multiplied by the layers that hold them."""
        prefix = self.prefix
        for row in self.rows:
            yield row.times(self.n_layers, prefix, self.stream, self.shared)


class Ledger(NamedTuple):
    """All rows of a model. ``outer`` rows stand once, outside any layer.

    ``apart`` are layers that a checkpoint holds beside the model (multi-token prediction): no part
    of ``rows``.
    """

    outer: tuple[Row, ...]
    layers: tuple[LayerRows, ...]
    rows: tuple[Row, ...]
    apart: tuple[LayerRows, ...] = ()

    @classmethod
    def of(
        cls, outer: Iterable[Row], layers: Iterable[LayerRows], apart: Iterable[LayerRows] = ()
    ) -> Ledger:
        """Make a ledger, with ``rows`` flattened once."""
        outer, layers = tuple(outer), tuple(layers)
        rows = outer + tuple(r for kind in layers for r in kind.all_rows())
        return cls(outer, layers, rows, tuple(apart))

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The rows with weights."""
        return tuple(r for r in self.rows if isinstance(r, Tensor))

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The rows of work between positions."""
        return tuple(r for r in self.rows if isinstance(r, Operation))

    @property
    def caches(self) -> tuple[Cache, ...]:
        """The rows kept for the next token."""
        return tuple(r for r in self.rows if isinstance(r, Cache))
