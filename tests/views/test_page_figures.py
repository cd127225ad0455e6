"""The page's formulas against counts in ints, without a browser."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest

import paramcalc
from paramcalc.deploy.engine import Engine
from paramcalc.deploy.fit import Deployment, paged_bytes
from paramcalc.deploy.parallel import Layout
from paramcalc.errors import InputError
from paramcalc.ledger import ROLES, Ledger
from paramcalc.model import Model
from paramcalc.numbers import ceil_div
from paramcalc.quantities import flops, params, shape
from paramcalc.quantities.catalogue import CATALOGUE, At
from paramcalc.sources import presets
from paramcalc.symbols import Formula
from paramcalc.views.page import page as made
from paramcalc.views.page.fields import EXPERTS, SWITCHES, fields, values
from paramcalc.views.page.figures import (
    AT_ENDS,
    CHUNK,
    DEFAULT_HEAD_DIM,
    EXPERTS_ON,
    UNSHOWN,
    Structure,
    Symbols,
    signature,
    structure,
)
from tests.conftest import preset

SYMBOLS = Symbols()
NAMES = presets.names()


@cache
def derived(key: str, name: str) -> Structure:
    return structure(preset(name), SYMBOLS)


@cache
def representatives() -> dict[str, str]:
    """The first preset of each structure."""
    found: dict[str, str] = {}
    for name in NAMES:
        found.setdefault(signature(preset(name)), name)
    return found


def structure_of(name: str) -> Structure:
    key = signature(preset(name))
    return derived(key, representatives()[key])


def value_at(formula: Formula, given: dict[str, int]) -> int:
    total = 0
    for product, count in formula.terms.items():
        for atom, power in product:
            count *= atom_at(atom, given) ** power
        total += count
    return total


def atom_at(atom: Any, given: dict[str, int]) -> int:
    if not atom.parts:
        return given[atom.name]
    a, *more = (value_at(part, given) for part in atom.parts)
    return {
        "floor": lambda: a // more[0],
        "ceil": lambda: ceil_div(a, more[0]),
        "min": lambda: min(a, *more),
        "max": lambda: max(a, *more),
    }[atom.name]()


def counted(model: Model, batch: int, kv_bits: int) -> dict[str, int]:
    """The page's figures by counting in ints."""
    ledger, at = model.ledger, At(model.context, batch, kv_bits)
    found: dict[str, Any] = {key: CATALOGUE[key].of(ledger, at) for key in CATALOGUE}
    for role in ROLES:
        found[f"params_{role}"] = params.of_roles(ledger.tensors, role)
        rows = tuple(r for r in ledger.rows if getattr(r, "role", None) == role)
        found[f"flops_{role}"] = flops.per_token(Ledger((), (), rows), at.n)
    tensors = list(ledger.tensors)
    found |= {f"{role}_matrices": shape.matrices(tensors, role) for role in ("ffn", "attention")}
    one = Deployment(model, Layout())
    found["workspace"] = one.stages[0].workspace
    found["kv_bytes_paged"] = paged_bytes(ledger, at.n, batch, kv_bits, one.engine.page)
    return {key: value for key, value in found.items() if key not in UNSHOWN}


def placed(model: Model, own: Structure, batch: int = 1, kv_bits: int = 16) -> dict[str, int]:
    """The values of a structure's symbols for a model, what is left out by its default."""
    spec = model.spec
    bits = (spec.gated_ffn, spec.tie_embeddings, spec.gpt2, spec.n_experts)
    given = {name: int(bool(bit)) for name, bit in zip(SWITCHES, bits, strict=True)}
    step = Engine()
    given |= {"step_tokens": step.max_batched_tokens, "step_requests": step.max_seqs}
    given |= {"kv_bits": kv_bits, "batch": batch}
    names = [field.name for field in own.fields if field.name != "batch"]
    stated = dict(zip(names, values(model, names), strict=True))
    given |= {name: value for name, value in stated.items() if value is not None}
    for name, formula in own.defaults.items():
        if stated[name] is None:
            given[name] = value_at(formula, given)
    return {"n_experts": 0, "top_k": 0} | given


def check(model: Model, own: Structure, batch: int, kv_bits: int) -> None:
    given = placed(model, own, batch, kv_bits)
    exact = counted(model, batch, kv_bits)
    found = {key: value_at(own.figures[key], given) for key in exact}
    assert found == exact


@pytest.mark.parametrize("name", NAMES)
def test_every_preset(name: str) -> None:
    check(preset(name), structure_of(name), 3, 8)


def changes(name: str, dice: random.Random) -> dict[str, Any]:
    """A random change of a preset: any numbers, any switches."""
    model, own = preset(name), structure_of(name)
    names = [f.name for f in own.fields if f.name != "batch"]
    stated = dict(zip(names, values(model, names), strict=True))
    found: dict[str, Any] = {}
    for field, value in stated.items():
        if field not in EXPERTS and dice.random() < 0.5:
            found[field] = max(
                1, int((value or 64) * dice.choice((0.5, 0.75, 1.25, 2, 3)))
            ) + dice.randint(0, 1)
    for place in own.switches:
        if SWITCHES[place] == "experts" and dice.random() < 0.5:
            experts = dice.choice((0, 4, 60))
            found |= {"n_experts": experts} | ({"top_k": dice.randint(1, 4)} if experts else {})
        elif SWITCHES[place] != "experts" and dice.random() < 0.5:
            found[SWITCHES[place]] = dice.random() < 0.5
    return found


def possible(name: str, dice: random.Random) -> tuple[dict[str, Any], Model]:
    while True:
        found = changes(name, dice)
        if "n_heads" in found and dice.random() < 0.7:
            found["n_heads"] = dice.choice((8, 16, 48))
            own = [f.name for f in structure_of(name).fields]
            found |= {n: dice.choice((1, 2, 8)) for n in own if n.endswith("n_kv_heads")}
            found |= {n: 96 for n in ("head_dim",) if n in own}
        try:
            return found, preset(name).with_(**found)
        except InputError:
            continue


@pytest.mark.parametrize("name", representatives().values())
def test_random_changes_of_every_structure(name: str) -> None:
    dice = random.Random(name)
    for _ in range(6):
        fields_, model = possible(name, dice)
        check(model, structure_of(name), dice.randint(1, 9), dice.choice((4, 8, 16, 32)))
        assert fields_ is not None


def solved(model: Model, own: Structure) -> int | None:
    """The crossing as the page finds it: attention at the ends of chunks doubled until it is enough
    or stands still, then halved; then inside the chunk."""
    given = placed(model, own)
    matmuls = value_at(own.figures["matmul_flops_per_token"], given)

    def cost(key: str, n: int) -> int:
        return value_at(own.figures[key], given | {"context": n})

    def halved(key: str, after: int, high: int) -> int:
        while high - after > 1:
            middle = (after + high) // 2
            after, high = (after, middle) if cost(key, middle) >= matmuls else (middle, high)
        return high

    high = 1
    while cost(AT_ENDS, high) < matmuls:
        if cost(AT_ENDS, 2 * high) == cost(AT_ENDS, high):
            return None
        high *= 2
    start = halved(AT_ENDS, high // 2, high)
    end = ceil_div(start, value_at(own.figures[CHUNK], given)) * value_at(own.figures[CHUNK], given)
    return halved("attention_flops_per_token", start - 1, end)


@pytest.mark.parametrize("name", NAMES)
def test_where_attention_equals_the_matmuls(name: str) -> None:
    assert solved(preset(name), structure_of(name)) == preset(name).flops.crossover


def test_crossings_of_changed_shapes() -> None:
    for name in ("llama4-scout", "gemma3-27b", "mistral-7b", "mimo-v2-flash", "deepseek-v3.2"):
        dice = random.Random(name)
        for _ in range(8):
            _, model = possible(name, dice)
            assert solved(model, structure_of(name)) == model.flops.crossover


LOADS: dict[str, dict[str, Any]] = {
    "attention in every layer": {"layers": [{"repeat": 1, "window": 9}, {"window": 300}]},
    "two windows, then all": {"layers": [{"repeat": 1, "window": w} for w in (5, 40)] + [{}]},
    "chunks": {"layers": [{"repeat": 1, "chunk": 90}, {}]},
    "small chunks only": {"chunk": 3},
    "no attention": {"attention": False},
}


def walked(model: Model, most: int) -> int | None:
    """The crossing by asking every length in turn."""
    return next((n for n in range(1, most) if enough(model, n)), None)


def enough(model: Model, n: int) -> bool:
    return flops.attention_per_token(model.ledger, n) >= flops.matmul_per_token(model.ledger)


@pytest.mark.parametrize("layers", LOADS)
def test_crossings_by_walking(layers: str) -> None:
    tiny = {"d_model": 4, "n_layers": 3, "n_heads": 2, "d_ff": 4, "vocab_size": 7, "context": 64}
    model = paramcalc.load({**tiny, **LOADS[layers]})
    assert solved(model, structure(model, SYMBOLS)) == walked(model, 2000)


@pytest.mark.parametrize(
    ("name", "layers"),
    [
        ("gemma3-27b", 1),
        ("gemma3-27b", 5),
        ("gemma2-9b", 1),
        ("gpt-oss-20b", 1),
        ("llama4-scout", 2),
    ],
)
def test_a_model_whose_layers_all_have_windows_never_crosses(name: str, layers: int) -> None:
    """Every layer is full at its window, where attention is still the cheaper."""
    model = preset(name).with_(n_layers=layers)
    assert not any(enough(model, 2**power) for power in range(31))
    assert solved(model, structure_of(name)) is None


def test_many_windows_cost_no_more_than_many_layers() -> None:
    groups: list[dict[str, int]] = [
        {"repeat": 1, "window": i + 1, "n_kv_heads": (1, 2, 4)[i % 3], "d_ff": 100 + i}
        for i in range(200)
    ]
    tiny = {"d_model": 64, "n_layers": 201, "n_heads": 4, "vocab_size": 100, "context": 64}
    model = paramcalc.load({**tiny, "layers": [*groups, {}]})
    own = structure(model, SYMBOLS)
    check(model, own, 2, 16)
    assert solved(model, own) == model.flops.crossover
    assert made([model])


def is_possible(model: Model, found: dict[str, Any]) -> bool:
    try:
        model.with_(**found)
    except InputError:
        return False
    return True


def test_rules_hold_on_the_page_as_in_the_program() -> None:
    """A change breaks a law of the structure exactly where the program refuses it."""
    refused = 0
    for name in representatives().values():
        dice, own = random.Random(f"rules {name}"), structure_of(name)
        for _ in range(10):
            found = changes(name, dice)
            model = preset(name)
            experts = found.get("n_experts", model.spec.n_experts or 0)
            given = (
                placed(model, own)
                | {k: int(v) for k, v in found.items()}
                | {"experts": experts > 0}
            )
            left_out = (
                "head_dim" in own.defaults
                and "head_dim" not in found
                and model.spec.head_dim is None
            )
            for field, formula in own.defaults.items():
                if field not in found and getattr(model.spec, field) is None:
                    given[field] = value_at(formula, given)
            now = EXPERTS_ON * (experts > 0) + DEFAULT_HEAD_DIM * left_out
            broken = any(
                law.when & now == law.when and value_at(law.excess, given) > 0 for law in own.laws
            )
            assert broken == (not is_possible(model, found)), (name, found)
            refused += broken
    assert refused > 50


def test_layers_made_of_blocks_do_not_follow_the_card() -> None:
    model = paramcalc.load({"model_type": "mamba", "num_hidden_layers": 4})
    own = structure(model, SYMBOLS)
    assert [field.name for field in fields(model)] == ["context", "batch"]
    assert own.switches == []
    check(model, own, 2, 16)


def test_a_config_with_plain_layers() -> None:
    model = paramcalc.load({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4})
    own = structure(model, SYMBOLS)
    assert {"d_model", "n_kv_heads", "d_ff"} <= {field.name for field in own.fields}
    check(model, own, 1, 16)


def test_layers_of_multi_token_prediction_stand_beside_every_switch() -> None:
    """They are blocks of the family's own, and no part of what is counted."""
    config = {"model_type": "deepseek_v3", "n_routed_experts": 8, "num_nextn_predict_layers": 1}
    model = paramcalc.load(config)
    assert model.params.mtp > 0
    own = structure(model, Symbols())
    tied = {**placed(model, own), "tie_embeddings": 1}
    total = value_at(own.figures["params"], tied)
    assert total == model.params.total - 129_280 * 7_168  # V x d of the head
