"""One formula, several kinds of number: the ledger's counting code on each kind that Python has."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from hypothesis import given, settings

import paramcalc
from paramcalc.build import ledger_of, plan
from paramcalc.layout import is_literal
from paramcalc.ledger import ROLES
from paramcalc.model import Model
from paramcalc.quantities import params
from paramcalc.quantities.catalogue import CATALOGUE, At
from paramcalc.spec import ModelSpec
from paramcalc.symbolic import NAMES, symbolic
from paramcalc.symbols import lift
from tests.strategies import specs

SOLVED = "attention_equals_matmuls_at"
FOLDS = [key for key in CATALOGUE if key != SOLVED]
PARTS = [f"params_{role}" for role in ROLES]
MOST_INT64 = 2**63 - 1


def folded(spec: ModelSpec, at: At) -> dict[str, Any]:
    """Every figure that is a fold, on the kind of number that the spec is made of."""
    ledger = ledger_of(plan(spec))
    found: dict[str, Any] = {key: CATALOGUE[key].of(ledger, at) for key in FOLDS}
    return found | {f"params_{r}": params.of_roles(ledger.tensors, r) for r in ROLES}


def swapped(section: Any, make: Any, path: str = "") -> Any:
    """A copy of a section whose numbers are what ``make`` gives for them."""
    update: dict[str, Any] = {}
    for field in type(section).model_fields:
        value = getattr(section, field)
        if field in NAMES and type(value) is int and not is_literal(value, 0):
            update[field] = make(f"{path}{field}", value)
        elif field in ("mla", "encoder") and value is not None:
            update[field] = swapped(value, make, f"{path}{field}_")
        elif field in ("layers", "pattern") and value is not None:
            update[field] = tuple(swapped(v, make, f"{path}{i}_") for i, v in enumerate(value))
    return section.model_copy(update=update)


def on_arrays(spec: ModelSpec, at: At) -> dict[str, int]:
    """The figures on int64 arrays; those that pass its end are left out."""
    spec_ = swapped(spec, lambda _, value: np.array([[value], [value]], dtype=np.int64))
    n: Any = np.array([at.n, at.n, at.n], dtype=np.int64)
    exact, found = folded(spec, at), {}
    for key, value in folded(spec_, at._replace(n=n)).items():
        if abs(exact[key]) <= MOST_INT64:
            every = np.unique(np.asarray(value))
            assert every.size == 1, key
            found[key] = int(every[0])
    return found


def on_symbols(spec: ModelSpec, at: At) -> dict[str, int]:
    """The figures' values on the program's own symbols."""
    symbols, context = symbolic(spec, at.n)
    found = folded(symbols, at._replace(n=context))
    return {key: lift(value).value for key, value in found.items()}


@cache
def random_models(examples: int) -> list[Model]:
    """Models of random valid shapes, the same in every run."""
    drawn: list[dict[str, Any]] = []

    @settings(max_examples=examples, derandomize=True, database=None, deadline=None)
    @given(specs())
    def collect(fields: dict[str, Any]) -> None:
        if fields not in drawn:
            drawn.append(fields)

    collect()
    return [paramcalc.load({**own, "name": f"random {i}"}) for i, own in enumerate(drawn)]
