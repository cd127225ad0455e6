"""Does it fit: measured runs, the parts, and the inverses."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from runpy import run_path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import paramcalc
from paramcalc.deploy import hardware
from paramcalc.deploy.engine import Engine
from paramcalc.deploy.fit import MOST_TOKENS, Deployment, Load, beyond, last
from paramcalc.deploy.parallel import Layout
from paramcalc.errors import InputError
from paramcalc.model import Model
from paramcalc.spelling import shown
from tests.conftest import ROOT, preset

GIB = 2**30
H100 = hardware.find("h100").visible_bytes
TOOL = run_path(str(ROOT / "tools" / "measured.py"))
ROWS = TOOL["MEASURED"]["rows"]
MAMBA = {
    "model_type": "mamba",
    "hidden_size": 768,
    "num_hidden_layers": 24,
    "vocab_size": 50_280,
    "state_size": 16,
    "architectures": ["MambaForCausalLM"],
}


@cache
def model(name: str) -> Model:
    return paramcalc.load(MAMBA) if name == "mamba" else preset(name)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['preset']}-{row['tp']}")
def test_measured_on_an_h100(row: dict[str, Any]) -> None:
    """vLLM, llm-d-benchmark: weights to 2%, and 1% where the preset is what was served."""
    assert round(H100 / GIB, 2) == float(TOOL["MEASURED"]["gpu_gib"])
    ours = TOOL["computed"](row)
    weights = float(row["weights"]) * GIB
    tower = row["preset"] == "mistral-small-24b"
    assert abs(ours.weights - weights) < weights * (0.02 if tower else 0.01)
    if not tower:  # what its activations were is another story: docs/capacity.md
        assert abs(ours.activation / GIB - float(row["activation"])) < 0.15
        assert abs(ours.kv / GIB - float(row["kv"])) < 0.3


def test_the_table_in_the_docs_is_what_the_script_prints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_path(str(ROOT / "tools" / "measured.py"), run_name="__main__")
    page = (ROOT / "docs" / "capacity.md").read_text(encoding="utf-8")
    assert capsys.readouterr().out in page


@pytest.mark.parametrize(
    ("name", "tp", "bytes_a_token"),
    [
        ("qwen3-32b", 1, 262_144),  # 64 layers x 2 x 8 heads x 128 x 2
        ("qwen3-32b", 2, 131_072),
        ("llama3.1-8b", 1, 131_072),  # 32 x 2 x 8 x 128 x 2
        ("mistral-small-24b", 1, 163_840),  # as the page of the measurements says
        ("llama3.3-70b", 2, 163_840),  # 80 x 2 x 4 x 128 x 2
    ],
)
def test_bytes_of_a_token(name: str, tp: int, bytes_a_token: int) -> None:
    d = Deployment(preset(name), Layout(tp=tp), engine=Engine(page=128))
    (stage,) = d.stages
    assert d.cache(stage, Load(1)) == bytes_a_token
    assert d.cache_paged(stage, Load(1)) == 128 * bytes_a_token
    assert d.cache_paged(stage, Load(15_049)) == 118 * 128 * bytes_a_token  # 118 blocks were used


def test_blocks_and_concurrency_as_the_engine_said() -> None:
    """28.20 GiB for Mistral Small: 1,444 blocks of 128 tokens, 184,832 tokens, 11.55 x 16,000."""
    row = next(row for row in ROWS if "kv_blocks" in row)
    block = 128 * 163_840
    assert round(row["kv_blocks"] * block / GIB, 2) == float(row["kv"])
    d = Deployment(preset(row["preset"]), Layout(), engine=Engine(page=128))
    (stage,) = d.stages
    # a GPU that leaves just these blocks
    capacity = -(-(stage.fixed + row["kv_blocks"] * block) * 10 // 9)
    at_once = d.concurrency(16_000, capacity)
    assert round(float(at_once), 2) == float(row["concurrency"])
    assert int(at_once * 16_000) == row["kv_tokens"]


def test_a_window_stops_growing() -> None:
    """gpt-oss 20B: 12 layers keep 144 positions of 128, 12 keep all; 2 x 8 x 64 of 16 bits."""
    d = Deployment(preset("gpt-oss-20b"), Layout(), "mxfp4")
    (stage,) = d.stages
    position = 2 * 8 * 64 * 2
    assert d.cache(stage, Load(16_000)) == 12 * position * (128 + 16_000)
    assert d.cache_paged(stage, Load(16_000)) == 12 * position * (144 + 16_000)


def test_the_parts_add_up() -> None:
    d = Deployment(preset("llama3.1-8b"), Layout())
    (stage,) = d.stages
    weights, reserve = 2 * 8_030_261_248, round(Fraction(14, 100) * GIB)
    assert stage.fixed == weights + 1024 * 128_256 * 39 + reserve
    assert d.need(Load(16_000, 2)) == stage.fixed + 2 * 16_000 * 131_072
    assert d.busiest(Load(16_000)) == (0, stage)


def test_the_busiest_stage() -> None:
    """DeepSeek-V3 over 4: the third has the 16th layer of experts, the last the head."""
    d = Deployment(preset("deepseek-v3"), Layout(pp=4), "fp8-block")
    held = [stage.fixed + d.cache_paged(stage, Load(1000)) for stage in d.stages]
    number, _ = d.busiest(Load(1000))
    assert held[number] == max(held) == d.need(Load(1000))
    assert number == 2
    assert [stage.sampling > 0 for stage in d.stages] == [False, False, False, True]


def test_many_stages_are_counted_once() -> None:
    deep = Model(paramcalc.ModelSpec(d_model=64, n_layers=5000, n_heads=1, vocab_size=64))
    d = Deployment(deep, Layout(pp=5000))
    assert len(d.stages) == 5000
    assert len({id(stage) for stage in d.stages}) == 3


def test_data_parallel_ranks_share_the_batch() -> None:
    alone = Deployment(preset("llama3-8b"), Layout())
    four = Deployment(preset("llama3-8b"), Layout(dp=4))
    assert four.need(Load(8192, 8)) == alone.need(Load(8192, 2))
    assert four.need(Load(8192, 9)) == alone.need(Load(8192, 3))
    assert four.largest_batch(8192, H100) == 4 * alone.largest_batch(8192, H100)


FITS = [
    ("llama3-8b", Layout(), "bf16"),
    ("llama3-8b", Layout(tp=2, dp=3), "fp8"),
    ("qwen3-32b", Layout(pp=3), "bf16"),
    ("gpt-oss-120b", Layout(tp=2), "bf16"),
    ("gemma3-27b", Layout(tp=2), "int4"),
    ("deepseek-v3", Layout(tp=8, pp=2), "bf16"),
    ("deepseek-v3.2", Layout(tp=8, pp=2), "fp8"),
    ("llama4-scout", Layout(tp=8), "bf16"),
]


@pytest.mark.parametrize(("name", "layout", "kv"), FITS)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_inverses(name: str, layout: Layout, kv: str, data: st.DataObject) -> None:
    """n fits and n + 1 does not: windows, latents, indexers and chunks included."""
    shown = preset(name)
    page = data.draw(st.sampled_from([1, 16, 128]))
    d = Deployment(shown, layout, shown.released_format, kv, Engine(page=page))
    batch = data.draw(st.integers(1, 64))
    context = d.largest_context(batch, H100)
    assert context is not None
    if context:
        assert d.fits(Load(context, batch), H100)
    assert not d.fits(Load(context + 1, batch), H100)
    n = data.draw(st.integers(1, 200_000))
    most = d.largest_batch(n, H100)
    if most:
        assert d.fits(Load(n, most), H100)
    assert not d.fits(Load(n, most + 1), H100)
    assert int(d.concurrency(n, H100)) * layout.dp == most


@pytest.mark.parametrize("name", ["mamba", "mistral-7b", "gemma2-9b", "deepseek-v3", "bert-base"])
@settings(max_examples=20, deadline=None)
@given(n=st.integers(1, 10**6), batch=st.integers(1, 10**4), more=st.integers(0, 10**4))
def test_need_grows(name: str, n: int, batch: int, more: int) -> None:
    d = Deployment(model(name), Layout(), kv_dtype="int4")
    need = d.need(Load(n, batch))
    assert need <= d.need(Load(n + more, batch))
    assert need <= d.need(Load(n, batch + more))


def test_a_state_has_no_longest_context() -> None:
    """Mamba 130M: 24 layers of 1,536 channels, each with 16 states and 4 inputs."""
    d = Deployment(model("mamba"), Layout())
    (stage,) = d.stages
    state = 24 * 1536 * (16 + 4) * 2
    assert d.cache_paged(stage, Load(1)) == d.cache_paged(stage, Load(10**9)) == state
    assert d.largest_context(1, H100) is None
    most = d.largest_batch(10**9, H100)
    assert most == (d.budget(H100) - stage.fixed) // state
    assert d.largest_context(most, H100) is None
    assert d.largest_context(most + 1, H100) == 0


def test_an_encoder_keeps_nothing() -> None:
    d = Deployment(preset("bert-base"), Layout())
    assert d.largest_context(1, H100) == 512  # its table of positions
    assert Deployment(model("mamba"), Layout()).largest_context(1, H100) is None
    assert d.largest_batch(512, H100) == MOST_TOKENS
    assert d.largest_batch(512, 10**6) == 0


def test_no_room_is_none() -> None:
    d = Deployment(preset("llama3-70b"), Layout())
    assert d.largest_context(1, H100) == d.largest_batch(1, H100) == d.concurrency(1, H100) == 0


@given(st.integers(0, MOST_TOKENS))
def test_last(limit: int) -> None:
    assert last(lambda n: n <= limit) == (None if limit == MOST_TOKENS else limit)


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("gpt2", 1024),  # n_positions of their files
        ("starcoder-15b", 8192),
        ("bert-base", 512),
        ("opt-125m", 2048),  # its table has two more, for padding
        ("bart-large", 1024),
    ],
)
def test_a_table_of_positions_ends_the_context(name: str, places: int) -> None:
    d = Deployment(preset(name), Layout())
    assert d.table == d.largest_context(1, H100) == places
    assert beyond(d.model.spec, places) is None
    said = f"beyond its table of {places:,} positions"
    assert beyond(d.model.spec, places + 1) == said
    full = d.largest_batch(places, H100)
    if full < MOST_TOKENS:
        assert d.largest_context(full, H100) == places
        assert 0 < (d.largest_context(2 * full + 2, H100) or 0) < places


def test_a_context_beyond_the_models_own() -> None:
    assert beyond(preset("llama3-8b").spec, 8192) is None
    assert beyond(preset("llama3-8b").spec, 8193) == "beyond the model's own 8,192"
    assert Deployment(preset("llama3-8b"), Layout()).table is None


BAD_LOADS = [
    (Load(-1, 1), "context = -1: "),
    (Load(0, 1), "context = 0: "),
    (Load(1.5, 1), "context = 1.5: "),  # type: ignore[arg-type]
    (Load("8", 1), "context = 8: "),  # type: ignore[arg-type]
    (Load(True, 1), "context = True: "),
    (Load(1, -5), "batch = -5: "),
    (Load(1, None), "batch = none: "),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("load", "says"), BAD_LOADS)
def test_a_load_is_whole_and_at_least_1(load: Load, says: str) -> None:
    d = Deployment(preset("gpt2"), Layout())
    stage = d.stages[0]
    for ask in (
        lambda: d.need(load),
        lambda: d.fits(load, H100),
        lambda: d.busiest(load),
        lambda: d.cache(stage, load),
        lambda: d.cache_paged(stage, load),
    ):
        with pytest.raises(InputError, match=f"^{says}must be a whole number of at least 1"):
            ask()


def test_limits_are_asked_with_sizes() -> None:
    d = Deployment(preset("gpt2"), Layout())
    bad: Any
    for bad in (0, -8192, 1.5, "8", None):
        with pytest.raises(InputError, match=f"^context = {shown(bad)}: must be"):
            d.largest_batch(bad, H100)
        with pytest.raises(InputError, match=f"^batch = {shown(bad)}: must be"):
            d.largest_context(bad, H100)
    for bad in (-1, 0.5, "80 GB", None):
        for ask in (d.largest_batch, d.largest_context):
            with pytest.raises(InputError, match=f"^capacity = {shown(bad)}: must be"):
                ask(8, bad)


@pytest.mark.parametrize("shared", [None, 0, 2.0, "2", True])
def test_a_layout_is_of_whole_sizes(shared: Any) -> None:
    for name in ("tp", "pp", "ep", "dp", "cp", "vocab_multiple"):
        with pytest.raises(InputError, match=f"^{name} = {shared}: must be a whole number"):
            Deployment(preset("gpt2"), Layout(**{name: shared}))
