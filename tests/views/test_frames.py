"""Frames hold the same integers, in the narrowest kind that does."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from paramcalc.errors import InputError
from paramcalc.views import frames

COLUMNS: dict[str, Any] = {
    "array": np.array([1, 2**62], dtype=np.int64),
    "exact": np.array([2**63, -(2**100)], dtype=object),
    "int": [2**63 - 1, -(2**63)],
    "empty": [None, 2**53 + 1],
    "beyond": [2**63, None],
    "huge": [2**130, 1],
    "text": ["a", None],
    "truth": [True, False],
    "mixed": [3, "x"],
}


def test_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = frames.pandas(COLUMNS)
    kinds = {name: str(kind) for name, kind in frame.dtypes.items()}
    assert [kinds[name] for name in COLUMNS] == [
        *("int64", "object", "int64", "Int64", "object", "object", "object", "bool", "object"),
    ]
    for name, values in COLUMNS.items():
        found = [None if pandas.isna(value) else value for value in frame[name]]
        assert found == list(values), name


def test_polars() -> None:
    polars = pytest.importorskip("polars")
    frame = frames.polars(COLUMNS)
    assert [frame.schema[name] for name in COLUMNS] == [
        *(polars.Int64, polars.Int128, polars.Int64, polars.Int64, polars.Int128),
        *(polars.Object, polars.String, polars.Boolean, polars.Object),
    ]
    for name, values in COLUMNS.items():
        assert frame[name].to_list() == list(values), name


def test_arrow() -> None:
    frame = frames.arrow(COLUMNS)
    kinds = [str(frame.schema.field(name).type) for name in COLUMNS]
    assert kinds == [
        *("int64", "decimal128(38, 0)", "int64", "int64", "decimal128(38, 0)"),
        *("decimal256(76, 0)", "string", "bool", "string"),
    ]
    for name in list(COLUMNS)[:-1]:
        assert frame[name].to_pylist() == list(COLUMNS[name]), name
    assert frame["mixed"].to_pylist() == ["3", "x"]


@pytest.mark.parametrize("name", ["pandas", "polars", "pyarrow"])
def test_what_is_not_installed_is_said(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    call = {"pandas": frames.pandas, "polars": frames.polars, "pyarrow": frames.arrow}[name]
    with pytest.raises(InputError) as error:
        call({"a": [1]})
    assert str(error.value) == f"a frame of {name} needs {name}; pip install {name}"


def test_no_frame_library_is_loaded_by_an_answer() -> None:
    code = (
        "import sys, paramcalc; r = paramcalc.compare('gpt2', 'gpt2-xl'); r._repr_html_();"
        "print([m for m in ('pandas', 'polars', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
