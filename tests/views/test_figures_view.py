"""Figures as a person reads them: no digit that a float invented, no exponent."""

from __future__ import annotations

import pytest

from paramcalc.deploy.figures import exact_dollars
from paramcalc.views.figures_view import text
from paramcalc.views.moe_view import millionths

SHOWN = {
    (1, "microdollars"): "$0.000001",
    (9_999, "microdollars"): "$0.009999",
    (1_500, "microdollars"): "$0.0015",
    (10_000, "microdollars"): "$0.0100",
    (123_456, "microdollars"): "$0.1235",
    (0, "microdollars"): "$0",
    (12_345_678_901_234_567_890_000, "microdollars"): "$12,345,678,901,234,567.89",
    (0, "watt-hours"): "<1 Wh",
    (1, "watt-hours"): "1 Wh",
    (0, "microseconds"): "<0.001 ms",
    (1, "microseconds"): "0.001 ms",
    (999_999, "microseconds"): "999.999 ms",
    (90 * 10**6, "microseconds"): "1.50 min",
    (86_400 * 10**6 * 123_456_789_012_345_678, "microseconds"): "123,456,789,012,345,678.00 days",
    (12_345_678_901_234_567_890, "hundredths"): "123,456,789,012,345,678.90",
    (6 * 10**33, "FLOPs"): "6,000 QFLOPs",
    (6 * 10**36, "FLOPs"): "6,000,000 QFLOPs",
    (421_651_971_833_856, "FLOPs"): "421.7 TFLOPs",
}


@pytest.mark.parametrize("figure", SHOWN)
def test_a_figure_is_shown_with_its_own_digits(figure: tuple[int, str]) -> None:
    assert text(*figure) == SHOWN[figure]


def test_prices_and_ratios_keep_small_digits() -> None:
    assert [exact_dollars(n) for n in (2_500_000, 1, 1_234_567_890)] == [
        "2.50",
        "0.000001",
        "1,234.56789",
    ]
    assert [millionths(n) for n in (0, 1, 999, 1000, 1_250_000)] == [
        "0.000",
        "0.000001",
        "0.000999",
        "0.001",
        "1.250",
    ]
