"""Heads: what a model class has in place of the language model's head.

A bare class (``LlamaModel``) has none. A class of a task has a matrix over its labels, where that
is all (the ``ForSequenceClassification``, ``ForTokenClassification`` and ``ForQuestionAnswering``
classes of transformers 5.24.0; ``modeling_layers.py`` has most decoders'). What is more than the
tables here can say is named as not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from paramcalc.blocks.linear import linear
from paramcalc.blocks.rows import Rows
from paramcalc.families import classes
from paramcalc.families.config import Config
from paramcalc.ledger import Cache, Row, Stream, Tensor


def _types(text: str) -> frozenset[str]:
    return frozenset(text.split())


_POOLED = _types(
    "albert bert ernie fnet layoutlm megatron-bert mobilebert nomic_bert rembert roc_bert"
    " squeezebert"
)
"""Encoders that put a text's label on the pooler."""
_CHOOSING = _POOLED | _types(
    "big_bird camembert data2vec-text ibert longformer mpnet roberta roberta-prelayernorm"
    " xlm-roberta xlm-roberta-xl xmod"
)
"""Encoders that weigh a choice on the pooler."""
_DENSE = _types(
    "bart big_bird bigbird_pegasus camembert convbert data2vec-text electra ibert longformer mbart"
    " mpnet mt5 mvp plbart roberta roberta-prelayernorm roformer t5 umt5 xlm-roberta"
    " xlm-roberta-xl xmod"
)
"""Types with a dense layer of their own before a text's label."""
_CLASSIFIERS = _types("biogpt bloom falcon gpt2 gpt_bigcode gpt_neo gpt_neox mpt")
"""Decoders that call a token's label ``classifier``; the others say ``score``."""
_OTHERS = {
    "sequences": frozenset({"modernbert-decoder", "xlnet"}),
    "tokens": frozenset({"modernbert", "t5gemma", "t5gemma2"}),
    "answers": frozenset({"big_bird", "modernbert", "reformer", "xlm", "xlnet"}),
}
"""Types whose class of a task has more than one matrix."""
_PART = {"GPT2DoubleHeadsModel", "OpenAIGPTDoubleHeadsModel"}
"""Classes with the language model's head and a second one."""
_NONE = {"FunnelForPreTraining"}
"""Classes that predict something of each token with layers of their own."""


def pools(model_type: str, arch: str) -> bool:
    """Whether a class of a task has its head on a pooler."""
    task = classes.task(model_type, arch)
    if task == "choices":
        return model_type in _CHOOSING
    return model_type in _POOLED and task in ("sequences", "sentences")


def fitted(c: Config, fields: dict[str, Any], model_type: str) -> dict[str, Any]:
    """Return the fields of the class that is asked for: without a head, or with a task's."""
    task = classes.task(model_type, c.arch)
    if c.arch in _PART:
        c.left_out.append(f"the second head of {c.arch}")
    if not task and not classes.is_bare(model_type, c.arch) and c.arch not in _NONE:
        return fields
    if not task and model_type == "fsmt":  # its head is a part of the decoder
        return fields | {"head": "lm"}
    outer = tuple(_headless(fields.get("outer", ())))
    if task or c.arch in _NONE:
        rows = tuple(_answer(c, fields, model_type, task))
        outer += (Rows(rows),) if rows else ()
        if not rows:
            c.left_out.append(f"the head of {c.arch}")
    kept = {k: v for k, v in fields.items() if k not in ("head_bias", "outer")}
    return kept | {"head": "none"} | ({"outer": outer} if outer else {})


def _headless(blocks: tuple[Any, ...]) -> Iterator[Any]:
    for block in blocks:
        rows = tuple(block.rows())
        kept = tuple(row for row in rows if not _is_head(row))
        if len(kept) == len(rows):
            yield block
        elif kept:
            yield Rows(kept)


def _is_head(row: Row) -> bool:
    if isinstance(row, Cache) or row.name.startswith(("pooler", "patcher")):
        return False
    return row.role == "head" or row.name.startswith("cls.")


def _answer(c: Config, fields: dict[str, Any], model_type: str, task: str) -> Iterator[Tensor]:
    """The head of a task, where it is known; nothing where it is not."""
    d, n = fields["d_model"], labels(c, 3 if model_type == "bart" else 2)
    decodes = fields.get("causal", True) and "encoder" not in fields
    if model_type in _OTHERS.get(task, ()):
        return
    if task == "sequences" and decodes:
        yield from linear("score", "head", n, d)
    elif task == "sequences" and model_type in _POOLED:
        yield from linear("classifier", "head", n, d, bias=True, stream="sequence")
    elif task == "sequences" and model_type in _DENSE:
        at: Stream = "sequence"
        yield from linear("classifier.dense", "head", d, d, bias=True, stream=at)
        yield from linear("classifier.out_proj", "head", n, d, bias=True, stream=at)
    elif task == "choices" and model_type in _CHOOSING:
        yield from linear("classifier", "head", 1, d, bias=True, stream="sequence")
    elif task == "sentences" and model_type in _POOLED:
        yield from linear("seq_relationship", "head", 2, d, bias=True, stream="sequence")
    elif task == "tokens":
        name = "score" if decodes and model_type not in _CLASSIFIERS else "classifier"
        yield from linear(name, "head", n, d, bias=True)
    elif task in ("answers", "ForQuestionAnsweringSimple"):  # where an answer starts and ends
        yield from linear("qa_outputs", "head", 2, d, bias=True)


def labels(c: Config, default: int = 2) -> int:
    """Return how many labels a class of a task tells apart: ``id2label``, else ``num_labels``, else
    the type's default."""
    names = c.outer.get("id2label")
    if isinstance(names, dict) and names:
        return len(names)
    stated = c.outer.get("num_labels")
    if stated is None:
        return default
    if type(stated) is not int or stated < 1:
        c.fail("num_labels", stated, "must be a whole number of at least 1")
    return stated
