"""Numbers of a file whose cells semicolons part, as people of both habits write them."""

from __future__ import annotations

import pytest

from paramcalc.fleet import commas
from paramcalc.fleet.row import Fault

# CLDR's German and English patterns, #,##0.### with "." and "," as each of them has them
READ = {
    ("price", "2,49"): "2.49",
    ("price", "2.49"): "2.49",
    ("price", "1.234,50"): "1234.50",
    ("price", "1,234"): "1.234",
    ("price", " 0,5 "): "0.5",
    ("price", "3"): "3",
    ("context", "8192"): "8192",
    ("context", "8.192"): "8192",
    ("context", "8,192"): "8192",
    ("context", "1.048.576"): "1048576",
    ("context", "1,5k"): "1.5k",
    ("context", "8k"): "8k",
    ("gpus", "2,0"): "2.0",
    ("batch", "1.000.000"): "1000000",
    ("model", "gpt2,5"): "gpt2,5",
    ("gpu", "1.234"): "1.234",
    ("price", "2,4,9"): "2,4,9",
    ("price", "1,234.50"): "1,234.50",
}


@pytest.mark.parametrize(("role", "text"), READ)
def test_a_cell(role: str, text: str) -> None:
    assert commas.read(role, text) == READ[role, text]
    assert commas.as_it_is(role, text) == text


@pytest.mark.parametrize("text", ["1.000", "128,000", "32.000"])
def test_what_may_be_two_sizes_is_a_fault(text: str) -> None:
    found = commas.read("gpus", text)
    assert isinstance(found, Fault)
    few = text[:-4]
    assert (
        found.text == f"{text} may be {few} or {few},000; write {few} or {few}000, without a sign"
    )
