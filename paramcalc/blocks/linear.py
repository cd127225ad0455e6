"""A linear map as rows: the matrix and, where there is one, its bias."""

from __future__ import annotations

from collections.abc import Iterator

from paramcalc.ledger import Role, Shard, Stream, Tensor
from paramcalc.numbers import Num


def linear(
    name: str,
    role: Role,
    out: Num,
    into: Num,
    *,
    bias: bool = False,
    shard: Shard = "replicated",
    copies: Num = 1,
    active: Num = 1,
    stream: Stream = "token",
) -> Iterator[Tensor]:
    """Yield the (out, in) matrix, then its bias of ``out`` values if ``bias``.

    A bias after a column-split matrix is split with it; after a row-split one it is replicated.
    """
    yield Tensor(name, role, (out, into), "matmul", shard, copies, active, active, stream)
    if bias:
        split: Shard = shard if shard.endswith("column") else "replicated"
        yield Tensor(f"{name}.bias", role, (out,), "bias", split, copies, active, active, stream)
