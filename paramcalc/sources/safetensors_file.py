"""The header of safetensors files, and the index of a sharded checkpoint."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from paramcalc.errors import FileError
from paramcalc.sources import config_file
from paramcalc.sources.contents import Contents, FileTensor, read_all
from paramcalc.sources.files import read_text

BITS = {
    "F64": 64,
    "F32": 32,
    "F16": 16,
    "BF16": 16,
    "F8_E4M3": 8,
    "F8_E5M2": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "F4": 4,
    "I64": 64,
    "U64": 64,
    "I32": 32,
    "U32": 32,
    "I16": 16,
    "U16": 16,
    "I8": 8,
    "U8": 8,
    "BOOL": 8,
    "C64": 64,
}
MOST_INDEX = 67_108_864
MOST_VALUES = 4096


def read(path: Path) -> Contents:
    """Return what a file holds. Raises ``FileError`` for a broken one or without the extra."""
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise FileError(f"{path}: to read it: pip install 'paramcalc[safetensors]'") from None
    try:
        with safe_open(str(path), framework="numpy") as file:
            tensors = []
            for name in file.keys():  # noqa: SIM118 (no mapping)
                part = file.get_slice(name)
                dtype, shape = part.get_dtype(), tuple(part.get_shape())
                tensor = FileTensor(name, shape, dtype, 0)
                bits = BITS.get(dtype)
                if bits is None:
                    raise FileError(f"{path}: {name[:60]} has the unknown dtype {dtype}")
                n_bytes = -(-tensor.elements * bits // 8)
                values = _values(file, name, dtype) if n_bytes <= MOST_VALUES else ()
                tensors.append(tensor._replace(n_bytes=n_bytes, values=values))
    except SafetensorError as error:
        raise FileError(f"{path}: broken safetensors file: {str(error)[:120]}") from None
    except OSError as error:
        why = (error.strerror or str(error) or "cannot be read").lower()
        raise FileError(f"{path}: {why}; check the path") from None
    return Contents((str(path),), tuple(tensors))


def _values(file: Any, name: str, dtype: str) -> tuple[int, ...]:
    """The shape that a small tensor beside a packed one states, else nothing."""
    shape: Any = None
    if name.endswith(".weight_shape") and dtype in ("I64", "I32", "U32", "U64"):
        shape = [int(value) for value in file.get_tensor(name).ravel()]
    elif ".quant_state.bitsandbytes__" in name and dtype == "U8":
        with suppress(ValueError, RecursionError):
            state = json.loads(bytes(file.get_tensor(name)))
            shape = state.get("shape") if isinstance(state, dict) else None
    sizes = shape if isinstance(shape, list) else []
    return tuple(sizes) if all(type(size) is int and 0 < size < 2**40 for size in sizes) else ()


def read_index(path: Path) -> Contents:
    """Return what the shards of an index hold; they lie beside it. Raises ``FileError``."""
    data = config_file.parse(read_text(path, MOST_INDEX), str(path))
    where = data.get("weight_map")
    if not isinstance(where, dict) or not all(isinstance(v, str) for v in where.values()):
        raise FileError(f"{path}: has no weight_map of tensor names to files; is it an index?")
    shards = sorted(set(where.values()))
    outside = [name for name in shards if Path(name).name != name or not name]
    if outside:
        raise FileError(f"{path}: {outside[0][:60]!r} does not lie beside the index")
    missing = [name for name in shards if not (path.parent / name).is_file()]
    if missing:
        raise FileError(f"{path}: {missing[0][:80]} is missing ({len(missing)} of {len(shards)})")
    contents = read_all(path.parent / name for name in shards)
    lost = where.keys() - {t.name for t in contents.tensors}
    if lost:
        raise FileError(f"{path}: names {sorted(lost)[0][:80]}, which no shard holds")
    return contents
