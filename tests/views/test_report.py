"""The report names what a model has, and no more; the record holds what a person can write."""

from __future__ import annotations

import json
from typing import Any

import paramcalc
from paramcalc.quantities.shape import rules_of_thumb
from paramcalc.views.record import spec_record
from paramcalc.views.report import Report
from paramcalc.views.summary import words


def lines(config: dict[str, Any]) -> list[str]:
    sections = Report(paramcalc.load(config), None, 1, "bf16").sections()
    return [str(row[0]) for s in sections for row in s.rows] + [
        n for s in sections for n in s.notes
    ]


def test_a_model_without_attention_has_a_state_and_no_links() -> None:
    found = lines({"model_type": "mamba"})
    assert "one token: states" in found
    assert "state bf16, at any length" in found
    assert "prefill" in found
    assert not [text for text in found if "KV" in text or "attention" in text or "links" in text]


def test_a_model_with_both_names_both() -> None:
    found = lines({"model_type": "jamba"})
    assert "one token: attention, states" in found
    assert "KV cache and state bf16, the first token" in found
    assert "causal links a layer" in found


def test_what_no_token_uses_is_named() -> None:
    config = {"model_type": "whisper", "d_model": 384, "decoder_layers": 4}
    config |= {"decoder_attention_heads": 6, "decoder_ffn_dim": 1536}
    own = 4 * 384 * 384 + 3 * 384 + 2 * 384  # Q, K, V, O; biases but for K; a norm
    says = f"of which no token uses: {4 * own:,} (cross attention, where there is no encoder)"
    assert says in lines({**config, "architectures": ["WhisperForCausalLM"]})


def test_a_window_as_long_as_the_context_says_so() -> None:
    config = {"model_type": "mistral", "sliding_window": 4096, "max_position_embeddings": 4096}
    found = words(paramcalc.load(config))
    assert "32 sliding 4,096, all of the context" in found
    assert "32 sliding 4,096" in words(paramcalc.load({**config, "max_position_embeddings": 8192}))


def test_towers_are_no_part_of_n_in_rules_of_thumb() -> None:
    text = {"hidden_size": 256, "num_hidden_layers": 6, "vocab_size": 1000}
    both = paramcalc.load({"model_type": "gemma3", "text_config": text})
    alone = paramcalc.load({"model_type": "gemma3_text", **text})
    assert both.params.towers == both.params.total - alone.params.total > 0
    for rule, same in zip(
        *(rules_of_thumb(256, m.plan, m.ledger, 1024) for m in (both, alone)), strict=True
    ):
        assert (rule.gives, rule.exact) == (same.gives, same.exact)
    values = Report(both, None, 1, "bf16").values
    assert values["training_flops_6n"] == 6 * alone.params.total * both.context


def test_blocks_are_no_part_of_the_record() -> None:
    for config in (
        {"model_type": "mamba"},
        {"model_type": "deepseek_v3", "num_nextn_predict_layers": 1},
        {"model_type": "jamba"},
    ):
        text = json.dumps(spec_record(paramcalc.load(config)))
        assert '"blocks"' not in text
        assert '"outer"' not in text
