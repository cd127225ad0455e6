"""Compute-optimal sizes and tokens (Hoffmann et al. 2022, arXiv:2203.15556), with C = 6 N D.

Approaches 1 and 2 of the paper come to about 20 tokens a parameter (Chinchilla: 70B, 1.4T).
Approach 3 fits the loss E + A / N^alpha + B / D^beta; its optimum for a budget C is
N = G (C / 6)^(beta / (alpha + beta)) with G = (alpha A / (beta B))^(1 / (alpha + beta)) (equation
4), D = C / 6 N. The exponents of the published text, 0.34 and 0.28, are rounded: the paper's
source has 0.3392 and 0.2849 (Besiroglu et al. 2024, arXiv:2404.10102, who fit the same data
again). The constants are measured, so the results are rounded figures, not counts.
"""

from __future__ import annotations

from math import isqrt
from typing import NamedTuple

from paramcalc.errors import InputError

TOKENS_PER_PARAMETER = 20
PAPER = "arXiv:2203.15556"


class Fit(NamedTuple):
    """Constants of the loss, and where they stand."""

    e: float
    a: float
    b: float
    alpha: float
    beta: float
    source: str


HOFFMANN = Fit(1.6934, 406.4, 410.7, 0.3392, 0.2849, f"{PAPER}, no. 3")
BESIROGLU = Fit(1.8172, 482.01, 2085.43, 0.3478, 0.3658, "arXiv:2404.10102")
FITS = {"hoffmann": HOFFMANN, "besiroglu": BESIROGLU}


class Optimum(NamedTuple):
    """The parameters and tokens that a budget is spent best on."""

    parameters: int
    tokens: int


def by_ratio(budget: int, ratio: int = TOKENS_PER_PARAMETER) -> Optimum:
    """Return the optimum of a budget in FLOPs at so many tokens a parameter: N = sqrt(C / 6 r).

    Raises ``InputError`` for a budget too small for one parameter.
    """
    parameters = isqrt(_checked(budget) // (6 * ratio))
    if parameters < 1:
        raise InputError(f"budget = {budget}: buys no parameter; raise it")
    return Optimum(parameters, budget // (6 * parameters))


def by_fit(budget: int, fit: Fit = BESIROGLU) -> Optimum:
    """Return the optimum of a budget in FLOPs under a fitted loss."""
    total = fit.alpha + fit.beta
    scale = (fit.alpha * fit.a / (fit.beta * fit.b)) ** (1 / total)
    parameters = round(float(scale * (_checked(budget) / 6) ** (fit.beta / total)))
    return Optimum(parameters, budget // (6 * max(1, parameters)))


def tokens_for(parameters: int, fit: Fit | None = None) -> int:
    """Return the tokens with which so many parameters are the best use of their budget: 20 each,
    or by a fit, whose optimum is turned round."""
    if fit is None:
        return TOKENS_PER_PARAMETER * parameters
    total = fit.alpha + fit.beta
    scale = (fit.alpha * fit.a / (fit.beta * fit.b)) ** (1 / total)
    budget = 6 * (parameters / scale) ** (total / fit.beta)
    return round(float(budget / (6 * parameters)))


def loss(parameters: int, tokens: int, fit: Fit = BESIROGLU) -> float:
    """Return the fitted loss in nats a token, of the paper's data and tokenizer."""
    return float(fit.e + fit.a / parameters**fit.alpha + fit.b / tokens**fit.beta)


def _checked(budget: int) -> int:
    if budget < 1:
        raise InputError(f"budget = {budget}: must be at least 1 FLOP; raise it")
    return budget
