"""The rows of sheet Deployment, from what is asked to what it costs, and of sheet Lookups."""

from __future__ import annotations

Rows = tuple[tuple[str, str, str], ...]
"""Key (empty for a title), label, unit."""

ROWS: Rows = (
    ("", "What is asked", ""),
    ("at_context", "context", "tokens"),
    ("batch", "sequences at once, on all GPUs", "sequences"),
    ("format", "format of the weights", ""),
    ("kv_format", "format of the cache", ""),
    ("gpu", "accelerator", ""),
    ("gpus", "GPUs", "GPUs"),
    ("tp", "tensor-parallel ranks of a replica", "GPUs"),
    ("price", "price of a GPU-hour", "$"),
    ("percent", "memory that the engine takes", "%"),
    ("", "Memory of one GPU", ""),
    ("fits", "fits", ""),
    ("needed_gb", "needed in all", "GB"),
    ("needed_gib", "needed in all", "GiB"),
    ("free_gb", "free", "GB"),
    ("free_gib", "free", "GiB"),
    ("largest_batch", "most sequences at once, on all GPUs", "sequences"),
    ("replicas", "replicas", ""),
    ("batch_replica", "sequences on one replica", "sequences"),
    ("visible", "memory of a GPU", "bytes"),
    ("budget", "of which the engine takes", "bytes"),
    ("gpu_weights", "weights", "bytes"),
    ("gpu_cache", "cache, in pages", "bytes"),
    ("workspace", "workspace", "bytes"),
    ("reserve", "outside the allocator", "bytes"),
    ("needed", "needed in all", "bytes"),
    ("free", "free", "bytes"),
    ("cache_sequence", "cache of one sequence, in pages", "bytes"),
    ("", "One token more for every sequence (a decode step)", ""),
    ("times", "times", ""),
    ("tokens", "all sequences together", "tokens/s"),
    ("tokens_request", "one sequence", "tokens/s"),
    ("tokens_gpu", "one GPU", "tokens/s"),
    ("step_ms", "the step", "ms"),
    ("step_weights", "weights read", "bytes"),
    ("step_cache", "cache read", "bytes"),
    ("step_memory", "reading", "ns"),
    ("step_compute", "arithmetic", "ns"),
    ("step_exchange", "exchange between GPUs", "ns"),
    ("step_time", "the step", "ns"),
    ("", "The first token (a prompt of the whole context)", ""),
    ("first_seconds", "the prompt", "s"),
    ("first_weights", "weights read", "bytes"),
    ("first_cache", "cache written", "bytes"),
    ("first_memory", "reading", "ns"),
    ("first_compute", "arithmetic", "ns"),
    ("first_exchange", "exchange between GPUs", "ns"),
    ("first_time", "the prompt", "ns"),
    ("", "Cost, while nothing else is done", ""),
    ("cost_hour_dollars", "all GPUs, an hour", "$"),
    ("cost_million_dollars", "a million tokens", "$"),
    ("cost_prompt_dollars", "a million tokens of prompts", "$"),
    ("cost_hour", "all GPUs, an hour", "microdollars"),
    ("cost_million", "a million tokens", "microdollars"),
    ("cost_prompt", "a million tokens of prompts", "microdollars"),
    ("", "Checks", ""),
    ("largest_step", "largest intermediate value (sheet Steps)", ""),
    ("wrong", "cells that cannot be used (Inputs, lists, below)", ""),
    ("broken", "rules broken (Inputs, below)", ""),
)
"""Every row of Deployment but the last checks and rules."""

LOOKUPS: Rows = (
    ("", "In use", ""),
    ("used at_context", "context", "tokens"),
    ("used batch", "sequences at once, on all GPUs", "sequences"),
    ("used gpus", "GPUs", "GPUs"),
    ("used tp", "tensor-parallel ranks of a replica", "GPUs"),
    ("used permille", "memory that the engine takes", "per mille"),
    ("price_micro", "price of a GPU-hour", "microdollars"),
    ("", "Looked up on sheets Formats and Hardware", ""),
    ("format_number", "place of the format in the list", ""),
    ("kv_bits", "an element of the cache", "bits"),
    ("gpu_number", "place of the accelerator in the list", ""),
    ("step_tokens", "tokens that a step may have", "tokens"),
    ("step_requests", "requests that are sampled at once", "sequences"),
    ("memory_rate", "memory", "bytes/us"),
    ("peak", "arithmetic in the format", "FLOPs/ns"),
    ("plain", "arithmetic in 16 bits", "FLOPs/ns"),
    ("link_rate", "link to another GPU, one way", "bytes/us"),
    ("", "Parts of the workspace", ""),
    ("pass_token", "a forward pass, each token of a step", "bytes"),
    ("sample_request", "sampling, each request", "bytes"),
    ("", "Yes is 1, no is 0", ""),
    ("known", "the rate of this arithmetic is known", ""),
    ("runs", "the GPU is not known to lack this arithmetic", ""),
    ("link_known", "the link's rate is known", ""),
    ("valid", "no input is wrong and no rule is broken", ""),
    ("holds", "it fits: money is shown", ""),
    ("timed", "and the rate is known: times are shown", ""),
)
"""The rows of Lookups: what only formulas use."""

ASKED = ("at_context", "batch", "format", "kv_format", "gpu", "gpus", "tp", "price", "percent")
"""The rows that are typed into, one below the other; their checks stand in the same order."""

PLAIN_UNITS = ("", "$", "%", "GB", "GiB", "ms", "s")
"""Units of rows whose values are no integers that could pass 2^53."""


def integers(rows: Rows) -> list[str]:
    """The keys of rows whose values are integers that could."""
    return [key for key, _, unit in rows if key and unit not in PLAIN_UNITS]
