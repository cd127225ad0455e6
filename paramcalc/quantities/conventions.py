"""The same work under the rules of other tools: folds over the ledger that count as they do.

A convention answers for a sequence of n tokens. ``counts`` and ``leaves_out`` say what its rule
takes and what it deliberately does not, ``source`` where it stands. What a rule has no word for
(a recurrent state, compressed blocks) is counted as this package does. Rules for dense models
take the parameters that one token uses, so that experts count as their top k.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from paramcalc.errors import InputError, did_you_mean
from paramcalc.ledger import Ledger
from paramcalc.numbers import Num
from paramcalc.quantities import flops, tool_rules
from paramcalc.quantities.tool_rules import Fold


class Convention(NamedTuple):
    """A rule: ``forward`` and ``training`` are the FLOPs of a sequence of n tokens.

    ``training`` is None where the tool counts the forward pass only. ``every_pair`` says that
    attention is n x n in it, ``recomputes`` that it holds a second forward pass. ``unit`` is FLOPs
    (a multiply-add is 2) or MACs (it is 1).
    """

    name: str
    source: str
    counts: str
    leaves_out: str
    forward: Fold
    training: Fold | None
    every_pair: bool = False
    recomputes: bool = False
    unit: str = "FLOPs"


class Count(NamedTuple):
    """What a convention makes of n tokens of a model, beside the exact figure of the same kind.

    ``training`` is None where the tool does not define it; then forward stands against forward.
    """

    convention: Convention
    n: Num
    forward: Num
    training: Num | None
    exact: Num

    @property
    def forward_per_token(self) -> int | None:
        """Forward FLOPs of a token, the mean over the sequence; None if that is no integer."""
        return self._each(self.forward)

    @property
    def training_per_token(self) -> int | None:
        """Training FLOPs of a token, the mean over the sequence; None if that is no integer."""
        return None if self.training is None else self._each(self.training)

    @property
    def compared(self) -> Num:
        """What stands against ``exact``: training, or forward where there is no training."""
        return self.forward if self.training is None else self.training

    def _each(self, work: Num) -> int | None:
        return None if work % self.n else work // self.n


def count(ledger: Ledger, n: Num, name: str) -> Count:
    """Return a convention's FLOPs for n tokens. Raises ``InputError`` for an unknown name."""
    rule = find(name)
    if rule.training is None:
        return Count(rule, n, rule.forward(ledger, n), None, flops.prefill(ledger, n))
    work = rule.training(ledger, n)
    return Count(rule, n, rule.forward(ledger, n), work, flops.training(ledger, n))


def find(name: str) -> Convention:
    """Return the convention of that name. Raises ``InputError`` with the names there are."""
    if name not in CONVENTIONS:
        near = did_you_mean(name, CONVENTIONS)
        known = ", ".join(CONVENTIONS)
        raise InputError(f"convention = {name}: unknown{near}; take one of {known}")
    return CONVENTIONS[name]


def variants(name: str) -> list[str]:
    """Return the other forms of a tool's rule: ``torchtitan`` has ``torchtitan-full``."""
    return [other for other in CONVENTIONS if other.startswith(f"{name}-")]


def mfu(
    ledger: Ledger,
    n: Num,
    tokens_per_second: int | Fraction,
    peak_flops: int | Fraction,
    convention: str = "exact",
) -> Fraction:
    """Return model FLOPs utilization: the training work of a rule on so many tokens a second, in
    sequences of n, over a dense peak (PaLM, arXiv:2204.02311, appendix B).

    Raises ``InputError`` for a rule that is unknown or counts no training.
    """
    work = _trained(find(convention))(ledger, n)
    return flops.utilization(work, n, tokens_per_second, peak_flops)


def hfu(
    ledger: Ledger,
    n: Num,
    tokens_per_second: int | Fraction,
    peak_flops: int | Fraction,
    convention: str = "exact",
    recomputation: flops.Recomputation = "none",
) -> Fraction:
    """Return hardware FLOPs utilization: as ``mfu``, with what the backward pass does again.

    The repeated attention is n x n or causal as the rule has it. Raises ``InputError``.
    """
    rule = find(convention)
    if recomputation not in flops.RECOMPUTATIONS:
        known = ", ".join(flops.RECOMPUTATIONS)
        raise InputError(f"recomputation = {recomputation}: unknown; take one of {known}")
    if rule.recomputes and recomputation != "none":
        raise InputError(
            f"convention = {convention}: holds a second forward pass; take recomputation = none"
        )
    again = flops.recomputed(ledger, n, recomputation, every_pair=rule.every_pair)
    work = _trained(rule)(ledger, n) + again
    return flops.utilization(work, n, tokens_per_second, peak_flops)


def _trained(rule: Convention) -> Fold:
    if rule.training is None:
        known = ", ".join(c.name for c in CONVENTIONS.values() if c.training is not None)
        raise InputError(f"convention = {rule.name}: counts no training; take one of {known}")
    return rule.training


_SMALL = "lookups, norms, biases, activations, softmax"
_ALL = [
    Convention(
        "exact",
        "this package (ARCHITECTURE.md, Conventions)",
        "matrices with head and routers, attention over the pairs that its mask keeps",
        _SMALL,
        flops.prefill,
        flops.training,
    ),
    Convention(
        "all-pairs",
        "kernels that skip no pair: the framework's torch.utils.flop_counter; nanoGPT"
        " transformer_sizing.ipynb",
        "matrices with head and routers, attention over n x n pairs in every layer",
        f"{_SMALL}; masks and windows",
        flops.prefill_all_pairs,
        tool_rules.thrice(flops.prefill_all_pairs),
        every_pair=True,
    ),
    Convention(
        "palm",
        "PaLM, arXiv:2204.02311, appendix B: 6 N + 12 L H Q T a token; position tables out as in"
        " nanoGPT model.py estimate_mfu",
        "6 for each parameter a token uses: embedding, norms and biases too; n x n pairs",
        "position tables, masks, windows, recomputation",
        tool_rules.palm,
        tool_rules.thrice(tool_rules.palm),
        every_pair=True,
    ),
    Convention(
        "kaplan",
        "Kaplan et al., arXiv:2001.08361, section 2.1: 2 N + 2 n_layer n_ctx d_attn forward,"
        " 6 N training",
        "N = the matrices in layers; forward: half of n x n pairs",
        "embedding, head, norms, biases; in training, all work between positions",
        tool_rules.kaplan,
        tool_rules.kaplan_training,
    ),
    Convention(
        "6n",
        "C = 6 N D: Kaplan et al., arXiv:2001.08361, section 2.1; Hoffmann et al.,"
        " arXiv:2203.15556",
        "6 for each parameter a token uses, embedding included",
        "all work between positions; a tied head is the embedding, counted once",
        tool_rules.six_n,
        tool_rules.thrice(tool_rules.six_n),
    ),
    Convention(
        "6n-total",
        "C = 6 N D with N as a model's name has it",
        "6 for each stored parameter, all experts",
        "all work between positions; that a token uses few experts",
        tool_rules.six_n_total,
        tool_rules.thrice(tool_rules.six_n_total),
    ),
    Convention(
        "megatron",
        "NVIDIA/Megatron-LM megatron/training/training.py, num_floating_point_operations",
        "matrices, top-k and shared experts, head, norms of MLA's latents; n x n / 2 pairs",
        "routers, other norms, biases, windows; not as there: the vocabulary stands unpadded (give"
        " --vocab a multiple of 128 x tp), a recurrent state costs what it does here",
        tool_rules.megatron,
        tool_rules.thrice(tool_rules.megatron),
    ),
    Convention(
        "megatron-72",
        "Korthikanti et al., arXiv:2205.05198, appendix A: 72 B s L h^2 (1 + s/6h + V/12Lh)",
        "matrices with head, attention over n x n pairs",
        f"{_SMALL}; masks and windows, recomputation",
        flops.prefill_all_pairs,
        tool_rules.thrice(flops.prefill_all_pairs),
        every_pair=True,
    ),
    Convention(
        "megatron-96",
        "Narayanan et al., arXiv:2104.04473, section 5: 96 B s l h^2 (1 + s/6h + V/16lh)",
        "as megatron-72, with every layer's forward pass done twice",
        f"{_SMALL}; masks and windows; the head is not done again",
        flops.prefill_all_pairs,
        tool_rules.with_recomputation,
        every_pair=True,
        recomputes=True,
    ),
    Convention(
        "torchtitan",
        "pytorch/torchtitan torchtitan/models/utils.py, get_nparams_and_active_nparams and"
        " quadratic_attention_flops_per_token",
        "6 for each active parameter: routers, norms, biases, head; min(n, window) positions a"
        " token",
        "embedding tables (a tied one is the head's), the causal mask, recomputation",
        tool_rules.torchtitan,
        tool_rules.thrice(tool_rules.torchtitan),
    ),
    Convention(
        "torchtitan-full",
        "pytorch/torchtitan torchtitan/models/utils.py, get_moe_model_nparams_and_flops of"
        " earlier versions: 6 (N - embedding) + 6 l h (q + v) t",
        "as torchtitan, n positions a token in every layer",
        "embedding tables (a tied head with them), masks, windows, recomputation",
        tool_rules.torchtitan_full,
        tool_rules.thrice(tool_rules.torchtitan_full),
        every_pair=True,
    ),
    Convention(
        "maxtext",
        "AI-Hypercomputer/maxtext src/maxtext/utils/maxtext_utils.py,"
        " calculate_tflops_training_per_device",
        "matrices with head and routers; n^2 / 2 pairs, n W - W^2 / 2 in windows, half squares in"
        " chunks",
        f"{_SMALL}; recomputation, the optimizer; not as there: a recurrent state costs what it"
        " does here",
        tool_rules.maxtext,
        tool_rules.thrice(tool_rules.maxtext),
    ),
    Convention(
        "macs",
        "facebookresearch/fvcore FlopCountAnalysis and Lyken17/pytorch-OpCounter (thop): a"
        " multiply-add is 1",
        "matrices with head and routers, attention's two products over n x n pairs",
        "the backward pass; lookups, biases, softmax; norms (fvcore adds them); thop sees modules"
        " only, so no attention products",
        tool_rules.macs,
        None,
        every_pair=True,
        unit="MACs",
    ),
]
CONVENTIONS = {rule.name: rule for rule in _ALL}
"""Every convention by its name; ``tool-form`` is another form of a tool's rule."""
