"""The figures of ``paramcalc serve``, and its tables against batch and prompt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from paramcalc.deploy.exchange import spreads
from paramcalc.deploy.figures import Figure, Group, exact_dollars
from paramcalc.deploy.serving import SECOND, Service, bound
from paramcalc.numbers import ceil_div

BATCHES = tuple(2**i for i in range(11))
PROMPTS = tuple(256 * 4**i for i in range(10))


def groups(s: Service) -> list[Group]:
    """Return the tables of the answer."""
    return [_prefill(s), _decode(s), _limits(s), _served(s)]


def _us(nanoseconds: int) -> int:
    return ceil_div(nanoseconds, 1000)


def _rate(key: str, label: str, value: int | None, why: str) -> Figure:
    return Figure(key, label, value, "tokens/s", "assumed", why)


def _time(key: str, label: str, nanoseconds: int, why: str) -> Figure:
    return Figure(key, label, _us(nanoseconds), "microseconds", "assumed", why)


def _cost(s: Service, key: str, label: str, value: int | None) -> Figure:
    """A cost rests on assumed times; without a price there is none."""
    price = s.gpu.price_per_hour_micro
    why = "no price: --price" if price is None else f"${exact_dollars(price)} a GPU-hour"
    return Figure(key, label, value, "microdollars", "assumed", why)


def _gpus(s: Service) -> str:
    return "1 GPU" if s.layout.gpus == 1 else f"{s.layout.gpus:,} GPUs"


def _prefill(s: Service) -> Group:
    n = s.work.prompt
    slowest = max(s.full_passes, key=lambda step: step.time)
    together = f"{s.prompts_together} a step" if s.prompts_together > 1 else "one a step"
    rate = s.layout.dp * n * SECOND // s.prefill_time
    figures = (
        Figure(
            "prefill_flops",
            "FLOPs, whole model",
            s.prefill_flops,
            "FLOPs",
            "exact",
            "the encoder" if s.has_encoder else "head at the last token",
        ),
        _time("time_to_first_token", "time to first token", s.first_token, "roofline, no queue"),
        _rate(
            "prefill_tokens_per_second",
            "prompt tokens",
            rate,
            f"{together}, {bound(slowest)}-bound",
        ),
        _cost(
            s,
            "cost_per_million_prompt_tokens",
            "a million prompt tokens",
            s.cost(s.prefill_time, n),
        ),
    )
    return Group(f"Prefill of {n:,} tokens", figures, ("time_to_first_token",))


def _decode(s: Service) -> Group:
    slowest = s.slowest
    where = "once a step" if s.layout.pp == 1 else "the slowest stage"
    routed = any(t.role == "router" for t in s.deployment.model.ledger.tensors)
    seen = f"at {s.context:,} tokens"
    if s.has_encoder:
        seen = f"at {s.context:,} + {s.work.prompt:,} read"
    figures = [
        Figure(
            "decode_weight_bytes",
            "weights read, a GPU",
            slowest.weights,
            "bytes",
            "assumed" if routed else "derived",
            "uniform routing" if routed else where,
        ),
        Figure("decode_cache_bytes", "cache read, a GPU", slowest.cache, "bytes", "derived", seen),
        Figure("decode_flops", "FLOPs, a GPU", slowest.work, "FLOPs", "derived", "its share"),
        _time("memory_time", "to read", slowest.memory, f"{s.machine.bandwidth_percent}% of peak"),
        _time("compute_time", "to compute", slowest.compute, f"{s.machine.flops_percent}% of peak"),
    ]
    if s.layout.tp * s.layout.pp > 1 or spreads(s.layout):
        link = "" if s.machine.link is None else "link + "
        waits = f"{link}{s.machine.hop / 1000:g} µs hops"
        figures.append(_time("exchange_time", "to exchange", slowest.exchange, waits))
    figures += [
        _time("step_time", "one step", s.step_time, f"{s.bound}-bound"),
        _rate("tokens_per_second_request", "a request", SECOND // s.step_time, "1 / step"),
        _rate("tokens_per_second", "all requests", s.decode_rate, "batch / step"),
        _rate("tokens_per_second_gpu", "a GPU", s.decode_rate // s.layout.gpus, _gpus(s)),
        _cost(
            s,
            "cost_per_million_tokens",
            "a million, decode alone",
            s.cost_of_all(s.step_time, s.work.batch),
        ),
    ]
    return Group(f"Decode, batch {s.work.batch:,}", tuple(figures), ("step_time",))


def _limits(s: Service) -> Group:
    most = s.largest_batch
    held = f"cache of {s.work.longest.context:,} tokens"
    full = s.at(batch=most) if most else None
    figures = (
        Figure(
            "ridge_batch",
            "compute-bound from",
            s.ridge,
            "sequences",
            "assumed",
            "never: cache bounds it" if s.ridge is None else "weights read once for all",
        ),
        Figure(
            "largest_served_batch",
            "largest batch",
            most,
            "sequences",
            "assumed",
            "--max-seqs" if most == s.sampled else held,
        ),
        _rate(
            "largest_batch_tokens_per_second",
            "all its requests",
            full.decode_rate if full else None,
            "batch / step" if full else "none fits",
        ),
        _rate(
            "largest_batch_served_tokens_per_second",
            "tokens written",
            full.served_rate if full else None,
            "prefill shares the GPUs" if full else "none fits",
        ),
        _cost(
            s,
            "largest_batch_cost_per_million_served",
            "a million, prefill too",
            full.cost_of_all(full.cycle_time, most * s.work.output) if full else None,
        ),
    )
    return Group(f"Limits of batch at {s.context:,} tokens", figures)


def _served(s: Service) -> Group:
    w = s.work
    figures = (
        _time("request_time", "a request, start to end", s.request_time, "no queue, prefill apart"),
        _rate(
            "served_tokens_per_second",
            "tokens written",
            s.served_rate,
            "prefill shares the GPUs",
        ),
        _rate("served_tokens_per_second_gpu", "a GPU", s.served_rate // s.layout.gpus, _gpus(s)),
        _cost(
            s,
            "cost_per_million_served",
            "a million, prefill too",
            s.cost_of_all(s.cycle_time, w.batch * w.output),
        ),
    )
    return Group(f"Requests of {w.prompt:,} in, {w.output:,} out", figures)


class Point(NamedTuple):
    """One line of the tables against batch and prompt. ``fits`` is whether the cache does at its
    longest, and the engine samples so many at once."""

    batch: int
    prompt: int
    first_token_microseconds: int
    step_microseconds: int
    tokens_per_second_request: int
    tokens_per_second_gpu: int
    cost_per_million_tokens_micro: int | None
    bound: str
    fits: bool
    asked: bool


def _point(s: Service, asked: Service) -> Point:
    return Point(
        s.work.batch,
        s.work.prompt,
        _us(s.first_token),
        _us(s.step_time),
        SECOND // s.step_time,
        s.decode_rate // s.layout.gpus,
        s.cost_of_all(s.step_time, s.work.batch),
        s.bound,
        s.work.batch <= s.largest_batch,
        s.work == asked.work,
    )


def against_batch(s: Service) -> list[Point]:
    """Return decode for batches of powers of two up to 1,024, the one asked for and the largest;
    the rest only where they fit and every replica has one."""
    sizes = {size for size in BATCHES if s.layout.dp <= size <= s.largest_batch}
    sizes |= {s.work.batch, s.largest_batch or s.work.batch}
    return [_point(s.at(batch=size), s) for size in sorted(sizes)]


def against_prompt(s: Service) -> list[Point]:
    """Return decode for prompts of powers of four from 256, the one asked for, and the longest that
    leaves room for the output in the model's own context."""
    return [_point(s.at(prompt=size), s) for size in sorted(set(_prompts(s)))]


def _prompts(s: Service) -> Iterator[int]:
    own = s.deployment.model.spec.context
    longest = max(1, own - s.work.output) if own is not None else s.work.prompt
    yield s.work.prompt
    yield longest
    yield from (size for size in PROMPTS if size <= longest)
