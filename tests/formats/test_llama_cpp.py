"""llama.cpp's file types against the figures and the files that others published."""

from __future__ import annotations

import pytest

import paramcalc
from paramcalc.formats import llama_cpp
from paramcalc.formats.gguf_layout import Layout, layout_of
from tests.conftest import preset

# tools/quantize/README.md, Llama 3.1 8B: bits per weight and GiB. Its IQ3_XXS was made with an
# importance matrix and its IQ4 without. It prints Q4_K_S twice and Q3_K_M not at all.
PAGE = {
    "IQ1_S": "2.0042 1.87",
    "IQ1_M": "2.1460 2.01",
    "IQ2_XXS": "2.3824 2.23",
    "IQ2_XS": "2.5882 2.42",
    "IQ2_S": "2.7403 2.56",
    "IQ2_M": "2.9294 2.74",
    "IQ3_XXS": "3.2548 3.04",
    "IQ3_XS": "3.4977 3.27",
    "IQ3_S": "3.6606 3.42",
    "IQ3_M": "3.7628 3.52",
    "IQ4_XS": "4.4597 4.17",
    "IQ4_NL": "4.6818 4.38",
    "Q2_K_S": "2.9697 2.78",
    "Q2_K": "3.1593 2.95",
    "Q3_K_S": "3.6429 3.41",
    "Q3_K_L": "4.2979 4.02",
    "Q4_K_S": "4.6672 4.36",
    "Q4_K_M": "4.8944 4.58",
    "Q5_K_S": "5.5704 5.21",
    "Q5_K_M": "5.7036 5.33",
    "Q6_K": "6.5633 6.14",
    "Q8_0": "8.5008 7.95",
    "F16": "16.0005 14.96",
}


@pytest.mark.parametrize(("name", "figures"), PAGE.items())
def test_the_published_page(name: str, figures: str) -> None:
    ledger = preset("llama3.1-8b").ledger
    bits, gib = figures.split()
    assert f"{float(llama_cpp.bits_per_weight(ledger, name)):.4f}" == bits
    assert f"{llama_cpp.weight_bytes(ledger, name) / 2**30:.2f}" == gib


# hundredths of a GiB that llama-quantize --help states for Llama 3 8B; its Q2_K_S is older
HELP = (
    "Q4_0 434 Q4_1 478 Q5_0 521 Q5_1 565 Q2_K 296 Q3_K_S 341 Q3_K_M 374 Q3_K_L 403 "
    "Q4_K_S 437 Q4_K_M 458 Q5_K_S 521 Q5_K_M 533 Q6_K 614 Q8_0 796"
)


def pairs(text: str) -> list[tuple[str, int]]:
    words = text.split()
    return [(name, int(size)) for name, size in zip(words[::2], words[1::2], strict=True)]


def test_the_help() -> None:
    """Rounded, of files with some MiB of vocabulary."""
    for name, size in pairs(HELP):
        ours = llama_cpp.weight_bytes(preset("llama3-8b").ledger, name) * 100 / 2**30
        assert -0.5 <= size - ours <= 1.5, name


# an older state of that page, Llama 2. Its Q2_K is another mix (before January 2024), and so are
# Q3_K_M and Q4_K_S of the 70B, which are left out.
OLDER = ["Q3_K_S", "Q3_K_M", "Q3_K_L", "Q4_K_S", "Q4_K_M", "Q5_K_S", "Q5_K_M", "Q6_K"]


@pytest.mark.parametrize(
    ("model", "figures"),
    [
        ("llama2-7b", "3.50 3.91 4.27 4.58 4.84 5.52 5.68 6.56"),
        ("llama2-13b", "3.48 3.89 4.26 4.56 4.83 5.51 5.67 6.56"),
        ("llama2-70b", "3.47 - 4.19 - 4.80 5.50 5.65 6.56"),
    ],
)
def test_the_older_page(model: str, figures: str) -> None:
    ledger = preset(model).ledger
    for name, figure in zip(OLDER, figures.split(), strict=True):
        if figure != "-":
            assert f"{float(llama_cpp.bits_per_weight(ledger, name)):.2f}" == figure, name


def test_q4_k_m_of_llama_by_hand() -> None:
    d, kv, ff, vocab = 4096, 1024, 14336, 128256
    better = [*range(4), *range(6, 28, 3), *range(28, 32)]  # eighths at the ends, thirds between
    assert len(better) == 16
    q4, q6 = (d * d * 2 + kv * d + 2 * ff * d) * 32, (kv + ff) * d
    count = (q4 + 16 * q6 + vocab * d) * 144 // 256 + (16 * q6 + vocab * d) * 210 // 256
    assert llama_cpp.weight_bytes(preset("llama3.1-8b").ledger, "q4_k_m") == count + 65 * d * 4


# sizes in hundredths of a GB on the model cards of the files; all are bartowski's
FILES = [
    ("phi4", True, "F16 2932 Q8_0 1558 Q6_K 1203 Q5_K_M 1060 Q5_K_S 1015 Q4_1 927"),  # b4456
    ("phi4", True, "Q4_K_M 905 Q4_K_S 844 Q4_0 841 IQ4_NL 838"),
    ("llama3.1-70b", True, "Q8_0 7498 Q6_K 5789 Q5_K_M 4995 Q5_K_S 4866 Q4_K_M 4252"),
    ("llama3.1-70b", True, "Q4_K_S 4035 Q4_0 4012 IQ4_XS 3790 Q3_K_L 3714 Q3_K_M 3427"),
    ("llama3.1-70b", True, "IQ3_M 3194 Q3_K_S 3091"),
    ("smollm3-3b", True, "BF16 616 Q8_0 328 Q6_K 253 Q5_K_M 221 Q5_K_S 216 Q4_1 198"),  # b5856
    ("smollm3-3b", True, "Q4_K_M 192 Q4_K_S 182 Q4_0 181"),
    ("qwen3-30b-a3b", True, "BF16 6110 Q8_0 3248 Q6_K 2510"),  # b5200
    ("gemma2-9b", True, "Q8_0 982"),  # b3278
]


@pytest.mark.parametrize(("model", "imatrix", "sizes"), FILES)
def test_published_files(model: str, imatrix: bool, sizes: str) -> None:
    """A file has up to 15 MB of vocabulary beside its tensors; its size is rounded to 10 MB."""
    for name, size in pairs(sizes):
        ledger, layout = preset(model).ledger, layout_of(preset=model)
        ours = llama_cpp.weight_bytes(ledger, name, layout, imatrix=imatrix)
        assert -5 <= (size * 10**7 - ours) / 10**6 <= 20, name


def test_deepseek_v3_before_its_attention_was_split() -> None:
    """Release b4944 kept ``kv_b`` whole, in files of 713.29 to 404.43 GB."""
    ledger, layout = preset("deepseek-v3").ledger, Layout("deepseek2", splits_kv=False)
    for name, size in pairs("Q8_0 71329 Q6_K 55080 Q5_K_M 47540 Q5_K_S 46181 Q4_K_M 40443"):
        ours = llama_cpp.weight_bytes(ledger, name, layout, imatrix=True)
        assert -5 <= (size * 10**7 - ours) / 10**6 <= 20, name


def test_mixtral_8x22b() -> None:
    """Release b2636, without an importance matrix: up to 15 MB less than here, of which 5.5 are
    its routers, if they were in F16."""
    ledger = preset("mixtral-8x22b").ledger
    first = "Q5_K_M 9996 Q5_K_S 9697 Q4_K_M 8558 Q4_K_S 8047 IQ4_NL 8047 IQ4_XS 7635 Q3_K_L 7257"
    rest = "Q3_K_M 6778 IQ3_M 6449 IQ3_S 6149 Q3_K_S 6149 IQ3_XS 5822 Q2_K 5210"
    for name, size in pairs(f"{first} {rest}"):
        ours = llama_cpp.weight_bytes(ledger, name)
        assert abs(size * 10**7 - ours) < 15 * 10**6, name


def test_gpt_oss_20b() -> None:
    """Its file in MXFP4 has 12.1 GB."""
    ours = llama_cpp.weight_bytes(preset("gpt-oss-20b").ledger, "mxfp4_moe")
    assert 12_050_000_000 < ours < 12_150_000_000


def test_layers_are_counted_by_the_type_they_get() -> None:
    found = llama_cpp.tensor_types(preset("llama3.1-8b").ledger, "Q4_K_M")
    down = {t.type: t for t in found if t.name == "blk.*.ffn_down.weight"}
    assert {name: t.layers for name, t in down.items()} == {"Q4_K": 16, "Q6_K": 16}
    assert down["Q6_K"].rows == ("ffn.down",)
    assert down["Q6_K"].n_bytes == 16 * 4096 * 14336 * 210 // 256
    assert sum(t.n_bytes for t in found) == llama_cpp.weight_bytes(
        preset("llama3.1-8b").ledger, "Q4_K_M"
    )


def test_names() -> None:
    assert llama_cpp.find("q4_k").name == llama_cpp.find("Q4_k_m").name == "Q4_K_M"
    assert len(llama_cpp.file_types()) == 35  # llama-quantize --help, without aliases and COPY
    with pytest.raises(paramcalc.InputError, match=r"dtype = q4_k_x: no file type of llama\.cpp"):
        llama_cpp.find("q4_k_x")
