"""The header of a GGUF file, held against the reader of the ``gguf`` package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from paramcalc.errors import FileError
from paramcalc.sources.gguf_file import read

TOKENS = 5_000


def written(path: Path, order: gguf.GGUFEndian) -> Path:
    writer = gguf.GGUFWriter(str(path), "llama", endianess=order)
    writer.add_block_count(3)
    writer.add_token_list([f"t{i}é" for i in range(TOKENS)])
    writer.add_token_scores([0.5] * TOKENS)
    writer.add_array("x.words", ["a", "bé", ""])
    writer.add_array("x.numbers", [1, -2, 3])
    writer.add_float32("x.half", 0.5)
    writer.add_float64("x.quarter", 0.25)
    writer.add_bool("x.yes", True)
    writer.add_int64("x.below", -5)
    writer.add_uint8("x.small", 200)
    writer.add_custom_alignment(64)
    data = np.zeros((6, 256), np.float32)
    for kind in (gguf.GGMLQuantizationType.Q8_0, gguf.GGMLQuantizationType.Q4_0):
        writer.add_tensor(kind.name, gguf.quantize(data, kind), raw_dtype=kind)
    writer.add_tensor("plain", np.zeros((2, 3, 5), np.float16))
    writer.add_tensor("row", np.zeros(7, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("order", list(gguf.GGUFEndian))
def test_it_reads_what_the_package_reads(tmp_path: Path, order: gguf.GGUFEndian) -> None:
    path = written(tmp_path / "m.gguf", order)
    found, theirs = read(path), gguf.GGUFReader(str(path))
    assert [(t.name, t.shape, t.dtype, t.n_bytes) for t in found.tensors] == [
        (t.name, tuple(reversed(t.shape.tolist())), t.tensor_type.name, t.n_bytes)
        for t in theirs.tensors
    ]
    expected: dict[str, Any] = {
        key: field.contents() for key, field in theirs.fields.items() if not key.startswith("GGUF.")
    }
    for key in ("tokenizer.ggml.tokens", "tokenizer.ggml.scores"):
        assert len(expected[key]) == TOKENS
        expected[key] = TOKENS
    assert dict(found.metadata) == expected


def test_a_block_that_is_not_whole_and_a_name_that_stands_twice(tmp_path: Path) -> None:
    def u64(value: int) -> bytes:
        return value.to_bytes(8, "little")

    def u32(value: int) -> bytes:
        return value.to_bytes(4, "little")

    def tensor(size: int, kind: int) -> bytes:
        return u64(1) + b"w" + u32(1) + u64(size) + u32(kind) + u64(0)

    for tensors, says in (
        ([tensor(33, 8)], "33 elements in blocks of 32"),  # Q8_0
        ([tensor(32, 99)], "the unknown type 99"),
        ([tensor(4, 0), tensor(4, 0)], "two tensors of one name"),
        ([tensor(4096, 0)], "ends after the file"),
    ):
        path = tmp_path / "m.gguf"
        head = b"GGUF" + u32(3) + u64(len(tensors)) + u64(0) + b"".join(tensors)
        path.write_bytes(head + bytes(64))
        with pytest.raises(FileError, match=says):
            read(path)
