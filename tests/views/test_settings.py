"""Settings of a deployment: one rule for all numbers that are no sizes, typed or passed."""

from __future__ import annotations

from fractions import Fraction

import pytest

from paramcalc.deploy.hardware_file import micro_dollars
from paramcalc.errors import InputError
from paramcalc.views import settings

NUMBERS = {
    "0.9": Fraction(9, 10),
    " 12 ": Fraction(12),
    "1,000": Fraction(1000),
    "1,234,567.5": Fraction(2469135, 2),
    ".5": Fraction(1, 2),
    "5.": Fraction(5),
    "-1": Fraction(-1),
    "+2": Fraction(2),
}
NONE = (
    "",
    ".",
    "-",
    "1_000",
    "10,00",
    "1,0",
    "1e3",
    "٣",
    "１",
    "nan",
    "inf",
    "0x1",
    "1/2",
    "9" * 41,
)


@pytest.mark.parametrize("text", NUMBERS)
def test_plain_numbers_with_commas_between_thousands(text: str) -> None:
    assert settings.decimal(text) == NUMBERS[text]


@pytest.mark.parametrize("text", NONE)
def test_nothing_else_is_a_number_anywhere(text: str) -> None:
    assert settings.decimal(text) is None
    for read in (settings.share, settings.percent, settings.nanoseconds, settings.ratio):
        with pytest.raises(InputError):
            read("name", text)
    with pytest.raises(ValueError, match="price_per_hour = "):
        micro_dollars(text)


def test_each_reads_what_it_is_of() -> None:
    assert settings.share("mfu", "40%") == settings.share("mfu", "0.4") == Fraction(2, 5)
    assert settings.nanoseconds("hop", "1,000") == 1_000_000
    assert settings.ratio("pue", "1.2") == Fraction(6, 5)
    assert micro_dollars("$1,000.5") == 1_000_500_000


def test_numbers_may_be_passed_as_they_are() -> None:
    """A float is what it is written as, not what it is stored as."""
    assert settings.share("utilization", 0.9) == settings.share("x", Fraction(9, 10))
    assert settings.percent("flops_efficiency", 0.6) == 60
    assert settings.nanoseconds("hop", 5.5) == 5500
    for wrong in (None, True, float("nan"), float("inf"), 1e-9, [], "%", "0.9%%", -1):
        assert not isinstance(wrong, str) or settings.decimal(wrong) is None
        with pytest.raises(InputError, match=r"^x = "):
            settings.share("x", wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("words", ["0", "-1", "1,000", "00", "", "h100,", ",", "000"])
def test_kinds_are_named_by_words(words: str) -> None:
    """Digits stand somewhere in most names, and no words at all in every one."""
    with pytest.raises(InputError, match=r"kinds = .*: must be names or makers of GPUs"):
        settings.kinds(words, ())


def test_kinds_by_number_name_and_maker() -> None:
    assert [unit.name for unit in settings.kinds("4090,h100", ())] == [
        "rtx-4090-24gb",
        "h100-sxm-80gb",
    ]
    assert len(settings.kinds("all", ())) > len(settings.kinds("nvidia", ())) > 10
    assert settings.kinds("none", ()) == settings.kinds([], ()) == []
    assert [unit.name for unit in settings.kinds(["h200", "mi300x"], ())] == [
        "h200-sxm-141gb",
        "mi300x-192gb",
    ]
