"""Keys of a config.json that change no shape, and those that might."""

from __future__ import annotations

from typing import Any

_INERT = """
initial_context_length router_scaling_factor enable_moe_fp32_combine moe_routed_scaling_factor
attn_temperature_tuning floor_scale
_name_or_path architectures auto_map model_type transformers_version torch_dtype dtype use_cache
is_encoder_decoder is_decoder cross_attention_hidden_size add_cross_attention
chunk_size_feed_forward output_attentions output_hidden_states return_dict problem_type
num_labels id2label label2id pad_token_id bos_token_id eos_token_id sep_token_id cls_token_id
mask_token_id unk_token_id decoder_start_token_id forced_bos_token_id forced_eos_token_id
image_token_index image_token_id audio_token_id video_token_id vision_start_token_id
vision_end_token_id vision_token_id boi_token_index eoi_token_index boi_token_id eoi_token_id
boa_token_id eoa_token_id hidden_act hidden_activation activation_function activation
mlp_hidden_act feed_forward_proj initializer_range init_std init_method_std initializer_factor
rms_norm_eps layer_norm_eps layer_norm_epsilon norm_eps norm_epsilon layernorm_epsilon eps
rope_theta rope_scaling rope_parameters rotary_pct rotary_emb_base partial_rotary_factor
rotary_dim rope_local_base_freq rope_interleave rope_ratio original_max_position_embeddings
attention_dropout attn_pdrop embd_pdrop resid_pdrop hidden_dropout hidden_dropout_prob
attention_probs_dropout_prob attn_dropout dropout activation_dropout classifier_dropout
dropout_rate layerdrop encoder_layerdrop decoder_layerdrop embedding_dropout emb_dropout
use_flash_attn attn_implementation _attn_implementation experts_implementation pretraining_tp
ep_size quantization_config compression_config max_window_layers use_sliding_window
norm_topk_prob router_aux_loss_coef output_router_logits router_jitter_noise input_jitter_noise
aux_loss_alpha seq_aux scoring_func topk_method n_group topk_group routed_scaling_factor
num_expert_group score_function task_specific_params summary_type summary_use_proj
summary_activation summary_proj_to_labels summary_first_dropout scale_attn_weights
scale_attn_by_inverse_layer_idx reorder_and_upcast_attn scale_embedding gradient_checkpointing
attn_logit_softcapping final_logit_softcapping query_pre_attn_scalar logit_scale
embedding_multiplier logits_scaling residual_multiplier attention_multiplier mup_enabled
num_logits_to_keep attention_softmax_in_fp32 keep_in_fp32 use_bfloat16 fp32_residual
layer_norm_in_fp32 max_length min_length num_beams early_stopping length_penalty
no_repeat_ngram_size do_sample temperature top_k top_p prefix position_embedding_type
tokenizer_class use_mamba_kernels swiglu_limit torchscript pruned_heads mlm_probability
normalize_before normalize_embedding fused_add_norm output_past
"""
INERT = frozenset(_INERT.split())
"""Keys that change no shape in any family here: what they set is not stored."""

_NUMBERS = ("ratio", "factor", "multiplier", "expand", "mult")
_QUIET = ("_token_id", "_token_index", "_dropout", "_eps", "_epsilon", "_coef", "_id", "_theta")


def matters(key: str, value: Any) -> bool:
    """Whether an unread key might change a shape: sizes, switches that are on, lists, sections."""
    if key in INERT or key.startswith("_") or key.endswith(_QUIET):
        return False
    if value is None or value is False or value == 0 or isinstance(value, str):
        return False
    if isinstance(value, float):
        return any(word in key for word in _NUMBERS)
    if isinstance(value, list | dict):
        return bool(value)
    return True
