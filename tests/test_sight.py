"""Each sight against counting the pairs one by one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paramcalc.sight import (
    Blocks,
    Both,
    BothChunk,
    BothCompressed,
    BothWindow,
    Causal,
    Chunk,
    Compressed,
    Sight,
    Sparse,
    Window,
    all_pairs,
)

CASES: list[tuple[Callable[[int], Sight], Callable[[int, int, int], bool]]] = [
    (lambda w: Causal(), lambda i, j, w: j <= i),
    (lambda w: Window(w), lambda i, j, w: j <= i and i - j < w),
    (lambda w: Chunk(w), lambda i, j, w: j <= i and i // w == j // w),
    (lambda w: Both(), lambda i, j, w: True),
    (lambda w: BothWindow(w), lambda i, j, w: abs(i - j) <= w // 2),
    (lambda w: BothChunk(w), lambda i, j, w: i // w == j // w),
]


@pytest.mark.parametrize(("make", "sees"), CASES)
@given(n=st.integers(1, 60), w=st.integers(1, 70))
def test_pairs_one_by_one(
    make: Callable[[int], Sight], sees: Callable[[int, int, int], bool], n: int, w: int
) -> None:
    assert make(w).pairs(n) == sum(sees(i, j, w) for i in range(n) for j in range(n))


@pytest.mark.parametrize(("make", "sees"), CASES[:3])
@given(n=st.integers(1, 60), w=st.integers(1, 70))
def test_positions_of_the_last_token(
    make: Callable[[int], Sight], sees: Callable[[int, int, int], bool], n: int, w: int
) -> None:
    assert make(w).positions(n) == sum(sees(n - 1, j, w) for j in range(n))


@given(n=st.integers(1, 60), k=st.integers(1, 70))
def test_sparse_sees_the_top_k_and_keeps_all(n: int, k: int) -> None:
    sight = Sparse(k)
    assert sight.pairs(n) == sum(min(i, k) for i in range(1, n + 1))
    assert sight.positions(n) == min(n, k)
    assert sight.kept(n) == n


@given(n=st.integers(1, 200), b=st.integers(1, 70), k=st.integers(1, 9))
def test_compressed_sees_whole_blocks(n: int, b: int, k: int) -> None:
    assert Compressed(b).pairs(n) == sum(i // b for i in range(1, n + 1))
    assert Compressed(b, k).pairs(n) == sum(min(i // b, k) for i in range(1, n + 1))
    assert Compressed(b).positions(n) == Compressed(b, k).kept(n) == n // b
    assert Compressed(b, k).positions(n) == min(n // b, k)
    assert all_pairs(Compressed(b, k), n) == n * (n // b)
    assert (Compressed(b).most, Compressed(b, k).most) == (None, k)


@given(n=st.integers(1, 200), b=st.integers(1, 70))
def test_an_encoder_sees_all_whole_blocks_or_its_own_chunk(n: int, b: int) -> None:
    sight = BothCompressed(b)
    assert sight.pairs(n) == all_pairs(sight, n) == n * sight.positions(n) == n * (n // b)
    assert sight.kept(n) == BothChunk(b).kept(n) == n
    assert (sight.most, BothChunk(b).most) == (None, b)
    assert BothChunk(b).positions(n) == min(n, b)
    assert all_pairs(BothChunk(b), n) == n * n


@given(n=st.integers(1, 200), b=st.integers(1, 30), k=st.integers(1, 9))
def test_blocks_are_the_own_one_and_the_best_before_it(n: int, b: int, k: int) -> None:
    sees = [min((i - 1) // b, k - 1) * b + (i - 1) % b + 1 for i in range(1, n + 1)]
    sight = Blocks(b, k)
    assert sight.pairs(n) == sum(sees)
    assert sight.positions(n) == sees[-1]
    assert sight.kept(n) == n
    assert max(sees) <= sight.most == b * k


def test_a_window_keeps_no_more_than_itself() -> None:
    assert [Window(4).kept(n) for n in (1, 4, 9)] == [1, 4, 4]
    assert [Chunk(4).kept(n) for n in (1, 4, 9)] == [1, 4, 4]
