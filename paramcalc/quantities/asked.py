"""A model's quantities as attributes and methods: parameters, FLOPs, bytes."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cached_property

from paramcalc import formats
from paramcalc.errors import InputError
from paramcalc.ledger import Ledger, Role
from paramcalc.quantities import flops, memory, params
from paramcalc.spelling import shown


class Params:
    """Parameter counts, exact."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    @cached_property
    def total(self) -> int:
        """Stored parameters; a tied head counts once, buffers not at all."""
        return params.total(self._ledger)

    @cached_property
    def active(self) -> int:
        """Parameters one token uses: the top-k experts, and everything else."""
        return params.active(self._ledger)

    @cached_property
    def non_embedding(self) -> int:
        """Parameters outside embeddings, position tables and the head."""
        return params.non_embedding(self._ledger)

    @cached_property
    def buffers(self) -> int:
        """Values stored beside the parameters (router corrections)."""
        return params.buffers(self._ledger)

    @cached_property
    def mtp(self) -> int:
        """Parameters of multi-token-prediction layers that a checkpoint holds beside the model."""
        return params.apart(self._ledger)

    @cached_property
    def towers(self) -> int:
        """Parameters of towers that read images or sound, part of ``total``."""
        return params.of_roles(self._ledger.tensors, "tower")

    @cached_property
    def by_component(self) -> dict[Role, int]:
        """Parameters of each component."""
        return params.by_component(self._ledger)

    @cached_property
    def by_kind(self) -> list[params.LayerKind]:
        """One layer of each kind."""
        return params.by_kind(self._ledger)

    @cached_property
    def by_layer(self) -> list[tuple[str, int, int]]:
        """(stack, layer number, parameters) for every layer."""
        return params.by_layer(self._ledger)


class Flops:
    """Forward and training FLOPs, exact; a multiply-add is 2."""

    def __init__(self, ledger: Ledger, context: int) -> None:
        self._ledger = ledger
        self._context = context

    def per_token(self, n: int | None = None) -> int:
        """Forward FLOPs of a token that sees n positions (default: the model's context)."""
        return flops.per_token(self._ledger, self._n(n))

    @cached_property
    def matmul_per_token(self) -> int:
        """The part in matrices, head and routers included."""
        return flops.matmul_per_token(self._ledger)

    @cached_property
    def router_per_token(self) -> int:
        """The routers' share of ``matmul_per_token``."""
        return flops.router_per_token(self._ledger)

    def attention_per_token(self, n: int | None = None) -> int:
        """The part between positions, for a token that sees n of them."""
        return flops.attention_per_token(self._ledger, self._n(n))

    def prefill(self, n: int | None = None, *, all_pairs: bool = False) -> int:
        """Forward FLOPs of n tokens: the causal sum, or n x n pairs with ``all_pairs``."""
        fold = flops.prefill_all_pairs if all_pairs else flops.prefill
        return fold(self._ledger, self._n(n))

    def training(self, n: int | None = None) -> int:
        """FLOPs to train on n tokens: 3 x ``prefill``."""
        return flops.training(self._ledger, self._n(n))

    def mfu(
        self,
        tokens_per_second: int,
        peak_flops: int,
        n: int | None = None,
        *,
        convention: str = "exact",
        with_sparsity: bool = False,
    ) -> Fraction:
        """Model FLOPs utilization of training (PaLM, arXiv:2204.02311, appendix B): what training
        on so many tokens a second needs over the accelerators' dense peak.

        ``convention`` counts the work as another tool does (``quantities/conventions.py``).
        ``with_sparsity`` says that ``peak_flops`` is a datasheet's figure for 2:4 sparsity, twice
        the dense one. Raises ``InputError``, also for a speed whose exact work passes the peak.
        """
        from paramcalc.quantities import conventions

        speed, peak = _measured(tokens_per_second, peak_flops, with_sparsity)
        found = conventions.mfu(self._ledger, self._n(n), speed, peak, convention)
        self._check_peak(speed, peak, self._n(n), "none")
        return found

    def hfu(
        self,
        tokens_per_second: int,
        peak_flops: int,
        n: int | None = None,
        *,
        recomputation: flops.Recomputation = "none",
        convention: str = "exact",
        with_sparsity: bool = False,
    ) -> Fraction:
        """Hardware FLOPs utilization: ``mfu`` with the forward work that the backward pass does
        again, ``none``, ``selective`` (between positions) or ``full`` (whole layers)."""
        from paramcalc.quantities import conventions

        speed, peak = _measured(tokens_per_second, peak_flops, with_sparsity)
        found = conventions.hfu(self._ledger, self._n(n), speed, peak, convention, recomputation)
        self._check_peak(speed, peak, self._n(n), recomputation)
        return found

    def _check_peak(self, speed: int, peak: Fraction, n: int, again: flops.Recomputation) -> None:
        """Raise ``InputError`` where what is computed, by exact count, passes the peak; another
        tool's rule may count more than is computed."""
        work = flops.training(self._ledger, n) + flops.recomputed(self._ledger, n, again)
        if flops.utilization(work, n, speed, peak) > 1:
            most = int(peak * n / work)
            raise InputError(
                f"tokens_per_second = {speed:,}: a peak of {int(peak):,} FLOP/s does at most"
                f" {most:,}; lower it"
            )

    @cached_property
    def crossover(self) -> int | None:
        """The smallest n at which attention costs as much as the matmuls; None if it never does."""
        return flops.crossover(self._ledger)

    def _n(self, n: int | None) -> int:
        return self._context if n is None else whole("n", n, 1)


def _measured(tokens_per_second: int, peak_flops: int, with_sparsity: bool) -> tuple[int, Fraction]:
    peak = Fraction(whole("peak_flops", peak_flops, 1), 2 if with_sparsity else 1)
    return whole("tokens_per_second", tokens_per_second, 1), peak


class Memory:
    """Bytes of weights and of the KV cache."""

    def __init__(
        self, ledger: Ledger, context: int, find: Callable[[str], formats.AnyFormat]
    ) -> None:
        self._ledger = ledger
        self._context = context
        self._format = find

    def weight_bytes(self, dtype: str = "bf16") -> int:
        """Bytes of all weights in a format: bf16, fp8, awq, mxfp4, Q4_K_M, ... Raises
        ``InputError`` for an unknown one."""
        return formats.weight_bytes(self._ledger, self._format(dtype))

    def kv_bytes(self, n: int | None = None, *, batch: int = 1, dtype: str = "bf16") -> int:
        """Cache bytes of ``batch`` sequences of n tokens (default: the model's context)."""
        n = self._context if n is None else whole("n", n, 0)
        bits = formats.kv_format(dtype).bits
        return memory.kv_bytes(self._ledger, n, whole("batch", batch, 1), bits)

    def cache_by_kind(self, n: int | None = None) -> list[memory.CacheKindRow]:
        """What a sequence of n tokens keeps, by kind (full, window, latent, state, ...)."""
        return memory.by_kind(self._ledger, self._context if n is None else whole("n", n, 0))

    def cache_by_layer(self, n: int | None = None) -> list[memory.CacheLayer]:
        """What a sequence of n tokens keeps in every layer, by kind."""
        return memory.by_layer(self._ledger, self._context if n is None else whole("n", n, 0))

    def kv_bytes_per_token(self, n: int = 0, *, dtype: str = "bf16") -> int:
        """Bytes the next token adds to a cache of n tokens; n = 0 gives the first token's."""
        bits = formats.kv_format(dtype).bits
        return memory.kv_bytes_next(self._ledger, whole("n", n, 0), bits)


def whole(name: str, value: int, least: int) -> int:
    """Return a whole number of at least ``least``. Raises ``InputError`` for anything else."""
    if type(value) is not int or value < least:
        raise InputError(f"{name} = {shown(value)}: must be a whole number of at least {least}")
    return value
