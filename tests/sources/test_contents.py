"""Files of tensors that cannot be read: broken, hostile, or without the extra."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import paramcalc
from paramcalc.sources.contents import read_file
from tests.audit.files import write_gguf


def test_an_index_cannot_point_elsewhere(tmp_path: Path) -> None:
    index = tmp_path / "model.safetensors.index.json"
    for name in ("../other.safetensors", "/etc/passwd", ""):
        index.write_text(json.dumps({"weight_map": {"a": name}}), encoding="utf-8")
        with pytest.raises(paramcalc.FileError, match="does not lie beside the index"):
            read_file(index)
    index.write_text("{}", encoding="utf-8")
    with pytest.raises(paramcalc.FileError, match="has no weight_map"):
        read_file(index)


def hostile(tmp_path: Path) -> dict[str, bytes]:
    whole = write_gguf(tmp_path / "whole.gguf").read_bytes()
    head = b"GGUF" + (3).to_bytes(4, "little")

    def u64(value: int) -> bytes:
        return value.to_bytes(8, "little")

    key = u64(1) + b"k"
    array = (9).to_bytes(4, "little")
    return {
        "empty.gguf": b"",
        "magic.gguf": b"GGML" + whole[4:],
        "version.gguf": b"GGUF" + (99).to_bytes(4, "little") + whole[8:],
        "cut.gguf": whole[:200],
        "cut data.gguf": whole[:-4096],
        "tensors.gguf": head + u64(2**60) + u64(0),
        "entries.gguf": head + u64(0) + u64(2**60),
        "string.gguf": head + u64(0) + u64(1) + u64(2**62),
        "array.gguf": head + u64(0) + u64(1) + key + array + (8).to_bytes(4, "little") + u64(2**40),
        "kind.gguf": head + u64(0) + u64(1) + key + (77).to_bytes(4, "little"),
        "offset.gguf": head
        + u64(1)
        + u64(0)
        + key
        + (1).to_bytes(4, "little")
        + u64(4)
        + (0).to_bytes(4, "little")
        + u64(2**63),
        "dims.gguf": head + u64(1) + u64(0) + key + (2**31).to_bytes(4, "little"),
        "empty.safetensors": b"",
        "length.safetensors": u64(2**62) + b"{}",
        "json.safetensors": u64(4) + b"{{{{",
        "cut.safetensors": u64(1000) + b'{"a":',
        "offsets.safetensors": u64(56)
        + b'{"a":{"dtype":"F32","shape":[99],"data_offsets":[0,8]}}'.ljust(56),
    }


def test_without_the_extras_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "gguf", None)
    for suffix in ("safetensors", "gguf"):
        path = tmp_path / f"m.{suffix}"
        path.write_bytes(b"x")
        with pytest.raises(paramcalc.FileError, match=rf"pip install 'paramcalc\[{suffix}\]'"):
            read_file(path)
