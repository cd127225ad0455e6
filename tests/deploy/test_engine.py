"""What an engine adds to weights and cache: pages, workspace, reserve, padding."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paramcalc.deploy import engine, hardware
from paramcalc.deploy.engine import Engine, padded_for_kernels, paged_elements, workspace
from paramcalc.deploy.figures import GIB
from paramcalc.deploy.fit import Deployment
from paramcalc.deploy.parallel import Layout
from paramcalc.errors import InputError
from paramcalc.ledger import Cache
from paramcalc.quantities import params
from paramcalc.sight import Causal, Chunk, Compressed, State, Window
from tests.conftest import HERE, preset

MEASURED = json.loads((HERE / "golden" / "measured_serving.json").read_text(encoding="utf-8"))
PAGE = 16
SIGHTS = [Causal(), Window(33), Window(32), Window(1), Chunk(40), Compressed(4), State()]


@pytest.mark.parametrize(
    ("sight", "n", "kept"),
    [
        (Causal(), 1, 16),
        (Causal(), 16, 16),
        (Causal(), 17, 32),
        (Window(33), 32, 32),
        (Window(33), 1000, 48),  # 33 positions touch three pages wherever they start
        (Window(32), 1000, 48),  # 32 touch three unless they start a page
        (Window(1), 1000, 16),
        (Window(128), 1000, 144),
        (Chunk(40), 1000, 48),
        (Compressed(4), 100, 32),  # 25 entries
        (State(), 1000, 1),
    ],
)
def test_pages(sight: Any, n: int, kept: int) -> None:
    assert paged_elements(Cache("kv", 10, sight, copies=3), n, PAGE) == 3 * 10 * kept


def touched(n: int, window: int, page: int) -> int:
    """Pages that hold one of the last ``window`` of n positions."""
    return len({position // page for position in range(max(0, n - window), n)})


@given(st.integers(1, 300), st.integers(1, 90), st.integers(1, 20))
def test_a_window_never_touches_more(n: int, window: int, page: int) -> None:
    pages = paged_elements(Cache("kv", 1, Window(window)), n, page) // page
    assert pages >= touched(n, window, page)
    full = n + page  # every place in a page has been the last one
    worst = max(touched(m, window, page) for m in range(full, full + page))
    assert paged_elements(Cache("kv", 1, Window(window)), 10**6, page) // page >= worst
    if n >= window + 2 * page:
        assert pages == worst


@given(st.sampled_from(SIGHTS), st.integers(1, 400), st.integers(1, 64))
def test_pages_hold_the_cache_and_grow(sight: Any, n: int, page: int) -> None:
    row = Cache("kv", 5, sight)
    assert row.elements(n) <= paged_elements(row, n, page) <= paged_elements(row, n + 1, page)


def test_arrays_count_the_same() -> None:
    n = np.arange(1, 200)
    for sight in SIGHTS:
        row = Cache("kv", 5, sight)
        found: Any = paged_elements(row, n, PAGE)  # type: ignore[arg-type]
        expected = [paged_elements(row, int(m), PAGE) for m in n]
        assert np.broadcast_to(found, n.shape).tolist() == expected


def test_a_share_of_the_memory() -> None:
    assert Engine().budget(1001) == 900
    assert Engine(Fraction(1)).budget(1001) == 1001


@pytest.mark.parametrize(
    ("name", "tokens", "seqs"),
    [
        ("h100", 8192, 1024),
        ("mi300x", 8192, 1024),
        ("a100-sxm-80gb", 2048, 256),
        ("l40s", 2048, 256),
        ("t4", 2048, 256),
        ("mi210-64gb", 2048, 256),
    ],
)
def test_defaults_of_a_server(name: str, tokens: int, seqs: int) -> None:
    """vLLM's engine/arg_utils.py: from 70 GiB, but for the A100."""
    own = engine.for_gpu(hardware.find(name))
    assert (own.max_batched_tokens, own.max_seqs) == (tokens, seqs)
    assert own._replace(max_batched_tokens=8192, max_seqs=1024) == Engine()


def test_the_reserve_is_what_was_measured() -> None:
    """To half a hundredth of a GiB of every run; your own replaces it."""
    for row in MEASURED["rows"]:
        ours = Engine().reserve_bytes(row["tp"]) / GIB
        assert ours == pytest.approx(float(row["outside"]), abs=0.0151), row
    assert Engine(reserve=0).reserve_bytes(1) == Engine(reserve=0).reserve_bytes(8) == 0
    assert Engine().reserve_bytes(2) == Engine().reserve_bytes(64)


def test_the_workspace_of_llama() -> None:
    """A step of 8,192 tokens: gate, up, their product and 8 vectors of 4,096, in 16 bits."""
    forward, sampling = workspace(preset("llama3.1-8b").ledger, 128_256, Engine())
    assert forward == 8192 * (3 * 14_336 + 8 * 4096) * 2
    assert sampling == 1024 * 128_256 * 39
    small = Engine(max_batched_tokens=1, max_seqs=1)
    assert workspace(preset("llama3.1-8b").ledger, 10, small) == (forward // 8192, 390)


def test_the_workspace_of_experts_counts_the_active_ones() -> None:
    forward, _ = workspace(preset("mixtral-8x7b").ledger, 32_000, Engine())
    assert forward == 8192 * (2 * 3 * 14_336 + 8 * 4096) * 2


def test_the_stated_vision_run() -> None:
    """The 2.12 GiB that Mistral Small took are those of 8,192 tokens, not of 1,024 logits."""
    forward, sampling = workspace(preset("mistral-small-24b").ledger, 131_072, Engine())
    assert round(forward / GIB, 2) == 2.12
    assert sampling > 2 * forward


def test_logits_are_39_bytes_of_each_run_that_sampled() -> None:
    for row in MEASURED["rows"]:
        vocab = preset(row["preset"]).spec.vocab_size
        measured = float(row["activation"]) * GIB / (engine.LOGIT_BYTES * 1024 * vocab)
        if row["preset"] != "mistral-small-24b":
            assert 0.98 < measured < 1.02, row


def test_kernels_of_mxfp4_pad_the_stream() -> None:
    """gpt-oss: 2,880 in to 3,072 for gate and up, 2,880 out to 3,072 for down."""
    ledger = preset("gpt-oss-20b").ledger
    more = 24 * 32 * 3 * (3072 - 2880) * 2880
    assert params.total(padded_for_kernels(ledger, "mxfp4")) - params.total(ledger) == more
    assert padded_for_kernels(ledger, "bf16") is ledger
    dense = preset("llama3-8b").ledger
    assert padded_for_kernels(dense, "mxfp4").rows == dense.rows


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"reserve": -1}, "reserve = -1: must be a whole number of at least 0"),
        ({"reserve": 0.5}, "reserve = 0.5: must be"),
        ({"utilization": Fraction(0)}, "utilization = 0: must be a fraction above 0, at most 1"),
        ({"utilization": Fraction(11, 10)}, "utilization = 11/10: must be"),
        ({"utilization": -1}, "utilization = -1: must be"),
        ({"utilization": 0.9}, "utilization = 0.9: must be"),
        ({"utilization": "0.9"}, "utilization = 0.9: must be"),
        ({"utilization": True}, "utilization = True: must be"),
        ({"page": 0}, "page = 0: must be a whole number of at least 1"),
        ({"page": None}, "page = none: must be"),
        ({"max_seqs": 0}, "max_seqs = 0: must be"),
        ({"max_batched_tokens": -8}, "max_batched_tokens = -8: must be"),
        ({"max_batched_tokens": "8"}, "max_batched_tokens = 8: must be"),
    ],
)
def test_settings_that_no_engine_has(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as error:
        Deployment(preset("gpt2"), Layout(), engine=Engine(**settings))
    assert str(error.value).startswith(says)
    assert "\n" not in str(error.value)


def test_an_engine_may_take_all_memory() -> None:
    whole = Deployment(preset("gpt2"), Layout(), engine=Engine(utilization=Fraction(1), reserve=0))
    assert whole.budget(1001) == 1001
    one: Any = 1
    assert Deployment(preset("gpt2"), Layout(), engine=Engine(one)).budget(1001) == 1001
