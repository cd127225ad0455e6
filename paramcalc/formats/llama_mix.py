"""Which type each tensor gets in a llama.cpp file type: the mixtures of ``llama-quantize``.

The rules are those of ``src/llama-quant.cpp`` in https://github.com/ggml-org/llama.cpp, read in
2026. Since its tensors are sorted into categories, that source sends a fused ``attn_qkv`` (and
MiniCPM3's ``attn_kv_b``) through the rules of ``attn_v``, before a rule of its own that it can no
longer reach. Here the rule of its own holds: the files that are published were made with it. Models
with Q, K and V apart are the same under both.
"""

from __future__ import annotations

from typing import NamedTuple

from paramcalc.errors import InputError
from paramcalc.formats.ggml_types import TYPES
from paramcalc.formats.gguf_layout import GgufTensor

_LOWEST = frozenset({"IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M"})
"""File types with rules of their own for every matrix."""
_WIDER = frozenset({"IQ2_S", "IQ2_M"})
_FIVE_BIT_HEAD = _LOWEST | {"IQ3_XXS"}
_FOUR_BIT_EXTRAS = frozenset({"TQ1_0", "TQ2_0", "Q2_0"})

_EMBEDDING = (
    dict.fromkeys(_LOWEST - _WIDER, "Q2_K")
    | dict.fromkeys(_WIDER | {"IQ3_XXS"}, "IQ3_S")
    | dict.fromkeys(_FOUR_BIT_EXTRAS, "Q4_K")
)
_VALUE = {"Q2_K": "Q3_K", "IQ3_M": "Q4_K", "Q3_K_L": "Q5_K"}
_VALUE_OF_MANY = {
    **dict.fromkeys(("Q2_K", "Q2_K_S", "IQ3_XXS", "IQ3_XS", "IQ3_S"), "Q4_K"),
    **dict.fromkeys(("IQ4_NL", "IQ4_XS"), "Q5_K"),
}  # where at least four query heads share a value head
_QUERY_KEY = {"IQ3_XS": "IQ3_XXS", "IQ3_XXS": "IQ2_S"}
_FUSED = dict.fromkeys(("Q3_K_M", "Q3_K_L", "IQ3_M"), "Q4_K") | {"Q4_K_M": "Q5_K", "Q5_K_M": "Q6_K"}
_OUT = {"Q2_K": "Q3_K", "IQ3_XXS": "IQ3_S", "Q3_K_M": "Q4_K", "Q3_K_L": "Q5_K", "IQ3_M": "Q4_K"}
_OUT_LOWEST = dict.fromkeys(("IQ1_S", "IQ1_M"), "IQ2_XXS") | dict.fromkeys(_WIDER, "IQ3_S")
_OUT_OF_EIGHT = frozenset({"Q2_K", "Q3_K_S", "Q3_K_M", "Q4_K_S", "Q4_K_M"}) | frozenset(
    {"IQ3_XXS", "IQ3_XS", "IQ3_S", "IQ3_M", "IQ4_NL", "IQ4_XS"}
)  # eight experts: Q5_K
_FALLBACK = (
    dict.fromkeys(("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S"), "IQ4_NL")
    | dict.fromkeys(("IQ3_XXS", "IQ3_S", "IQ4_XS"), "IQ4_NL")
    | dict.fromkeys(("Q2_0", "Q2_K", "Q3_K", "TQ1_0", "TQ2_0"), "Q4_0")
    | {"Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}
)
"""What stands in where a row is not whole blocks."""


class Traits(NamedTuple):
    """What the rules ask of a model: GGUF architecture, layers, routed experts, how many query
    heads share a value head, and whether the head is stored apart from the embedding."""

    arch: str
    n_layers: int
    n_experts: int
    group: int
    has_head: bool

    @property
    def is_70b(self) -> bool:
        """Whether llama.cpp calls it a 70B: by its 80 layers, under three architectures."""
        shared = self.arch == "llama" and self.group > 1
        return self.n_layers == 80 and (shared or self.arch in ("qwen2", "deci"))


class Mix:
    """The types of one model's tensors. Ask for them in the file's order: some rules count."""

    def __init__(self, file_type: str, base: str, imatrix: bool, traits: Traits) -> None:
        self.name, self.base, self.imatrix, self.traits = file_type, base, imatrix, traits
        self.seen = {"attn_v": 0, "ffn_down": 0, "ffn_gate": 0, "ffn_up": 0}

    def type_of(self, tensor: GgufTensor) -> str:
        """Return the name of a tensor's type. Raises ``InputError`` where no type fits its rows."""
        if tensor.keeps == "F32":
            return "F32"
        if self.base in ("F32", "F16", "BF16"):
            return self.base
        if tensor.keeps is not None:
            return tensor.keeps
        return self._fitting(tensor, self._chosen(tensor))

    def _fitting(self, tensor: GgufTensor, wanted: str) -> str:
        columns = tensor.shape[-1]
        if TYPES[wanted].fits(columns):
            return wanted
        if wanted not in _FALLBACK:
            raise InputError(
                f"dtype = {self.name.lower()}: a row of {columns:,} in {tensor.name} is not whole "
                f"blocks of {TYPES[wanted].weights}, which llama-quantize refuses; take f16"
            )
        other = _FALLBACK[wanted]
        return other if TYPES[other].fits(columns) else "F16"

    def _chosen(self, tensor: GgufTensor) -> str:
        name, file = tensor.name, self.name
        embeds = name in ("token_embd.weight", "per_layer_token_embd.weight")
        if name == "output.weight" or (embeds and not self.traits.has_head):
            return self._head(tensor)
        if file == "MXFP4_MOE":  # experts, and any other stack of matrices
            return "MXFP4" if len(tensor.shape) == 3 else "Q8_0"
        if embeds:
            return _EMBEDDING.get(file, self.base)
        if file in _LOWEST:
            return self._lowest(tensor)
        if "attn_v.weight" in name:
            return self._value()
        if "attn_k.weight" in name and self.traits.n_experts == 8:
            return "Q8_0"
        if "attn_k.weight" in name or "attn_q.weight" in name:
            return _QUERY_KEY.get(file, self.base)
        if "ffn_down" in name:
            return self._down(self._place(tensor, "ffn_down"))
        if "attn_output.weight" in name:
            return self._out()
        if "attn_qkv.weight" in name:
            return _FUSED.get(file, self.base)
        for part in ("ffn_gate", "ffn_up"):
            if part in name:
                n, i = self.traits.n_layers, self._place(tensor, part)
                middle = n // 8 <= i < 7 * n // 8
                return "IQ3_XXS" if file == "IQ3_XS" and middle else self.base
        return self.base

    def _head(self, tensor: GgufTensor) -> str:
        fits = TYPES[self.base].fits(tensor.shape[-1])
        if self.name == "MXFP4_MOE" or self.traits.arch == "falcon" or not fits:
            return "Q8_0"
        if self.name in _FIVE_BIT_HEAD:
            return "Q5_K"
        return "Q8_0" if self.base == "Q8_0" else "Q6_K"

    def _lowest(self, tensor: GgufTensor) -> str:
        name, traits = tensor.name, self.traits
        better = "IQ3_S" if self.name in _WIDER else "Q2_K"
        if "attn_v.weight" in name:
            return "Q4_K" if traits.group >= 4 or traits.n_experts >= 4 else better
        if "attn_k.weight" in name and traits.n_experts == 8:
            return "Q4_K"
        if "ffn_down" in name:
            first = self._count("ffn_down") < traits.n_layers // 8
            return better if first else self.base
        if "attn_output.weight" in name:
            return "Q5_K" if traits.n_experts == 8 else _OUT_LOWEST.get(self.name, self.base)
        return self.base

    def _value(self) -> str:
        file, traits, i = self.name, self.traits, self._count("attn_v")
        found = _VALUE.get(file, self.base)
        if traits.group >= 4:
            found = _VALUE_OF_MANY.get(file, found)
        if file == "Q3_K_M":
            found = "Q5_K" if i < 2 else "Q4_K"
        elif file in ("Q4_K_M", "Q5_K_M") and _more_bits(i, traits.n_layers):
            found = "Q6_K"
        elif file == "Q4_K_S" and i < 4:
            found = "Q5_K"
        if traits.is_70b and found in ("Q3_K", "Q4_K"):
            found = "Q5_K"
        return "Q8_0" if traits.n_experts == 8 else found

    def _down(self, i: int) -> str:
        file, n, falcon = self.name, self.traits.n_layers, self.traits.arch == "falcon"
        more, first = _more_bits(i, n), i < n // 8
        if file == "Q2_K":
            return "Q3_K"
        if file == "Q2_K_S" and first:
            return "Q4_K"
        if file == "Q3_K_M":
            plain = "Q3_K" if falcon and not more else "Q4_K"
            return "Q5_K" if i < n // 16 else plain
        if file == "IQ3_M" and (first or (self.traits.n_experts == 8 and more)):
            return "Q4_K"
        if file == "Q3_K_L":
            return "Q4_K" if falcon else "Q5_K"
        if file == "Q4_K_M" and falcon:
            return "Q6_K" if i < n // 16 else "Q5_K" if more else "Q4_K"
        if file in ("Q4_K_M", "Q5_K_M") and more:
            return "Q6_K"
        if file in ("IQ4_NL", "IQ4_XS") and first and not self.imatrix:
            return "Q5_K"
        if file == "Q4_K_S" and first and not falcon:
            return "Q5_K"
        if file in ("Q4_0", "Q5_0") and first and self.imatrix:
            return file[:-1] + "1"
        return self.base

    def _out(self) -> str:
        if self.traits.arch == "falcon":
            return "Q4_K" if self.name == "Q3_K_L" else self.base
        if self.traits.n_experts == 8:
            return "Q5_K" if self.name in _OUT_OF_EIGHT else self.base
        return _OUT.get(self.name, self.base)

    def _count(self, part: str) -> int:
        """How many tensors of that kind came before."""
        self.seen[part] += 1
        return self.seen[part] - 1

    def _place(self, tensor: GgufTensor, part: str) -> int:
        """The layer: read off the name in a model of experts, counted in others."""
        counted = self._count(part)
        return tensor.layer if self.traits.n_experts > 1 else counted


def _more_bits(i: int, n: int) -> bool:
    """The first and last eighth of the layers, and every third between."""
    return i < n // 8 or i >= 7 * n // 8 or (i - n // 8) % 3 == 2
