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
    units: Num | None = None,
) -> Iterator[Tensor]:
    """Yield the (out, in) matrix, then its bias of ``out`` values if ``bias``.

    A bias after a column-split matrix is split with it; after a row-split one each rank has it.
    """
    yield Tensor(name, role, (out, into), "matmul", shard, copies, active, active, stream, units)
    if bias:
        yield Tensor(
            f"{name}.bias",
            role,
            (out,),
            "bias",
            _WITH_BIAS.get(shard, shard),
            copies,
            active,
            active,
            stream,
            units,
        )


_WITH_BIAS: dict[Shard, Shard] = {"row": "replicated", "expert+row": "expert"}
