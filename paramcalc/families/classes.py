"""Classes: the framework's model classes of each type, by their names.

Read off ``modeling_*.py`` of transformers 5.24.0 (github.com/huggingface/transformers): the classes
that take the type's configuration, and for some multimodal types the text model's as well.
"""

from __future__ import annotations

import re

from paramcalc.errors import did_you_mean

SUFFIXES = {
    "bare": "Model",
    "causal": "ForCausalLM",
    "masked": "ForMaskedLM",
    "seq2seq": "ForConditionalGeneration",
    "lm": "LMHeadModel",
    "pretraining": "ForPreTraining",
    "sequences": "ForSequenceClassification",
    "tokens": "ForTokenClassification",
    "answers": "ForQuestionAnswering",
    "choices": "ForMultipleChoice",
    "sentences": "ForNextSentencePrediction",
}
"""How a class of each kind ends; another word of the table is an ending itself."""

_BARE = ("bare", "EncoderModel", "Encoder", "BaseModel")
_TASKS = ("sequences", "tokens", "answers", "choices", "sentences", "ForQuestionAnsweringSimple")


def classes(model_type: str) -> list[str]:
    """Return the names of a type's classes, the one that is counted by default first; none for a
    type that is not in the table."""
    return [prefix + ending for prefix, _, ending in _entries(model_type)]


def find(model_type: str, name: str) -> str | None:
    """Return the class that a name means, or None: the name itself, else one that differs in case
    (``LLaMAForCausalLM``) or starts with the type's name (``InternLM3ForCausalLM``)."""
    plain = _plain(name)
    for prefix, _, ending in _entries(model_type):
        if plain in (_plain(prefix + ending), _plain(model_type + ending)):
            return prefix + ending
    return None


def is_bare(model_type: str, name: str) -> bool:
    """Whether a class has no head: ``LlamaModel``, ``T5EncoderModel``."""
    return _word(model_type, name) in _BARE


def task(model_type: str, name: str) -> str:
    """Return the kind of a class whose head answers something else than the next token: sequences,
    tokens, answers, ...; empty for a class that predicts tokens or has no head."""
    word = _word(model_type, name)
    return word if word in _TASKS else ""


def refusal(model_type: str, name: str) -> str:
    """Return what to say of a class that a type does not have."""
    known = classes(model_type)
    near = did_you_mean(name[:80], known, most=2) if name else ""
    return f"is no class of {model_type}{near}; its classes are {', '.join(known)}"


def _word(model_type: str, name: str) -> str:
    found = (word for prefix, word, ending in _entries(model_type) if prefix + ending == name)
    return next(found, "")


def _entries(model_type: str) -> list[tuple[str, str, str]]:
    """Prefix, word and ending of each class."""
    found = []
    for part in CLASSES.get(model_type, "").split("; "):
        prefix, *words = part.split() or [""]
        found += [(prefix, word, SUFFIXES.get(word, word)) for word in words]
    return found


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


CLASSES = {
    "afmoe": "Afmoe causal bare",
    "albert": "Albert masked bare pretraining sequences tokens answers choices",
    "apertus": "Apertus causal bare tokens",
    "apertus1p5_text": "Apertus1p5Text causal bare",
    "arcee": "Arcee causal bare sequences tokens answers",
    "aria_text": "AriaText causal bare",
    "axk1": "AXK1 causal bare sequences tokens",
    "axk2": "AXK2 causal bare sequences tokens",
    "bailing_hybrid": "BailingHybrid causal bare",
    "bamba": "Bamba causal bare",
    "bart": "Bart seq2seq bare causal sequences answers",
    "beam": "Beam causal bare tokens",
    "bert": "Bert masked bare lm pretraining sequences tokens answers choices sentences",
    "bert-generation": "BertGeneration Decoder Encoder",
    "big_bird": "BigBird masked bare causal pretraining sequences tokens answers choices",
    "bigbird_pegasus": "BigBirdPegasus seq2seq bare causal sequences answers",
    "biogpt": "BioGpt causal bare sequences tokens",
    "bitnet": "BitNet causal bare",
    "blenderbot": "Blenderbot seq2seq bare causal",
    "blenderbot-small": "BlenderbotSmall seq2seq bare causal",
    "bloom": "Bloom causal bare sequences tokens answers",
    "blt": "Blt causal bare",
    "camembert": "Camembert masked bare causal sequences tokens answers choices",
    "codegen": "CodeGen causal bare",
    "cohere": "Cohere causal bare",
    "cohere2": "Cohere2 causal bare",
    "cohere2_moe": "Cohere2Moe causal bare",
    "convbert": "ConvBert masked bare sequences tokens answers choices",
    "cpmant": "CpmAnt causal bare",
    "ctrl": "CTRL lm bare sequences",
    "cwm": "Cwm causal bare",
    "data2vec-text": "Data2VecText causal bare masked sequences tokens answers choices",
    "dbrx": "Dbrx causal bare",
    "deberta": "Deberta masked bare sequences tokens answers",
    "deberta-v2": "DebertaV2 masked bare sequences tokens answers choices",
    "deepseek_v2": "DeepseekV2 causal bare sequences",
    "deepseek_v3": "DeepseekV3 causal bare sequences tokens",
    "deepseek_v32": "DeepseekV32 causal bare",
    "deepseek_v4": "DeepseekV4 causal bare",
    "diffllama": "DiffLlama causal bare sequences tokens answers",
    "distilbert": "DistilBert masked bare sequences tokens answers choices",
    "doge": "Doge causal bare sequences",
    "dory": "Dory causal bare",
    "dots1": "Dots1 causal bare",
    "dots3_note": "Dots3Note causal bare seq2seq",
    "dots3_note_text": "Dots3Note causal; Dots3NoteText bare",
    "electra": "Electra masked bare causal pretraining sequences tokens answers choices",
    "emu3": "Emu3 causal bare seq2seq",
    "emu3_text_model": "Emu3 causal; Emu3Text bare",
    "ernie": "Ernie causal bare masked pretraining sequences tokens answers choices sentences",
    "ernie4_5": "Ernie4_5 causal bare",
    "ernie4_5_moe": "Ernie4_5_Moe causal bare",
    "eurobert": "EuroBert masked bare sequences tokens",
    "exaone": "Llama causal bare sequences tokens answers",
    "exaone4": "Exaone4 causal bare sequences tokens answers",
    "exaone_moe": "ExaoneMoe causal bare",
    "falcon": "Falcon causal bare sequences tokens answers",
    "falcon_h1": "FalconH1 causal bare",
    "falcon_mamba": "FalconMamba causal bare",
    "flex_olmo": "FlexOlmo causal bare",
    "flint": "Flint causal bare",
    "fnet": "FNet masked bare pretraining sequences tokens answers choices sentences",
    "fsmt": "FSMT seq2seq bare",
    "funnel": "Funnel masked bare pretraining sequences tokens answers choices BaseModel",
    "fuyu": "Fuyu causal bare",
    "gemma": "Gemma causal bare sequences tokens",
    "gemma2": "Gemma2 causal bare sequences tokens",
    "gemma3": "Gemma3 seq2seq bare sequences",
    "gemma3_text": "Gemma3 causal; Gemma3Text bare sequences",
    "gemma3n": "Gemma3n seq2seq bare",
    "gemma3n_text": "Gemma3n causal; Gemma3nText bare",
    "gemma4": "Gemma4 seq2seq bare",
    "gemma4_assistant": "Gemma4Assistant causal",
    "gemma4_text": "Gemma4 causal; Gemma4Text bare",
    "gemma4_unified": "Gemma4Unified seq2seq bare",
    "gemma4_unified_assistant": "Gemma4UnifiedAssistant causal",
    "gemma4_unified_text": "Gemma4Unified causal; Gemma4UnifiedText bare",
    "git": "Git causal bare",
    "glm": "Glm causal bare sequences tokens",
    "glm4": "Glm4 causal bare sequences tokens",
    "glm4_moe": "Glm4Moe causal bare",
    "glm4_moe_lite": "Glm4MoeLite causal bare",
    "glm_moe_dsa": "GlmMoeDsa causal bare",
    "got_ocr2": "GotOcr2 seq2seq bare",
    "gpt2": "GPT2 lm bare sequences tokens answers DoubleHeadsModel",
    "gpt_bigcode": "GPTBigCode causal bare sequences tokens",
    "gpt_neo": "GPTNeo causal bare sequences tokens answers",
    "gpt_neox": "GPTNeoX causal bare sequences tokens answers",
    "gpt_neox_japanese": "GPTNeoXJapanese causal bare",
    "gpt_oss": "GptOss causal bare sequences tokens",
    "gptj": "GPTJ causal bare sequences answers",
    "granite": "Granite causal bare",
    "granite_swa": "GraniteSWA causal bare",
    "granitemoe": "GraniteMoe causal bare",
    "granitemoe_swa": "GraniteMoeSWA causal bare",
    "granitemoehybrid": "GraniteMoeHybrid causal bare",
    "granitemoeshared": "GraniteMoeShared causal bare",
    "helium": "Helium causal bare sequences tokens",
    "hrm_text": "HrmText causal bare",
    "hunyuan_v1_dense": "HunYuanDenseV1 causal bare sequences",
    "hunyuan_v1_moe": "HunYuanMoEV1 causal bare sequences",
    "hy_v3": "HYV3 causal bare",
    "hy_v4": "HYV4 causal bare",
    "hyperclovax": "HyperCLOVAX causal bare",
    "ibert": "IBert masked bare sequences tokens answers choices",
    "inkling2": "Inkling2 seq2seq bare",
    "inkling2_loop": "Inkling2Loop seq2seq bare",
    "inkling2_loop_text": "Inkling2Loop causal; Inkling2LoopText bare",
    "inkling2_text": "Inkling2 causal; Inkling2Text bare",
    "inkling_mm_model": "Inkling seq2seq bare",
    "inkling_text": "Inkling causal; InklingText bare",
    "internlm3": "Llama causal bare sequences tokens answers",
    "iquestcoder": "Llama causal bare sequences tokens answers",
    "jais2": "Jais2 causal bare",
    "jamba": "Jamba causal bare sequences",
    "jetmoe": "JetMoe causal bare sequences",
    "kimi_linear": "KimiLinear causal bare",
    "kolibri1": "Kolibri1 causal bare",
    "laguna": "Laguna causal bare",
    "lara_mini": "LaraMini causal bare",
    "layoutlm": "LayoutLM masked bare sequences tokens answers",
    "led": "LED seq2seq bare answers",
    "lfm2": "Lfm2 causal bare",
    "lfm2_moe": "Lfm2Moe causal bare",
    "lfm3": "Lfm3 causal bare",
    "llama": "Llama causal bare sequences tokens answers",
    "llama4": "Llama4 causal seq2seq",
    "llama4_text": "Llama4 causal; Llama4Text bare",
    "longcat_flash": "LongcatFlash causal bare",
    "longformer": "Longformer masked bare sequences tokens answers choices",
    "longt5": "LongT5 seq2seq bare EncoderModel",
    "m2m_100": "M2M100 seq2seq bare",
    "mamba": "Mamba causal bare",
    "mamba2": "Mamba2 causal bare",
    "marian": "Marian MTModel bare causal",
    "mbart": "MBart seq2seq bare causal sequences answers",
    "megatron-bert": "MegatronBert causal bare masked pretraining sequences tokens answers"
    " choices sentences",
    "mellum": "Mellum causal bare",
    "mimo_v2_flash": "MiMoV2Flash causal bare",
    "minicpm3": "MiniCPM3 causal bare sequences",
    "minimax": "MiniMax causal bare sequences tokens answers",
    "minimax_m2": "MiniMaxM2 causal bare",
    "minimax_m3_vl_text": "MiniMaxM3VL causal; MiniMaxM3VLText bare",
    "ministral": "Ministral causal bare sequences tokens answers",
    "ministral3": "Ministral3 causal bare sequences tokens answers",
    "mistral": "Mistral causal bare sequences tokens answers",
    "mixtral": "Mixtral causal bare sequences tokens answers",
    "mllama": "Mllama causal bare seq2seq",
    "mllama_text_model": "Mllama causal; MllamaText bare",
    "mobilebert": "MobileBert masked bare pretraining sequences tokens answers choices sentences",
    "modernbert": "ModernBert masked bare sequences tokens answers choices",
    "modernbert-decoder": "ModernBertDecoder causal bare sequences",
    "moshi": "Moshi causal bare",
    "moss_transcribe_diarize": "MossTranscribeDiarize seq2seq bare",
    "mpnet": "MPNet masked bare sequences tokens answers choices",
    "mpt": "Mpt causal bare sequences tokens answers",
    "mt5": "MT5 seq2seq bare sequences tokens answers EncoderModel",
    "mvp": "Mvp seq2seq bare causal sequences answers",
    "nanochat": "NanoChat causal bare",
    "nemotron": "Nemotron causal bare sequences tokens answers",
    "nemotron_h": "NemotronH causal bare",
    "nllb-moe": "NllbMoe seq2seq bare",
    "nomic_bert": "NomicBert masked bare sequences tokens",
    "olmo": "Olmo causal bare sequences",
    "olmo2": "Olmo2 causal bare sequences",
    "olmo3": "Olmo3 causal bare sequences",
    "olmo_hybrid": "OlmoHybrid causal bare",
    "olmoe": "Olmoe causal bare",
    "openai-gpt": "OpenAIGPT lm bare sequences DoubleHeadsModel",
    "opt": "OPT causal bare sequences answers",
    "pegasus": "Pegasus seq2seq bare causal",
    "pegasus_x": "PegasusX seq2seq bare",
    "persimmon": "Persimmon causal bare sequences tokens",
    "phi": "Phi causal bare sequences tokens",
    "phi3": "Phi3 causal bare sequences tokens",
    "phi4_multimodal": "Phi4Multimodal causal bare",
    "phimoe": "Phimoe causal bare sequences",
    "plbart": "PLBart seq2seq bare causal sequences",
    "prophetnet": "ProphetNet seq2seq bare causal",
    "qwen2": "Qwen2 causal bare sequences tokens answers",
    "qwen2_moe": "Qwen2Moe causal bare sequences tokens answers",
    "qwen3": "Qwen3 causal bare sequences tokens answers",
    "qwen3_5": "Qwen3_5 seq2seq bare causal sequences tokens",
    "qwen3_5_moe": "Qwen3_5Moe seq2seq bare causal",
    "qwen3_5_moe_text": "Qwen3_5Moe causal; Qwen3_5MoeText bare",
    "qwen3_5_text": "Qwen3_5 causal; Qwen3_5Text bare sequences",
    "qwen3_moe": "Qwen3Moe causal bare sequences tokens answers",
    "qwen3_next": "Qwen3Next causal bare sequences tokens answers",
    "recurrent_gemma": "RecurrentGemma causal bare",
    "reformer": "Reformer masked bare sequences answers ModelWithLMHead",
    "rembert": "RemBert causal bare masked sequences tokens answers choices",
    "roberta": "Roberta masked bare causal sequences tokens answers choices",
    "roberta-prelayernorm": "RobertaPreLayerNorm causal bare masked sequences tokens answers"
    " choices",
    "roc_bert": "RoCBert causal bare masked pretraining sequences tokens answers choices",
    "roformer": "RoFormer causal bare masked sequences tokens answers choices",
    "rwkv": "Rwkv causal bare",
    "sarvam_mla": "DeepseekV3 causal bare sequences tokens",
    "sarvam_moe": "Glm4Moe causal bare",
    "seed_oss": "SeedOss causal bare sequences tokens answers",
    "smollm3": "SmolLM3 causal bare sequences tokens answers",
    "solar_open": "SolarOpen causal bare",
    "squeezebert": "SqueezeBert masked bare sequences tokens answers choices",
    "stablelm": "StableLm causal bare sequences tokens",
    "starcoder2": "Starcoder2 causal bare sequences tokens",
    "switch_transformers": "SwitchTransformers seq2seq bare EncoderModel",
    "t5": "T5 seq2seq bare sequences tokens answers EncoderModel",
    "t5gemma": "T5Gemma seq2seq bare sequences tokens EncoderModel",
    "t5gemma2": "T5Gemma2 seq2seq bare sequences tokens",
    "trocr": "TrOCR causal",
    "umt5": "UMT5 seq2seq bare sequences tokens answers EncoderModel",
    "vaultgemma": "VaultGemma causal bare",
    "whisper": "Whisper causal bare seq2seq",
    "xglm": "XGLM causal bare",
    "xlm": "XLM WithLMHeadModel bare sequences tokens answers choices ForQuestionAnsweringSimple",
    "xlm-roberta": "XLMRoberta masked bare causal sequences tokens answers choices",
    "xlm-roberta-xl": "XLMRobertaXL causal bare masked sequences tokens answers choices",
    "xlnet": "XLNet lm bare sequences tokens answers choices ForQuestionAnsweringSimple",
    "xlstm": "xLSTM causal bare",
    "xmod": "Xmod causal bare masked sequences tokens answers choices",
    "youtu": "Youtu causal bare",
    "zamba": "Zamba causal bare sequences",
    "zamba2": "Zamba2 causal bare sequences",
    "zaya": "Zaya causal bare",
}
"""By type: what its classes start with, then the kinds of class there are, the default first."""
