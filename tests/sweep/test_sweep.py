"""A sweep against the scalar calculator, row by row, and a search against walking."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import paramcalc
from paramcalc import formats
from paramcalc.errors import InputError
from paramcalc.ledger import ROLES
from paramcalc.model import Model
from paramcalc.quantities.catalogue import CATALOGUE, At
from paramcalc.sweep import boxes, search, select
from paramcalc.sweep.columns import SOLVED
from paramcalc.sweep.request import Plan, Request
from paramcalc.sweep.sinks import records
from tests.conftest import preset

EVERY = [key for key in CATALOGUE if key != SOLVED]


def walked(plan: Plan) -> Iterator[dict[str, Any]]:
    for block in select.kept(plan):
        for row in records(plan, block):
            yield dict(zip(plan.shown, row, strict=True))


def scalar(row: dict[str, Any], base: Model, names: list[str]) -> dict[str, Any]:
    """The same figures from the calculator for one model."""
    fields = {n: v for n, v in row.items() if n not in names}
    batch, dtype = fields.pop("batch", 1), fields.pop("dtype", "bf16")
    kv = formats.find(fields.pop("kv_dtype", "bf16"))
    fields.pop("model", None)
    switches = {n: v == "true" if v in ("true", "false") else v for n, v in fields.items()}
    model = base.with_(**switches) if switches else base
    at = At(model.context, batch, kv.bits)
    found = {n: CATALOGUE[n].of(model.ledger, at) for n in names if n in CATALOGUE}
    found |= {f"params_{r}": model.params.by_component.get(r, 0) for r in ROLES}
    found["weight_bytes"] = model.memory.weight_bytes(dtype)
    return {n: found[n] for n in names}


GRIDS: list[tuple[str, dict[str, str]]] = [
    ("llama3-8b", {"d": "4096", "kv": "8,32"}),
    ("llama3-8b", {"d": "1024:4096:1024", "H": "d/128", "ff": "ceil(3.5*d, 256)", "kv": "4,8"}),
    ("llama3-8b", {"L": "1,3,40", "context": "1:9000:1000", "V": "10,1k", "batch": "1,7"}),
    ("llama3-8b", {"E": "0,4,8", "k": "1:9:4", "ff": "512,1k"}),
    ("llama3-8b", {"tie_embeddings": "true,false", "dtype": "bf16,int4,fp8", "d": "4096"}),
    ("gpt2", {"d": "768,1536", "L": "2,12", "dtype": "awq,gptq-g32,nf4-dq,fp8-block,nvfp4,fp16"}),
    ("llama3-8b", {"E": "0,8", "k": "2", "ff": "500,1k", "dtype": "mxfp4,mxfp4-all,awq,nf4-dq"}),
    ("llama3-8b", {"norm": "rms,layer,none", "window": "100,9k", "context": "50,100,101,8k"}),
    ("gpt2", {"context": "128:1024:128", "d": "768,1536", "kv_dtype": "bf16,fp8"}),
    ("gemma3-27b", {"L": "1:14", "window": "512,1k", "context": "256,1k,8k"}),
    ("deepseek-v3", {"L": "4,61", "E": "8,256", "mla.kv_lora_rank": "256,512", "k": "1,8,300"}),
    ("llama4-maverick", {"context": "8191:8193", "L": "3,48", "kv": "1,8,40"}),
    ("t5-small", {"L": "1,6", "encoder.n_layers": "2,6", "context": "16,512"}),
    ("mimo-v2-flash", {"L": "2:20:3", "kv": "4,64", "context": "100,200"}),
    ("bert-base", {"n_positions": "16,32", "d": "768", "H": "6,12,13"}),
    ("deepseek-v3.2", {"context": "1k,4k", "mla.index_top_k": "512,2k"}),
]  # fmt: skip


CROSSOVERS: list[tuple[str, dict[str, str]]] = [
    ("llama3-8b", {"L": "1,3,40", "d": "4096,8192", "H": "d/128", "kv": "1,8"}),
    ("llama3-8b", {"E": "0,4,8", "k": "1:9:4", "ff": "512,1k"}),
    ("gpt2", {"tie": "true,false", "d": "96:1536:96"}),
    ("gemma3-27b", {"L": "6:14", "window": "512,1k,40k,400k", "ff": "256,21504"}),
    ("gpt-oss-20b", {"window": "16:256:16", "d": "1024:2048:256"}),
    ("t5-small", {"L": "1,6", "encoder.n_layers": "2,6"}),
    ("mimo-v2-flash", {"L": "2:20:3", "kv": "4,64"}),
]


@pytest.mark.parametrize(("name", "axes"), CROSSOVERS)
def test_the_crossover_is_where_attention_reaches_the_matmuls(
    name: str, axes: dict[str, str]
) -> None:
    fields = [a.field for a in Plan(Request((name,), tuple(axes.items()))).axes]
    plan = Plan(Request((name,), tuple(axes.items()), columns=(*fields, SOLVED)))
    rows = list(walked(plan))
    assert len(rows) == plan.rows > 1
    for row in rows:
        n = row.pop(SOLVED)
        switches = {k: v == "true" if v in ("true", "false") else v for k, v in row.items()}
        found = preset(name).with_(**switches).flops
        assert found.attention_per_token(n) >= found.matmul_per_token, row
        assert n == 1 or found.attention_per_token(n - 1) < found.matmul_per_token, row


@pytest.mark.parametrize(
    ("name", "axes", "says"),
    [
        ("llama4-maverick", {"L": "3,48"}, "chunks"),
        ("gemma3-27b", {"L": "1:14"}, "a window in every layer"),
        ("llama3-8b", {"window": "100,9k"}, "a window in every layer"),
    ],
)
def test_a_crossover_that_may_not_exist_is_refused(
    name: str, axes: dict[str, str], says: str
) -> None:
    plan = Plan(Request((name,), tuple(axes.items()), columns=(SOLVED,)))
    with pytest.raises(InputError, match=says):
        assert plan.tables


@pytest.mark.parametrize(("name", "axes"), GRIDS, ids=lambda v: v if isinstance(v, str) else "")
def test_every_row_equals_the_calculator(name: str, axes: dict[str, str]) -> None:
    names = [*EVERY, "weight_bytes", *(f"params_{r}" for r in ROLES)]
    fields = Plan(Request((name,), tuple(axes.items()))).axes
    shown = (*(a.field for a in fields), *names)
    plan = Plan(Request((name,), tuple(axes.items()), columns=shown))
    rows = list(walked(plan))
    assert len(rows) == plan.rows > 0
    for row in rows:
        assert {n: row[n] for n in names} == scalar(row, preset(name), names), row
    for table in plan.tables:
        whole = table.materialise(threads=2)
        again = table.at(np.arange(table.rows))
        assert all(np.array_equal(a, b) for a, b in zip(whole, again, strict=True))


def test_what_is_left_out_is_what_the_calculator_refuses() -> None:
    plan = Plan(Request(axes=(("d", "96:400:16"), ("H", "1:20"), ("kv", "1:20"))))
    kept = {(r["d_model"], r["n_heads"], r["n_kv_heads"]) for r in walked(plan)}
    refused = 0
    for d in range(96, 401, 16):
        for h in range(1, 21):
            for kv in range(1, 21):
                try:
                    preset("llama3-8b").with_(d=d, H=h, kv=kv)
                except paramcalc.SpecError:
                    refused += 1
                    assert (d, h, kv) not in kept
                else:
                    assert (d, h, kv) in kept
    assert sum(plan.dropped().values()) == refused
    assert len(kept) == plan.rows


def test_joined_fields_are_not_walked_apart() -> None:
    plan = Plan(Request(axes=(("d", "1024:8192:128"), ("H", "d/128"), ("kv", "1:64"))))
    assert [sorted(dim.fields) for dim in plan.sheets[0].dims] == [
        ["d_model", "n_heads", "n_kv_heads"]
    ]


def test_several_models_stand_in_the_order_given() -> None:
    plan = Plan(Request(("gpt2", "llama3-8b"), (("context", "64,128"),), ("model", "params")))
    assert list(walked(plan)) == [
        {"model": "gpt2", "params": 124_439_808 - 768 * 960},
        {"model": "gpt2", "params": 124_439_808 - 768 * 896},
        {"model": "llama3-8b", "params": 8_030_261_248},
        {"model": "llama3-8b", "params": 8_030_261_248},
    ]


def test_beyond_int64_it_is_exact() -> None:
    plan = Plan(
        Request(axes=(("context", "1M,1000M"), ("L", "32,100k")), columns=("training_flops_6n",))
    )
    values = [row["training_flops_6n"] for row in walked(plan)]
    assert max(values) > 2**63
    model = preset("llama3-8b")
    for value, (n, layers) in zip(
        values, [(n, la) for n in (2**20, 1000 * 2**20) for la in (32, 100_000)], strict=True
    ):
        assert value == 6 * model.with_(L=layers).params.active * n
    assert plan.tables[0].dtypes == [object]


@st.composite
def small_grids(draw: st.DrawFn) -> Request:
    axes = {
        "d_model": draw(st.sampled_from(["64:640:64", "128,256"])),
        "n_heads": draw(st.sampled_from(["1:8", "d/64", "2"])),
        "n_layers": draw(st.sampled_from(["1:30", "3,9"])),
        "d_ff": draw(st.sampled_from(["100:900:50", "4*d", "ceil(8/3*d, 64)"])),
        "context": draw(st.sampled_from(["1:200:7", "5"])),
        "batch": draw(st.sampled_from(["1:5", "3"])),
        "n_experts": draw(st.sampled_from(["0", "0,2,4", "8"])),
        "top_k": draw(st.sampled_from(["1", "1,2"])),
    }
    column = st.sampled_from(["params", "kv_bytes", "flops_per_token", "d_model", "prefill_flops"])
    limit = st.sampled_from(["1e5", "2e6", "1e7", "5e8", "1e10"])
    sign = st.sampled_from(["<", "<=", ">", ">=", "!="])
    where = []
    for _ in range(draw(st.integers(0, 3))):
        one = f"{draw(column)} {draw(sign)} {draw(limit)}"
        two = f"{draw(column)} / {draw(column)} {draw(sign)} {draw(st.sampled_from(['2', '1000']))}"
        word = draw(st.sampled_from(["and", "or"]))
        where.append(draw(st.sampled_from([one, two, f"{one} {word} not {two}"])))
    return Request(
        ("llama3-8b",),
        tuple((n, axes[n]) for n in draw(st.permutations(list(axes)))),
        columns=("params",),
        where=tuple(where),
        top=draw(st.integers(1, 30)),
        by=draw(column),
        descending=draw(st.booleans()),
    )


@settings(deadline=None, max_examples=60)
@given(small_grids(), st.sampled_from([1, 7, 50, 1_000, 262_144]))
def test_a_search_gives_what_walking_gives(request: Request, walk: int) -> None:
    plan = Plan(request.__class__(**{**request.__dict__, "columns": (request.by or "",)}))
    rows = [
        (value, int(number))
        for block in select.kept(plan)
        for value, number in zip(block.columns[plan.sort[0]].tolist(), block.rows, strict=True)
    ]
    before, boxes.WALK = boxes.WALK, walk
    try:
        assert search.count(plan) == len(rows)
        sign = -1 if request.descending else 1
        best = sorted((value * sign, number) for value, number in rows)[: request.top]
        assert [(row.key, row.number) for row in search.best(plan)] == best
    finally:
        boxes.WALK = before


def test_a_grid_of_10_to_the_12_is_not_walked() -> None:
    axes = (
        ("d", "128:12800:128"), ("L", "1:100"), ("ff", "256:25600:256"), ("V", "1k:100k:1k"),
        ("context", "1k:100k:1k"), ("batch", "1:100"), ("head_dim", "128"),
    )  # fmt: skip
    names = ("kv_bytes", "attention_flops_per_token")
    where = ("kv_bytes <= 2e9 and attention_flops_per_token >= 2e9",)
    plan = Plan(Request(axes=axes, columns=names, where=where, top=20, by="kv_bytes"))
    assert plan.rows == 10**12
    free = 100**3  # d, ff and the vocabulary change neither
    expected, keys = 0, []
    for layers in range(1, 101):
        for n in range(1_024, 102_401, 1_024):
            if 4 * layers * n * 32 * 128 >= 2 * 10**9:
                fits = [b for b in range(1, 101) if 4 * layers * 8 * 128 * n * b <= 2 * 10**9]
                expected += len(fits) * free
                keys += [4 * layers * 8 * 128 * n * b for b in fits]
    assert search.count(plan) == expected
    assert [row.key for row in search.best(plan)] == [min(keys)] * 20


def test_conditions_that_share_one_axis_are_counted_apart() -> None:
    axes = (
        ("d", "128:12800:128"), ("L", "1:100"), ("ff", "256:25600:256"), ("V", "1k:100k:1k"),
        ("context", "1k:100k:1k"), ("batch", "1:100"), ("head_dim", "128"),
    )  # fmt: skip
    where = ("params < 8e9 and kv_bytes <= 2e9",)
    plan = Plan(Request(axes=axes, columns=("params",), where=where, top=3, by="params"))
    d, ff, v = np.meshgrid(
        128 * np.arange(1, 101), 256 * np.arange(1, 101), 1000 * np.arange(1, 101), indexing="ij"
    )
    tokens = 1024 * np.multiply.outer(np.arange(1, 101), np.arange(1, 101))
    expected = 0
    for layers in range(1, 101):
        layer = 2 * d + 2 * (32 + 8) * 128 * d + 3 * d * ff
        fits = np.count_nonzero(2 * v * d + d + layers * layer < 8 * 10**9)
        expected += fits * np.count_nonzero(4 * layers * 8 * 128 * tokens <= 2 * 10**9)
    assert search.count(plan) == expected
    smallest = 2 * 1000 * 128 + 128 + 2 * 128 + 80 * 128 * 128 + 3 * 128 * 256
    assert [row.key for row in search.best(plan)] == [smallest] * 3


def test_the_pareto_front_by_comparing_every_pair() -> None:
    names = ("params", "kv_bytes", "flops_per_token")
    axes = (("L", "2:9"), ("d", "128:512:128"), ("H", "2,4"), ("kv", "1,2"), ("ff", "256,300"))
    for chosen in (names, names[:2], names[:1]):
        plan = Plan(Request(axes=axes, columns=names, pareto=chosen))
        every = list(walked(Plan(Request(axes=axes, columns=names))))
        keys = [tuple(row[n] for n in chosen) for row in every]
        front = [
            row
            for row, key in zip(every, keys, strict=True)
            if not any(
                other != key and all(a <= b for a, b in zip(other, key, strict=True))
                for other in keys
            )
        ]
        found = [
            dict(zip(names, row, strict=True))
            for block in select.pareto(plan)
            for row in records(plan, block)
        ]
        assert found == front
