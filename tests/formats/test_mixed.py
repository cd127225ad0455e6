"""llama.cpp's file types as a format of a model: bytes of each row, and of a rank's part."""

from __future__ import annotations

import pytest

from paramcalc import formats
from paramcalc.deploy import parallel
from paramcalc.deploy.parallel import Layout
from paramcalc.errors import InputError
from paramcalc.formats import llama_cpp
from paramcalc.formats.mixed import Mixed, is_file_type, mixed
from paramcalc.model import Model
from paramcalc.spec import ModelSpec
from tests.conftest import preset

# tools/quantize/README.md of llama.cpp, Llama 3.1 8B: bits a weight
BITS = {"Q4_K_M": "4.8944", "Q5_K_M": "5.7036", "Q6_K": "6.5633", "Q8_0": "8.5008"}


@pytest.mark.parametrize(("name", "bits"), BITS.items())
def test_the_published_mean(name: str, bits: str) -> None:
    own = preset("llama3.1-8b").format(name.lower())
    assert isinstance(own, Mixed)
    assert f"{8 * own.n_bytes / own.elements:.4f}" == bits
    assert own.elements == 8_030_261_248
    assert own.bits == int(float(bits)) + 1


@pytest.mark.parametrize("name", ["llama3.1-8b", "gemma2-9b", "qwen3-32b", "gpt-oss-20b", "gpt2"])
@pytest.mark.parametrize("kind", ["Q8_0", "Q4_K_M", "MXFP4_MOE"])
def test_rows_add_up_to_the_file(name: str, kind: str) -> None:
    """To a byte for each row, and what no row of the ledger holds."""
    model = preset(name)
    own = mixed(kind, model.ledger, None, model.name)
    rows = [t for t in model.ledger.tensors if t.stored]
    apart = own.elements - sum(t.stored for t in rows)
    assert abs(formats.weight_bytes(model.ledger, own) - own.n_bytes) <= 4 * apart + len(rows)


def test_q8_is_34_bytes_for_32_weights() -> None:
    """And norms are in 32 bits."""
    model = preset("llama3-8b")
    own = model.format("Q8_0")
    for tensor in model.ledger.tensors:
        size = formats.tensor_bytes(tensor, own)
        assert size == tensor.stored * 4 if tensor.role == "norm" else tensor.stored * 34 // 32


def test_a_rank_has_its_share() -> None:
    """Pro rata: 8 ranks of Llama 3 70B hold an eighth of all but the norms."""
    model = preset("llama3-70b")
    own = model.format("Q4_K_M")
    part = parallel.sharded(model.ledger, Layout(tp=8))
    rest = [t for t in model.ledger.tensors if t.role == "norm"]
    norms = sum(formats.tensor_bytes(t, own) for t in rest)
    whole = formats.weight_bytes(model.ledger, own) - norms
    held = formats.weight_bytes(part, own) - norms
    assert 0 <= 8 * held - whole < 8 * len(part.tensors)


def test_names() -> None:
    assert is_file_type("q4_k_m")
    assert is_file_type("IQ2_XS")
    for name in ("bf16", "F16", "f32", "fp8", "int4", "", "q9_k"):
        assert not is_file_type(name)
    # a name that both have is the plain format
    assert preset("gpt-oss-20b").format("mxfp4").name == "mxfp4"


def test_more_layers_than_llama_cpp_reads() -> None:
    """``LLAMA_MAX_LAYERS`` is 512."""
    deep = ModelSpec(d_model=256, n_layers=513, n_heads=4, vocab_size=256)
    with pytest.raises(InputError, match=r"^dtype = Q4_K_M: llama\.cpp reads at most 512"):
        Model(deep).format("Q4_K_M")
    assert llama_cpp.weight_bytes(Model(deep).with_(n_layers=512).ledger, "Q8_0")
