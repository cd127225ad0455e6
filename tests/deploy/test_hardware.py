"""The catalogue of accelerators against what makers print, and a person's own file."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from paramcalc.deploy import hardware
from paramcalc.deploy.hardware import Accelerator
from paramcalc.errors import InputError
from paramcalc.sources import presets
from tests.conftest import ROOT

T = 10**12
GIB = 2**30
ALL = hardware.all()
NAMES = [unit.name for unit in ALL]


def test_at_least_36_kinds() -> None:
    assert len(ALL) >= 36
    assert len(set(NAMES)) == len(ALL)
    for name in (
        *("v100-sxm-32gb", "a100", "a10", "a10g", "a40", "t4", "l4", "l40", "l40s"),
        *("rtx-3090", "rtx-4090", "rtx-5090", "rtx-6000-ada", "rtx-pro-6000"),
        *("h100", "h100-pcie", "h100-nvl", "h200", "h200-nvl", "h20", "h800", "a800"),
        *("b200", "b300", "gb200", "gb300"),
        *("mi210", "mi250x-die", "mi250x-card", "mi300x", "mi325x", "mi350x", "mi355x"),
        *("gaudi2", "gaudi3", "tpu-v4", "v5e", "v5p", "v6e", "tpu-v7"),
        *("m1-ultra-128gb", "m2-ultra-192gb", "m3-ultra-512gb", "m4-max-128gb"),
    ):
        assert hardware.find(name) in ALL


@pytest.mark.parametrize("unit", ALL, ids=NAMES)
def test_every_figure_has_a_source_and_a_date(unit: Accelerator) -> None:
    figures = {"memory", "bandwidth", *(f"peaks.{name}" for name in unit.peaks)}
    figures |= {"visible"} if unit.visible_bytes != unit.memory_bytes else set()
    figures |= {"link"} if unit.link_bandwidth else set()
    figures |= {"watts"} if unit.watts else set()
    assert set(unit.sources) == figures
    assert all(source.title and source.date for source in unit.sources.values())
    assert unit.price_per_hour_micro is None  # a price is its giver's


@pytest.mark.parametrize("unit", ALL, ids=NAMES)
def test_sizes_are_whole_and_in_order(unit: Accelerator) -> None:
    assert unit.memory_bytes % GIB == 0
    least = Fraction(3, 4) if unit.vendor == "Apple" else Fraction(9, 10)
    assert least <= Fraction(unit.visible_bytes, unit.memory_bytes) <= 1
    assert 10**11 <= unit.bandwidth <= 10**13
    assert unit.link_one_way is None or 2 * unit.link_one_way == unit.link_bandwidth
    assert (unit.link_bandwidth is None) == (unit.link_kind is None)


PRINTED = {
    # name: memory in 2^30 bytes, bandwidth GB/s, link GB/s, W (datasheets)
    "h100": (80, 3350, 900, 700),
    "h100-pcie": (80, 2000, 600, 350),
    "a100": (80, 2039, 600, 400),
    "a100-pcie-80gb": (80, 1935, 600, 300),
    "a100-sxm-40gb": (40, 1555, 600, 400),
    "h200": (141, 4800, 900, 700),
    "h800": (80, 3350, 400, 700),
    "a800": (80, 2039, 400, 400),
    "b200": (180, 7700, 1800, 1000),
    "mi300x": (192, 5300, 896, 750),
    "mi325x": (256, 6000, 896, 1000),
    "rtx-4090": (24, 1008, 64, 450),
    "t4": (16, 320, 32, 70),
    "gaudi3": (128, 3700, 1200, 900),
}


@pytest.mark.parametrize("name", PRINTED)
def test_what_datasheets_print(name: str) -> None:
    memory, bandwidth, link, watts = PRINTED[name]
    unit = hardware.find(name)
    assert unit.memory_bytes == memory * GIB
    assert unit.bandwidth == bandwidth * 10**9
    assert unit.link_bandwidth == link * 10**9
    assert unit.watts == watts


def test_h100_to_the_digit() -> None:
    h100 = hardware.find("h100")
    assert h100.memory_bytes == 85_899_345_920
    assert abs(h100.visible_bytes - Fraction("79.18") * GIB) < 1  # vLLM's start-up line
    assert h100.peak("bf16") == 989_400_000_000_000
    assert h100.peak("fp8") == 1_978_900_000_000_000
    assert h100.peak("tf32") == 494_700_000_000_000
    assert h100.peak("int8") == h100.peak("mxfp8") == h100.peak("fp8")


SPARSE = {
    # printed with 2:4 sparsity, TFLOP/s, where the maker's table prints nothing else
    "h100": {"tf32": 989, "bf16": 1979, "fp16": 1979, "fp8": 3958, "int8": 3958},
    "h100-pcie": {"tf32": 756, "bf16": 1513, "fp16": 1513, "fp8": 3026, "int8": 3026},
    "h100-nvl": {"tf32": 835, "bf16": 1671, "fp16": 1671, "fp8": 3341, "int8": 3341},
    "h800": {"bf16": 1979, "fp16": 1979, "fp8": 3958, "int8": 3958},
    "h200": {"tf32": 989, "bf16": 1979, "fp16": 1979, "fp8": 3958, "int8": 3958},
    "a100": {"tf32": 312, "bf16": 624, "fp16": 624, "int8": 1248, "int4": 2496},
    "a40": {"tf32": 149.6, "bf16": 299.4, "fp16": 299.4, "int8": 598.6, "int4": 1197.4},
    "l4": {"tf32": 120, "bf16": 242, "fp16": 242, "fp8": 485, "int8": 485},
    "l40": {"tf32": 181, "bf16": 362.1, "fp16": 362.1, "fp8": 724, "int8": 724, "int4": 1448},
    "l40s": {"tf32": 366, "fp8": 1466, "int8": 1466, "int4": 1466},
    "b200": {"bf16": 4500, "fp16": 4500, "fp8": 9000, "fp6": 9000, "int8": 9000, "fp4": 18000},
    "b300": {"bf16": 4500, "fp16": 4500, "fp8": 9000},
    "gb200": {"tf32": 2500, "bf16": 5000, "fp8": 10000, "int8": 10000, "fp4": 20000},
    "mi300x": {"tf32": 1307.4, "bf16": 2614.9, "fp16": 2614.9, "fp8": 5229.8, "int8": 5229.8},
    "rtx-pro-6000": {"tf32": 503.8, "bf16": 1007.6, "fp8": 2015.2, "fp4": 4030.4},
    "rtx-5090": {"fp4": 3352},
}


@pytest.mark.parametrize("name", SPARSE)
def test_a_sparse_rate_is_never_stored(name: str) -> None:
    unit = hardware.find(name)
    for dtype, sparse in SPARSE[name].items():
        off = abs(2 * unit.peak(dtype) - Fraction(str(sparse)) * T)
        assert off <= max(Fraction(T), Fraction(str(sparse)) * T / 500), dtype


FROM_CLOCKS = {
    # units x operations a clock (a multiply-add is 2) x MHz, dense
    ("a100", "bf16"): 432 * 256 * 2 * 1410,
    ("h100", "bf16"): 528 * 512 * 2 * 1830,
    ("v100-sxm-32gb", "fp16"): 640 * 64 * 2 * 1530,
    ("t4", "fp16"): 320 * 64 * 2 * 1590,
    ("mi250x-card", "bf16"): 220 * 1024 * 1700,
    ("mi300x", "bf16"): 304 * 2048 * 2100,
    ("mi300x", "fp8"): 304 * 4096 * 2100,
    ("mi355x", "fp8"): 256 * 8192 * 2400,
    ("mi350x", "fp4"): 256 * 16384 * 2200,
    ("rtx-4090", "bf16"): 512 * 64 * 2 * 2520,
    ("rtx-5090", "bf16"): 680 * 64 * 2 * 2407,
    ("rtx-pro-6000", "bf16"): 752 * 128 * 2 * 2617,
    ("gaudi2", "bf16"): 2 * 256 * 256 * 2 * 1650,
    ("gaudi3", "bf16"): 8 * 256 * 256 * 2 * 1750,
}


@pytest.mark.parametrize(("name", "dtype"), FROM_CLOCKS)
def test_rates_follow_from_units_and_clocks(name: str, dtype: str) -> None:
    derived = FROM_CLOCKS[name, dtype] * 10**6
    assert abs(hardware.find(name).peak(dtype) - derived) * 200 <= derived


RATIOS = {
    # what a narrower format gains over BF16 on one architecture
    ("h100", "h100-pcie", "h100-nvl", "h200", "h200-nvl", "h20"): {"tf32": "1/2", "fp8": 2},
    ("b200", "gb200"): {"tf32": "1/2", "fp8": 2, "fp6": 2, "int8": 2, "fp4": 4},
    ("gb300",): {"tf32": "1/2", "fp8": 2, "fp4": 6},
    ("a100", "a10", "a10g", "a40", "rtx-a6000"): {"tf32": "1/2", "int8": 2, "int4": 4},
    ("l4", "l40", "l40s", "rtx-6000-ada"): {"tf32": "1/2", "fp8": 2, "fp16": 1},
    ("rtx-4090", "rtx-5090"): {"tf32": "1/2", "fp8": 2, "int8": 4},
    ("mi300x", "mi325x"): {"tf32": "1/2", "fp8": 2, "int8": 2},
    ("mi350x", "mi355x"): {"fp8": 2, "int8": 2, "fp6": 4, "fp4": 4},
    ("gaudi3", "tpu-v4"): {},
    ("v6e",): {"int8": 2},
    ("tpu-v7",): {"fp8": 2},
}


@pytest.mark.parametrize(
    ("name", "ratios"), [(name, ratios) for names, ratios in RATIOS.items() for name in names]
)
def test_ratios_of_an_architecture(name: str, ratios: dict[str, int | str]) -> None:
    unit = hardware.find(name)
    for dtype, ratio in ratios.items():
        expected = unit.peak("bf16") * Fraction(ratio)
        assert abs(unit.peak(dtype) - expected) * 40 <= expected, dtype


def test_a_card_is_two_dies() -> None:
    card, die = hardware.find("mi250x-card"), hardware.find("mi250x")
    assert (card.unit, die.unit) == ("card", "die")
    for field in ("memory_bytes", "bandwidth", "link_bandwidth", "watts"):
        assert getattr(card, field) == 2 * getattr(die, field)
    assert card.peaks == {name: 2 * peak for name, peak in die.peaks.items()}


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("H100", "h100-sxm-80gb"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm-80gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm-80gb"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb"),
        ("Tesla T4", "t4-16gb"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090-24gb"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000-96gb"),
        ("AMD Instinct MI300X", "mi300x-192gb"),
        ("Apple M3 Ultra 512GB", "m3-ultra-512gb"),
        ("Trillium", "tpu-v6e"),
    ],
)
def test_names_as_software_shows_them(spelling: str, name: str) -> None:
    assert hardware.find(spelling).name == name


def test_names_and_aliases_mean_one_thing_and_are_found_without_reading_all() -> None:
    seen: dict[str, str] = {}
    for unit in ALL:
        for spelling in {hardware.key(text) for text in (unit.name, *unit.aliases)}:
            assert spelling not in seen, (spelling, unit.name)
            seen[spelling] = unit.name
            assert hardware.find(spelling) == unit
    files = (presets.folder().parent / "hardware").glob("*.yaml")
    assert set(hardware._index().values()) == set(files)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("h1000", "did you mean h100"),
        ("v100", "did you mean v100-sxm-32gb, v100-sxm-16gb, v100-pcie-32gb, v100-pcie-16gb?"),
        ("m3 ultra", "did you mean m3-ultra-512gb"),
        ("", "unknown accelerator; paramcalc hardware lists them"),
        ("x" * 100_000, "unknown accelerator; paramcalc hardware lists them"),
    ],
)
def test_an_unknown_name_is_refused(name: str, says: str) -> None:
    with pytest.raises(InputError, match=r"^gpu = ") as error:
        hardware.find(name)
    assert says in str(error.value)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    ("name", "dtype", "says"),
    [
        ("a100", "fp8", "dtype = fp8: a100-sxm-80gb has no such peak; take one of fp64"),
        ("v100-sxm-16gb", "bf16", "take one of fp64, fp32, fp16"),
        ("h100", "nvfp4", "has no such peak"),
        ("mi355x", "nvfp4", "has no such peak"),
        ("m3-ultra-512gb", "bf16", "no peak is published for m3-ultra-512gb"),
    ],
)
def test_a_format_the_hardware_lacks_is_refused(name: str, dtype: str, says: str) -> None:
    unit = hardware.find(name)
    assert not unit.has(dtype)
    with pytest.raises(InputError) as error:
        unit.peak(dtype)
    assert says in str(error.value)


def test_formats_by_other_names() -> None:
    assert hardware.find("b200").peak("NVFP4") == hardware.find("b200").peak("mxfp4") == 9000 * T
    assert hardware.find("mi355x").has("mxfp4")


def file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "my.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("dollars", "micro"),
    [("2.49", 2_490_000), ("3", 3_000_000), ("0.000001", 1), ("1.300001", 1_300_001)],
)
def test_two_lines_price_a_known_card(tmp_path: Path, dollars: str, micro: int) -> None:
    path = file(tmp_path, f"extends: h100\nprice_per_hour: {dollars}\n")
    mine, known = hardware.find("H100", [path]), hardware.find("h100")
    assert mine.price_per_hour_micro == micro
    assert mine.sources["price_per_hour"].title == str(path)
    assert mine._replace(price_per_hour_micro=None, sources=known.sources) == known
    assert len(hardware.all([path])) == len(ALL)
    assert hardware.all([path])[0] == mine


FULL = """\
accelerators:
  - name: base
    vendor: Me
    unit: card
    memory: 24 GiB
    visible: 23.5 GiB
    bandwidth: 936.2 GB/s
    peaks: {int8: 200T, bf16: 100.5 TFLOP/s}
    source: quote
    cells: {peaks.int8: guess}
  - {name: more, extends: base, memory: 48000000000, peaks: {fp8: 0.2P}}
sources:
  quote: {title: a quote, date: 2026-03-01}
  guess: {title: a guess}
"""


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = file(tmp_path, FULL)
    base, more = hardware.all([path])[:2]
    assert base.memory_bytes == 25_769_803_776
    assert base.visible_bytes == 25_232_932_864
    assert base.bandwidth == 936_200_000_000
    assert dict(base.peaks) == {"bf16": 100_500_000_000_000, "int8": 200 * T}
    assert base.sources["peaks.int8"].title == "a guess"
    assert base.sources["bandwidth"].date == "2026-03-01"
    assert base.link_bandwidth is base.watts is base.price_per_hour_micro is None
    assert more.memory_bytes == more.visible_bytes == 48_000_000_000  # measured on the other
    assert list(more.peaks) == ["bf16", "fp8", "int8"]
    assert more.peak("fp8") == 200 * T
    assert more.label == more.name == "more"
    assert hardware.find("more", [path]) == more
    assert hardware.find("h100", [path]) == hardware.find("h100")


@pytest.mark.parametrize(
    "entry",
    [
        "{name: h100-sxm-80gb, extends: h100, visible: 40 GiB}",
        "{name: H100 SXM 80GB, extends: a100, visible: 40 GiB}",
        "{extends: h100, visible: 40 GiB}",
        "{name: h100, extends: h100, visible: 40 GiB}",
        "{name: h100, extends: h100-sxm, visible: 40 GiB, aliases: [ours]}",
        "{name: ours, aliases: [h100-sxm-80gb], extends: h100, visible: 40 GiB}",
        "{name: h100-sxm-80gb, vendor: Me, unit: card, memory: 40 GiB, bandwidth: 1 TB/s}",
    ],
)
def test_what_replaces_an_entry_answers_to_all_its_names(tmp_path: Path, entry: str) -> None:
    path = file(tmp_path, f"accelerators: [{entry}]\n")
    old = hardware.find("h100")
    for spelling in (old.name, *old.aliases):
        assert hardware.find(spelling, [path]).visible_bytes == 40 * GIB, spelling
    units = hardware.all([path])
    assert len(units) == len(ALL)
    assert old not in units
    spellings = [spelling for unit in units for spelling in hardware.keys(unit)]
    assert len(set(spellings)) == len(spellings)


def test_a_new_entry_takes_the_names_it_states_and_no_more(tmp_path: Path) -> None:
    text = "{name: h100, extends: h100-pcie, price_per_hour: 2}"
    path = file(tmp_path, f"accelerators: [{text}]\n")
    assert hardware.find("H100", [path]).price_per_hour_micro == 2_000_000
    assert hardware.find("h100-sxm-80gb", [path]) == hardware.find("h100")
    both = f"accelerators: [{{name: h100-sxm-80gb, extends: h100, visible: 40 GiB}}, {text}]\n"
    path = file(tmp_path, both)  # a name goes before another's alias
    assert hardware.find("H100", [path]).price_per_hour_micro == 2_000_000
    assert hardware.find("h100-sxm", [path]).visible_bytes == 40 * GIB


def test_of_two_files_the_first_counts(tmp_path: Path) -> None:
    paths = []
    for price in (1, 2):
        paths.append(tmp_path / f"{price}.yaml")
        paths[-1].write_text(f"extends: h100\nprice_per_hour: {price}\n", encoding="utf-8")
    assert hardware.find("h100", paths).price_per_hour_micro == 1_000_000
    assert [unit.name for unit in hardware.all(paths)].count("h100-sxm-80gb") == 1


def test_the_files_in_the_docs(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "hardware.md").read_text(encoding="utf-8")
    one, two = (part.partition("```")[0] for part in text.split("```yaml\n")[1:])
    assert hardware.find("h100", [file(tmp_path, one)]).price_per_hour_micro == 2_490_000
    path = file(tmp_path, two)
    spot, mine = hardware.all([path])[:2]
    assert spot.price_per_hour_micro == 1_300_000
    assert hardware.find("h100", [path]).price_per_hour_micro is None
    assert (mine.memory_bytes, mine.link_one_way, mine.peak("int8")) == (
        24 * GIB,
        32 * 10**9,
        200 * T,
    )


BASE = "name: x\nvendor: Me\nunit: card\nmemory: 24 GiB\nbandwidth: 1 TB/s\n"
BAD = {
    "": "empty; write fields such as extends: h100",
    "- h100\n": "holds list, not fields",
    "extends: h100\nprice_per_hour: 0\n": "price_per_hour = 0: must be dollars above 0",
    "extends: h100\nprice_per_hour: -1\n": "price_per_hour = -1: must be dollars",
    "extends: h100\nprice_per_hour: 1e3\n": "price_per_hour = 1e3: must be dollars",
    "extends: h100\nprice_per_hour: 0.0000001\n": "to the millionth; write it as 2.49",
    f"extends: h100\nprice_per_hour: 2.{'0' * 30}1\n": "to the millionth",
    "extends: h100\nprice_per_hour: yes\n": "price_per_hour = True: must be dollars",
    "extends: h101\n": "extends = h101: unknown accelerator (did you mean h100",
    "extends: h100\nprice: 2\n": "price: unknown field; remove it",
    "name: x\nvendor: Me\n": "unit, memory, bandwidth: are required; add unit: ...",
    "extends: h100\nprice_per_our: 2\n": "unknown field (did you mean price_per_hour?)",
    BASE + "visible: 25 GiB\n": "visible = 26,843,545,600: must be at most memory (25,769,803,776)",
    BASE + "watts: 0\n": "watts = 0: must be at least 1",
    BASE + "unit: box\n": "unit stands twice",
    BASE.replace("card", "box"): "unit = box: must be one of 'card', 'die' or 'chip'",
    BASE.replace("24 GiB", "24"): "memory = 24: must be from 100,000,000 to 10^20",
    BASE.replace("24 GiB", "80.5"): "memory = 80.5: must be from",
    BASE.replace("24 GiB", "plenty"): "memory = plenty: is no amount; write it as 80 GiB",
    BASE.replace("24 GiB", "2,4 TB"): "memory = 2,4 TB: is no amount",
    BASE.replace("24 GiB", "-3 GiB"): "memory = -3 GiB: is no amount",
    BASE + "peaks: {bf17: 3T}\n": "peaks.bf17 = 3T: unknown format (did you mean bf16",
    BASE + "peaks: {bf16: 3}\n": "peaks.bf16 = 3: must be from",
    BASE + "peaks: 3T\n": "peaks = 3T: must be a section of formats",
    BASE + "source: q\n": "source = q: is not among sources",
    BASE + "cells: {watts: q}\nsources: {q: {title: t}}\n": "cells.watts: no such figure",
    BASE + "sources: {q: {name: t}}\n": "sources.q",
    "accelerators: 3\n": "accelerators = 3: must be a list",
    "accelerators: [{extends: h100}]\nname: x\n": "name: stands beside accelerators",
    "accelerators: [{extends: h100}, {extends: h100}]\n": "stands twice; rename one",
    "accelerators: [h100]\n": "= h100: must be a section of fields",
}


@pytest.mark.parametrize("text", BAD)
def test_a_broken_file_is_one_line(tmp_path: Path, text: str) -> None:
    path = file(tmp_path, text)
    with pytest.raises(InputError) as error:
        hardware.all([path])
    assert str(error.value).startswith(str(path))
    assert BAD[text] in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", [None, 5, b"h100"])
def test_a_name_is_a_text(name: Any) -> None:
    with pytest.raises(InputError, match=r"must be a name; paramcalc hardware lists them$"):
        hardware.find(name)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no such file or directory; check the path$"):
        hardware.find("h100", [tmp_path / "none.yaml"])
