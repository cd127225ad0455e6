"""Numbers typed to the commands about deployments: one rule for all that are no sizes."""

from __future__ import annotations

from fractions import Fraction

import pytest

from paramcalc.cli import deploy_options as d
from paramcalc.deploy.hardware_file import micro_dollars
from paramcalc.errors import InputError

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
    assert d.decimal(text) == NUMBERS[text]


@pytest.mark.parametrize("text", NONE)
def test_nothing_else_is_a_number_anywhere(text: str) -> None:
    assert d.decimal(text) is None
    for read in (d.share, d.percent, d.nanoseconds, d.ratio):
        with pytest.raises(InputError):
            read("name", text)
    with pytest.raises(ValueError, match="price_per_hour = "):
        micro_dollars(text)


def test_each_reads_what_it_is_of() -> None:
    assert d.share("mfu", "40%") == d.share("mfu", "0.4") == Fraction(2, 5)
    assert d.nanoseconds("hop", "1,000") == 1_000_000
    assert d.ratio("pue", "1.2") == Fraction(6, 5)
    assert micro_dollars("$1,000.5") == 1_000_500_000


@pytest.mark.parametrize("words", ["0", "-1", "1,000", "00", "", "h100,", ",", "000"])
def test_kinds_are_named_by_words(words: str) -> None:
    """Digits stand somewhere in most names, and no words at all in every one."""
    with pytest.raises(InputError, match=r"kinds = .*: must be names or makers of GPUs"):
        d.kinds(words, None)


def test_kinds_by_number_name_and_maker() -> None:
    assert [unit.name for unit in d.kinds("4090,h100", None)] == ["rtx-4090-24gb", "h100-sxm-80gb"]
    assert len(d.kinds("all", None)) > len(d.kinds("nvidia", None)) > 10
    assert d.kinds("none", None) == []
