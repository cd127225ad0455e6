"""Routing: how the tokens of a batch fall on experts, expected and drawn.

A routing is one share an expert: the probability that a token goes there. Shares sum to k, and
none is above 1, since a token takes an expert once. Tokens choose independently, so the load of an
expert is Binomial(T, share), whatever one token's choices have to do with each other: that is all
that the expectations here need. Drawn batches do need a rule for one token's k choices:
systematic sampling over experts in random order (Madow 1949), which keeps every share exactly and
for even shares makes each set of k experts as likely as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from fractions import Fraction
from itertools import accumulate
from math import isqrt

from paramcalc.errors import InputError
from paramcalc.numbers import ceil_div

EXACT_BITS = 1 << 14
"""Up to so many bits a weight of the distribution is an exact integer, expectations exact."""
_ALL_BITS = 1 << 17
"""The same of all experts together, whose expectations are added up."""
SCALE_BITS = 160
"""Above that the weight of the most likely load is 2^160 and all others are rounded down to
integers; expectations are then within 2^-60 of a token (for at most ``MOST_TOKENS``)."""
_RESULT = 1 << 64
WIDE = 16
"""Standard deviations beyond which no load is looked at, where there are many tokens."""
LEAST_DEVIATION = 100
"""From here on that is so: exp(-16^2 / 2 / (1 + 16 / 300)) is 2^-175."""
FLAT = 3
MOST_LOADS = 6 * 10**6
"""That are added up: two seconds."""
MOST_TOKENS = 1 << 26
"""Tokens of one batch: 67 million, above any batch that was published."""
MOST_SKEW = 10

_UNIT_BITS = 40
_ORDERS = 64
_PLACES = 1 << 20
"""Of choices that are looked up for a batch: many experts share fewer orders."""


def even(n_experts: int, top_k: int) -> tuple[Fraction, ...]:
    """Return the shares where each token takes k distinct experts at random: k / E each."""
    return (Fraction(top_k, n_experts),) * n_experts


def zipf(n_experts: int, exponent: Fraction) -> tuple[int, ...]:
    """Return Zipf weights 1 / rank^exponent of experts 1 to E, to 48 bits; 0 is even."""
    return tuple(max(1, round(2.0**48 * i ** -float(exponent))) for i in range(1, n_experts + 1))


def shares(weights: Sequence[Fraction | int], top_k: int) -> tuple[Fraction, ...]:
    """Return the shares proportional to weights, those that would pass 1 held there.

    Raises ``InputError`` for a negative weight, or fewer than ``top_k`` positive ones.
    """
    if any(w < 0 for w in weights):
        raise InputError(f"loads = {min(weights)}: must not be negative; raise it")
    positive = sum(1 for w in weights if w)
    if positive < top_k:
        raise InputError(
            f"loads = {positive} experts with a load: a token takes {top_k}; give more a load"
        )
    full: set[int] = set()
    order = sorted(range(len(weights)), key=lambda i: weights[i], reverse=True)
    rest = Fraction(sum(weights))
    for i in order:  # the heaviest first: once one fits, all lighter ones do
        if weights[i] * (top_k - len(full)) <= rest:
            break
        full.add(i)
        rest -= weights[i]
    left = top_k - len(full)
    return tuple(
        Fraction(1) if i in full else Fraction(w) * left / rest if w else Fraction(0)
        for i, w in enumerate(weights)
    )


def expected(
    tokens: int, share: Fraction, *values: Callable[[int], int], among: int = 1
) -> tuple[Fraction, ...]:
    """Return the expectation of each function of an expert's load, Binomial(tokens, share).

    Exact where the weights stay under ``EXACT_BITS`` bits (fewer ``among`` many shares), else to
    ``SCALE_BITS``.
    """
    bits = min(EXACT_BITS, _ALL_BITS // among)
    exact = tokens * share.denominator.bit_length() <= bits
    first, weights = _distribution(tokens, share, exact)
    total = sum(weights)
    sums = [sum(value(first + i) * w for i, w in enumerate(weights)) for value in values]
    if exact:
        return tuple(Fraction(s, total) for s in sums)
    return tuple(Fraction((s * _RESULT + total // 2) // total, _RESULT) for s in sums)


def expected_loads(
    tokens: int, share: Fraction, capacity: int, block: int, among: int = 1
) -> tuple[Fraction, Fraction, Fraction]:
    """Return what an expert is expected to drop over its ``capacity``, its rows in whole blocks,
    and the chance of a token, as ``expected`` does.

    Many tokens are not added up load by load. With a standard deviation s, a load off its mean by
    ``WIDE`` s has a chance below 2^-170 (Bernstein), so that it is 0 or over capacity or neither
    for certain. Where a load in its block falls is even, to B exp(-8 s^2 / B^2) at most (the
    binomial's characteristic function at multiples of 2 pi / B): with s at ``FLAT`` blocks
    rounding up adds (B - 1) / 2 on average, to 2^-80.
    """
    mean = tokens * share
    variance = mean * (1 - share)
    if not _is_wide(variance, block):
        dropped, rows, touched = expected(
            tokens,
            share,
            lambda load: max(0, load - capacity),
            lambda load: ceil_div(load, block) * block,
            bool,
            among=among,
        )
        return dropped, rows, touched
    over = mean - capacity
    if over * over < WIDE**2 * variance:
        (dropped,) = expected(tokens, share, lambda load: max(0, load - capacity))
    else:
        dropped = max(over, Fraction(0))
    return dropped, mean + Fraction(block - 1, 2), Fraction(1)


def _is_wide(variance: Fraction, block: int) -> bool:
    return variance >= max(LEAST_DEVIATION, FLAT * block) ** 2


def check_work(tokens: int, shares: Collection[Fraction], block: int) -> None:
    """Raise ``InputError`` where ``expected_loads`` of so many different shares takes too long."""
    variances = [tokens * share * (1 - share) for share in shares]
    loads = sum(
        min(tokens, 2 * WIDE * (isqrt(int(variance)) + 1))
        for variance in variances
        if not _is_wide(variance, block)
    )
    if loads > MOST_LOADS:
        raise InputError(
            f"tokens = {tokens:,}: {loads:,} loads of {len(shares):,} unequal experts would be"
            " added up; lower it or --block"
        )


def _distribution(tokens: int, share: Fraction, exact: bool) -> tuple[int, list[int]]:
    """The smallest load of any weight, and the weights of it and those above.

    Each weight follows from its neighbour: w(x + 1) = w(x) (T - x) p / ((x + 1) (1 - p)). Exact
    ones start at load 0 with the denominator's power, and every division is without remainder;
    scaled ones start at the most likely load and end where they round to 0.
    """
    a, b = share.numerator, share.denominator - share.numerator
    if not a or not b:
        return (tokens if a else 0), [1]
    start = 0 if exact else (tokens + 1) * a // (a + b)
    seed = b**tokens if exact else 1 << SCALE_BITS
    above, w = [seed], seed
    for x in range(start, tokens):
        w = w * ((tokens - x) * a) // ((x + 1) * b)
        if not w:
            break
        above.append(w)
    below, w = [], seed
    for x in range(start, 0, -1):
        w = w * (x * b) // ((tokens - x + 1) * a)
        if not w:
            break
        below.append(w)
    return start - len(below), [*reversed(below), *above]


def draw(tokens: int, shares: Sequence[Fraction], seed: int, draws: int) -> list[list[int]]:
    """Return the loads of every expert in ``draws`` batches; each batch's loads sum to T k.

    Up to 64 orders of the experts (fewer of thousands) are drawn a batch, each for an equal part of
    its tokens: every load stays Binomial(T, share), and only how two experts' loads hang together
    is coarser. The same seed gives the same loads under the same NumPy.
    """
    import numpy as np

    unit = 1 << _UNIT_BITS
    bounds = [round(edge * unit) for edge in accumulate(shares)]
    sizes = np.diff(np.array([0, *bounds], dtype=np.int64))
    steps = np.arange(1, bounds[-1] // unit + 1, dtype=np.int64) * unit
    rng = np.random.default_rng(seed)
    orders = max(1, min(tokens, _ORDERS, _PLACES // (len(sizes) * max(1, len(steps)))))
    found = []
    for _ in range(draws):
        loads = np.zeros(len(sizes), dtype=np.int64)
        for number in range(orders):
            part = tokens // orders + (number < tokens % orders)
            order = rng.permutation(len(sizes))
            ends = np.cumsum(sizes[order])
            if part <= len(sizes):
                starts = rng.integers(0, unit, part)
                times = np.ones(part, dtype=np.int64)
            else:  # from one of these starts to the next the choices are the same
                starts = np.unique(np.mod(-ends, unit))
                times = rng.multinomial(part, np.diff(starts, append=unit) / unit)
            chosen = order[np.searchsorted(ends, steps - starts[:, None])]
            np.add.at(loads, chosen, times[:, None])
        found.append([int(load) for load in loads])
    return found


def balance_loss(loads: Sequence[Fraction | int], probabilities: Sequence[Fraction]) -> Fraction:
    """Return the auxiliary load-balancing loss E x sum f_i P_i, without its coefficient.

    Switch Transformer (arXiv:2101.03961) eq. 4 to 6, f_i the part of the routed tokens that goes
    to expert i. For k > 1 that part is of all T k assignments, as in Megatron-LM and DeepSpeed, so
    that an even routing is 1 for every k; the transformers library takes f_i over T tokens, which
    is k where this is 1. ``probabilities`` are the router's means P_i and sum to 1.
    """
    total = sum(loads)
    return len(loads) * sum(
        (Fraction(f) * p / total for f, p in zip(loads, probabilities, strict=True)), Fraction(0)
    )
