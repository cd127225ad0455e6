"""Roles: what the columns of a planner's table say, found by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from paramcalc.errors import InputError, did_you_mean
from paramcalc.spelling import shown

GUESSES = {
    "model": "model modelname modelid modelpath hubid hfid hfmodel checkpoint llm",
    "gpu": "gpu gputype gpumodel gpukind gpuname accelerator hardware",
    "gpus": "gpus gpucount ngpus numgpus numberofgpus nogpus accelerators",
    "tp": "tp tensorparallel tensorparallelism tensorparallelsize tpsize",
    "context": "context contextlength contextlen ctx contextwindow contexttokens seqlen"
    " sequencelength maxmodellen",
    "batch": "batch batchsize concurrency concurrentrequests concurrentsequences",
    "dtype": "dtype weightdtype weightformat quantization quant precision",
    "kv_dtype": "kvdtype kvcachedtype cachedtype kvformat",
    "price": "priceperhour priceperhr priceperhourusd pricepergpuhour gpuhourprice gpupriceperhour",
}
"""What a column may be called, without case, spaces and punctuation, the likeliest first."""
MOST_NAMED = 20
"""Columns that a message names."""


def find(headers: Sequence[str], given: Mapping[str, str | None]) -> dict[str, int]:
    """Return the place of each role's column, from 0: the one ``given`` by name, else a guess.

    A role without a column is left out. Raises ``InputError`` for a name that no column has or
    two have, for one column in two roles, and where no column can be the model's.
    """
    found: dict[str, int] = {}
    for role, name in given.items():
        if name is not None:
            found[role] = _named(headers, role, name)
    plain = [_key(header) for header in headers]
    for role, guesses in GUESSES.items():
        free = [guess for guess in guesses.split() if plain.count(guess) == 1]
        if role not in found and free and plain.index(free[0]) not in found.values():
            found[role] = plain.index(free[0])
    if "model" not in found:
        raise InputError(
            f"model-column: no column is called model; give --model-column, one of {named(headers)}"
        )
    for role, place in found.items():
        other = next(r for r, p in found.items() if p == place)
        if other != role:
            raise InputError(
                f"{_option(role)} = {shown(headers[place])}: is the column of {other} already;"
                " name another"
            )
    return found


def known(headers: Sequence[str]) -> int:
    """Return how many columns have a name that says their role."""
    guesses = {guess for names in GUESSES.values() for guess in names.split()}
    return sum(_key(header) in guesses for header in headers)


def is_heading(headers: Sequence[str]) -> bool:
    """Whether a row names a column of models."""
    return not {_key(header) for header in headers}.isdisjoint(GUESSES["model"].split())


def named(headers: Sequence[str]) -> str:
    """Return the columns that have a name, as a message lists them."""
    texts = [shown(header) for header in headers if header.strip()]
    more = f" and {len(texts) - MOST_NAMED} more" if len(texts) > MOST_NAMED else ""
    return (", ".join(texts[:MOST_NAMED]) + more) or "none: the row is empty; give --header-row"


def _named(headers: Sequence[str], role: str, name: str) -> int:
    option = f"{_option(role)} = {shown(name)}"
    for same in (str.strip, _key):
        wanted = same(name)
        places = [i for i, header in enumerate(headers) if wanted and same(header) == wanted]
        if len(places) > 1:
            raise InputError(f"{option}: {len(places)} columns have that name; rename one")
        if places:
            return places[0]
    near = did_you_mean(name, headers)
    raise InputError(f"{option}: no such column{near}; there are {named(headers)}")


def _option(role: str) -> str:
    return f"{role.replace('_', '-')}-column"


def _key(name: str) -> str:
    """A name without case, spaces and punctuation."""
    return re.sub(r"[\W_]+", "", name.lower())
