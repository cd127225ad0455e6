"""The load of experts: slots, drops, padding and imbalance for a batch of T tokens.

With a capacity factor c each expert has C = ceil(T k c / E) slots; more assignments are dropped
and empty slots are computed all the same (GShard, arXiv:2006.16668 section 2.2; Switch Transformer,
arXiv:2101.03961 eq. 3). Megatron-LM and DeepSpeed round up as here (DeepSpeed not under 4), Mesh
TensorFlow down and not under 4, flaxformer to the nearest; Tutel takes k x int(c x ceil(T / E)).
Mesh TensorFlow and flaxformer have k inside c. Without a factor nothing is dropped, and rows are
padded to blocks (MegaBlocks, arXiv:2211.15841, 128 rows).

T are the tokens whose assignments are counted together: a group, a micro-batch or a whole batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from paramcalc.deploy import moe_routing
from paramcalc.deploy.figures import MICRO
from paramcalc.errors import InputError
from paramcalc.ledger import LayerRows, Ledger, Tensor
from paramcalc.numbers import ONE, Num, ceil_div, fixed_power, maximum
from paramcalc.quantities.asked import whole

BLOCK = 128
"""Rows of a block in MegaBlocks (arXiv:2211.15841 section 5.1: 128 x 128)."""
FACTOR = Fraction(5, 4)
"""Capacity factor where none is given; Switch Transformers do best at 1 to 1.25 (Table 1)."""
DRAWS = 16
"""Batches drawn for what has no closed form: the largest load."""
MOST_EXPERTS = 4096
MOST_FACTOR = 10**6
LEAST_FACTOR = Fraction(1, MICRO)
MOST_SEED = 2**63 - 1
MILLIONTHS = "millionths"
"""Unit of a ratio; a share's is ppm."""


class Experts(NamedTuple):
    """Equal sets of experts: E of them, k a token, the FLOPs of one assignment of a token.

    ``layers`` is how often a token is routed; ``choices`` are what the router chooses from, more
    than E where some choices are no expert (skipping, identities).
    """

    name: str
    n_experts: int
    top_k: int
    flops: int
    layers: int
    choices: int


class Batch(NamedTuple):
    """What is routed and how. ``factor`` None drops nothing; ``least`` is the fewest slots of an
    expert; ``ep`` ranks hold E / ep consecutive experts each; ``assumed`` marks a default factor.
    """

    tokens: int
    factor: Fraction | None = FACTOR
    block: int = BLOCK
    least: int = 0
    ep: int = 1
    seed: int = 0
    assumed: bool = False


def experts_of(ledger: Ledger) -> tuple[Experts, ...]:
    """Return a model's sets of experts, equal ones of all layers taken together.

    Raises ``InputError`` for a dense model.
    """
    found: dict[Experts, int] = {}
    for kind in ledger.layers:
        for one in _of_layer(kind):
            key = one._replace(layers=0)
            found[key] = found.get(key, 0) + one.layers
    if not found:
        raise InputError("n_experts = 0: the model is dense; choose a mixture of experts")
    return tuple(one._replace(layers=layers) for one, layers in found.items())


def _of_layer(kind: LayerRows) -> list[Experts]:
    """The sets of experts of one kind of layer, by what stands before ``.experts`` in a name."""
    sets: dict[str, list[Tensor]] = {}
    routers: dict[str, int] = {}
    for row in kind.rows:
        if not isinstance(row, Tensor) or row.stream == "tower":
            continue
        if row.shard.startswith("expert") and row.use in ("matmul", "conv") and row.active:
            sets.setdefault(row.name.partition(".experts")[0], []).append(row)
        elif row.use == "matmul" and row.name.endswith(".router"):
            routers[row.name.removesuffix(".router")] = row.shape[0]
    found = []
    for name, rows in sets.items():
        n, top_k = min(row.copies for row in rows), rows[0].active
        flops = sum(2 * row.elements for row in rows)
        layers = kind.n_layers * rows[0].runs // top_k
        found.append(Experts(name, n, top_k, flops, layers, routers.get(name, n)))
    return found


def slots(tokens: Num, n_experts: Num, top_k: Num, factor: Fraction, least: Num = 0) -> Num:
    """Return the slots of an expert, ceil(T k c / E) and at least ``least``."""
    even = ceil_div(tokens * top_k * factor.numerator, n_experts * factor.denominator)
    return maximum(even, least)


def experts_touched(n_experts: int, top_k: int, tokens: int) -> Fraction:
    """Return the expected number of experts that get a token, E (1 - (1 - k / E)^T), exact.

    Each token takes k distinct experts at random. It is what a decode step of T tokens reads from
    memory. The fraction has T log2 E bits; ``expected_experts`` is for many tokens and arrays.
    Raises ``InputError`` for no experts, more choices than experts, or fewer than no tokens.
    """
    whole("n_experts", n_experts, 1)
    whole("tokens", tokens, 0)
    if whole("top_k", top_k, 0) > n_experts:
        raise InputError(f"top_k = {top_k}: must be at most n_experts = {n_experts}; lower it")
    return n_experts * (1 - Fraction(n_experts - top_k, n_experts) ** tokens)


def expected_experts(n_experts: Num, top_k: Num, tokens: Num, scale: int = MICRO) -> Num:
    """Return ``experts_touched`` x ``scale`` in plain arithmetic, to 2 E T scale / 2^30.

    The power is ``fixed_power``'s: for E up to 4,096 and millionths nothing passes int64.
    """
    return n_experts * experts_share(n_experts, top_k, tokens, ONE) * scale // ONE


def experts_share(n_experts: Num, top_k: Num, tokens: Num, scale: int = MICRO) -> Num:
    """Return the share of experts that some token goes to, x ``scale``: 1 - (1 - k / E)^T.

    Experts and choices may be those of several equal layers together.
    """
    missed = fixed_power((n_experts - top_k) * ONE // n_experts, tokens)
    return (ONE - missed) * scale // ONE


def check(experts: Experts, batch: Batch) -> None:
    """Raise ``InputError`` with one line for a batch that cannot be routed."""
    n = experts.n_experts
    if n > MOST_EXPERTS:
        raise InputError(f"n_experts = {n:,}: at most {MOST_EXPERTS:,} are routed here; lower it")
    most = moe_routing.MOST_TOKENS
    for name, size, fewest, limit in (
        ("tokens", batch.tokens, 1, most),
        ("block", batch.block, 1, most),
        ("min_capacity", batch.least, 0, most),
        ("ep", batch.ep, 1, MOST_EXPERTS),
        ("seed", batch.seed, 0, MOST_SEED),
    ):
        if type(size) is not int:
            raise InputError(f"{name} = {size}: must be a whole number; write one")
        if not fewest <= size <= limit:
            raise InputError(f"{name} = {size}: must be from {fewest} to {limit:,}; change it")
    if batch.factor is not None:
        _check_factor(batch.factor)
    if n % batch.ep:
        raise InputError(f"ep = {batch.ep}: must divide the {n} experts; change it")


def _check_factor(factor: Fraction) -> None:
    if isinstance(factor, bool) or not isinstance(factor, int | Fraction):
        raise InputError(f"capacity_factor = {factor}: must be a Fraction; as Fraction(5, 4)")
    if not LEAST_FACTOR <= factor <= MOST_FACTOR:
        raise InputError(
            f"capacity_factor = {float(factor):g}: must be from 0.000001 to {MOST_FACTOR:,}; change"
            " it, or write none to drop nothing"
        )


class Routing(NamedTuple):
    """A law by which tokens choose; ``shares`` None gives every expert T k / E, no chance in it.
    ``rule`` says it in words."""

    title: str
    shares: tuple[Fraction, ...] | None
    rule: str


def routings(
    experts: Experts, exponent: Fraction | None = None, loads: tuple[Fraction, ...] | None = None
) -> list[Routing]:
    """Return the balanced and the uniform routing, and a skewed one where it is given.

    ``exponent`` is Zipf's; ``loads`` are relative loads of the experts in order. Raises
    ``InputError`` for ones that do not fit the experts.
    """
    n, k = experts.n_experts, experts.top_k
    found = [
        Routing("balanced", None, "each expert gets T k / E, rounded down or up"),
        Routing("uniform", moe_routing.even(n, k), f"each token takes {k} of {n} at random"),
    ]
    if exponent is not None:
        if not 0 <= exponent <= moe_routing.MOST_SKEW:
            raise InputError(
                f"skew = {float(exponent):g}: must be from 0 (even) to {moe_routing.MOST_SKEW};"
                " change it"
            )
        given = moe_routing.shares(moe_routing.zipf(n, exponent), k)
        text = f"{float(exponent):g}"
        found.append(Routing(f"zipf {text}", given, f"shares as 1 / rank^{text}, none above 1"))
    if loads is not None:
        if len(loads) != n:
            raise InputError(f"loads = {len(loads)} numbers: there are {n} experts; give one each")
        given = moe_routing.shares(loads, k)
        found.append(Routing("loads", given, "shares as the loads given, none above 1"))
    return found


class Loads(NamedTuple):
    """What a routing does to one layer: expectations, and means over drawn batches.

    ``dropped``, ``rows`` in blocks, ``touched`` experts and the ``loss`` are expected. The largest
    load of an expert and of a rank and ``drawn_dropped`` are drawn (for the balanced routing: what
    they are, and None). ``heaviest`` expert and rank are those that the largest share falls to,
    None where all are alike.
    """

    dropped: Fraction
    rows: Fraction
    touched: Fraction
    loss: Fraction
    largest: Fraction
    largest_rank: Fraction
    drawn_dropped: Fraction | None
    heaviest: int | None
    heaviest_rank: int | None


def loads_of(experts: Experts, batch: Batch, capacity: int, routing: Routing) -> Loads:
    """Return the loads of one layer; ``capacity`` are the slots of an expert."""
    n = experts.n_experts
    assigned = batch.tokens * experts.top_k

    def over(load: int) -> int:
        return max(0, load - capacity)

    def blocks(load: int) -> int:
        return ceil_div(load, batch.block) * batch.block

    if routing.shares is None:
        loads = [(assigned + i) // n for i in range(n)]
        even = (Fraction(1, n),) * n
        return Loads(
            Fraction(sum(map(over, loads))),
            Fraction(sum(map(blocks, loads))),
            Fraction(sum(map(bool, loads))),
            moe_routing.balance_loss(loads, even),
            Fraction(max(loads)),
            Fraction(max(_by_rank(loads, batch.ep))),
            None,
            None,
            None,
        )
    dropped = rows = touched = Fraction(0)
    counted = Counter(routing.shares)
    moe_routing.check_work(batch.tokens, counted, batch.block)
    for share, times in counted.items():
        parts = moe_routing.expected_loads(batch.tokens, share, capacity, batch.block, len(counted))
        dropped += times * parts[0]
        rows += times * parts[1]
        touched += times * parts[2]
    drawn = moe_routing.draw(batch.tokens, routing.shares, batch.seed, DRAWS)
    return Loads(
        dropped,
        rows,
        touched,
        moe_routing.balance_loss(routing.shares, [s / experts.top_k for s in routing.shares]),
        Fraction(sum(map(max, drawn)), DRAWS),
        Fraction(sum(max(_by_rank(one, batch.ep)) for one in drawn), DRAWS),
        Fraction(sum(over(load) for one in drawn for load in one), DRAWS),
        _heaviest(routing.shares),
        _heaviest(_by_rank(routing.shares, batch.ep)),
    )


def _by_rank(loads: Sequence[Any], ep: int) -> list[Any]:
    """The sums of equal runs of experts."""
    size = len(loads) // ep
    return [sum(loads[i : i + size]) for i in range(0, len(loads), size)]


def _heaviest(shares: Sequence[Fraction]) -> int | None:
    """The number of the largest, from 0; None where all are equal."""
    return None if len(set(shares)) == 1 else shares.index(max(shares))
