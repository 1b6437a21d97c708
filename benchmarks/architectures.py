"""24 architectures of transformers, so small that one trains in a second: every kind of layer, no weights to download.

Layers are never dropped and spectra never masked: Python and NumPy would draw the numbers for that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
import transformers

__all__ = ["ARCHITECTURES", "TEXT", "Architecture", "build", "ids", "made", "masked"]

Inputs = dict[str, torch.Tensor]

VOCABULARY = 96
WIDTH = 32

TOKENS: dict[str, Any] = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
TEXT: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    **TOKENS,
}
DECODER: dict[str, Any] = {**TEXT, "use_cache": False}
VISION: dict[str, Any] = {
    "hidden_size": WIDTH,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 32,
    "patch_size": 8,
}


class Architecture(NamedTuple):
    """A model's class, the arguments of its config, and its inputs."""

    model: str
    config: str
    arguments: Mapping[str, Any]
    inputs: Callable[[], Inputs]


def ids(length: int = 12) -> Inputs:
    """Two texts of so many tokens."""
    return {"input_ids": torch.randint(3, VOCABULARY, (2, length))}


def masked() -> Inputs:
    """Two texts, of which the second is padded."""
    mask = torch.ones(2, 12, dtype=torch.int64)
    mask[1, 9:] = 0
    return {**ids(), "attention_mask": mask}


def _pair() -> Inputs:
    return {**masked(), "decoder_input_ids": torch.randint(3, VOCABULARY, (2, 8))}


def _image(size: int = 32) -> Callable[[], Inputs]:
    return lambda: {"pixel_values": torch.randn(2, 3, size, size)}


def _speech() -> Inputs:
    return {"input_values": torch.randn(2, 800)}


def _spectrum() -> Inputs:
    return {"input_features": torch.randn(2, 16, 40), "decoder_input_ids": torch.randint(3, VOCABULARY, (2, 8))}


def _text_and_image() -> Inputs:
    return {**masked(), **_image()()}


def _resnet(**arguments: Any) -> Any:
    return transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[16, 32], depths=[1, 1], layer_type="bottleneck", **arguments
    )


ARCHITECTURES: dict[str, Architecture] = {
    "bert": Architecture("BertForMaskedLM", "BertConfig", TEXT, masked),
    "distilbert": Architecture(
        "DistilBertForSequenceClassification",
        "DistilBertConfig",
        {"vocab_size": VOCABULARY, "dim": WIDTH, "hidden_dim": 64, "n_layers": 2, "n_heads": 4, "num_labels": 5},
        masked,
    ),
    "albert": Architecture("AlbertForMaskedLM", "AlbertConfig", {**TEXT, "embedding_size": 16}, masked),
    "deberta-v2": Architecture(
        "DebertaV2ForMaskedLM",
        "DebertaV2Config",
        {**TEXT, "relative_attention": True, "position_buckets": 8, "pos_att_type": ["p2c", "c2p"]},
        masked,
    ),
    "gpt2": Architecture(
        "GPT2LMHeadModel",
        "GPT2Config",
        {"vocab_size": VOCABULARY, "n_embd": WIDTH, "n_layer": 2, "n_head": 4, "use_cache": False, **TOKENS},
        ids,
    ),
    "gpt-neox": Architecture("GPTNeoXForCausalLM", "GPTNeoXConfig", DECODER, ids),
    "llama": Architecture("LlamaForCausalLM", "LlamaConfig", {**DECODER, "num_key_value_heads": 2}, masked),
    "gemma2": Architecture(
        "Gemma2ForCausalLM",
        "Gemma2Config",
        {**DECODER, "num_key_value_heads": 2, "head_dim": 8, "sliding_window": 6},
        ids,
    ),
    "phi": Architecture("PhiForCausalLM", "PhiConfig", {**DECODER, "partial_rotary_factor": 0.5}, ids),
    "mixtral": Architecture(
        "MixtralForCausalLM",
        "MixtralConfig",
        {**DECODER, "num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2},
        ids,
    ),
    "qwen3-moe": Architecture(
        "Qwen3MoeForCausalLM",
        "Qwen3MoeConfig",
        {
            **DECODER,
            "num_key_value_heads": 2,
            "head_dim": 8,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 32,
            "norm_topk_prob": True,
        },
        ids,
    ),
    "mamba": Architecture(
        "MambaForCausalLM",
        "MambaConfig",
        {
            "vocab_size": VOCABULARY,
            "hidden_size": WIDTH,
            "state_size": 4,
            "num_hidden_layers": 2,
            "use_cache": False,
            **TOKENS,
        },
        ids,
    ),
    "mamba2": Architecture(
        "Mamba2ForCausalLM",
        "Mamba2Config",
        {
            "vocab_size": VOCABULARY,
            "hidden_size": WIDTH,
            "state_size": 8,
            "num_hidden_layers": 2,
            "num_heads": 4,
            "head_dim": 16,
            "n_groups": 1,
            "chunk_size": 8,
            "use_cache": False,
            **TOKENS,
        },
        ids,
    ),
    "t5": Architecture(
        "T5ForConditionalGeneration",
        "T5Config",
        {
            "vocab_size": VOCABULARY,
            "d_model": WIDTH,
            "d_ff": 64,
            "d_kv": 8,
            "num_layers": 2,
            "num_heads": 4,
            "decoder_start_token_id": 0,
            "use_cache": False,
            **TOKENS,
        },
        _pair,
    ),
    "bart": Architecture(
        "BartForConditionalGeneration",
        "BartConfig",
        {
            "vocab_size": VOCABULARY,
            "d_model": WIDTH,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 64,
            "decoder_ffn_dim": 64,
            "max_position_embeddings": 64,
            "decoder_start_token_id": 2,
            "forced_eos_token_id": None,
            "use_cache": False,
            **TOKENS,
        },
        _pair,
    ),
    "whisper": Architecture(
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        {
            "vocab_size": VOCABULARY,
            "num_mel_bins": 16,
            "d_model": WIDTH,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 64,
            "decoder_ffn_dim": 64,
            "max_source_positions": 20,
            "max_target_positions": 16,
            "decoder_start_token_id": 1,
            "begin_suppress_tokens": None,
            "use_cache": False,
            **TOKENS,
        },
        _spectrum,
    ),
    "wav2vec2": Architecture(
        "Wav2Vec2ForCTC",
        "Wav2Vec2Config",
        {
            **TEXT,
            "conv_dim": [16, 16],
            "conv_kernel": [10, 3],
            "conv_stride": [5, 2],
            "num_feat_extract_layers": 2,
            "num_conv_pos_embeddings": 4,
            "num_conv_pos_embedding_groups": 2,
            "apply_spec_augment": False,
            "layerdrop": 0.0,
        },
        _speech,
    ),
    "vit": Architecture("ViTForImageClassification", "ViTConfig", {**VISION, "num_labels": 5}, _image()),
    "swin": Architecture(
        "SwinForImageClassification",
        "SwinConfig",
        {
            "image_size": 32,
            "patch_size": 4,
            "embed_dim": 16,
            "depths": [2, 2],
            "num_heads": [2, 4],
            "window_size": 4,
            "drop_path_rate": 0.0,
            "num_labels": 5,
        },
        _image(),
    ),
    "resnet": Architecture(
        "ResNetForImageClassification",
        "ResNetConfig",
        {
            "embedding_size": 8,
            "hidden_sizes": [16, 32],
            "depths": [1, 1],
            "layer_type": "bottleneck",
            "num_labels": 5,
        },
        _image(),
    ),
    "convnext": Architecture(
        "ConvNextForImageClassification",
        "ConvNextConfig",
        {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2, "num_labels": 5},
        _image(),
    ),
    "segformer": Architecture(
        "SegformerForSemanticSegmentation",
        "SegformerConfig",
        {
            "num_encoder_blocks": 2,
            "depths": [1, 1],
            "sr_ratios": [2, 1],
            "hidden_sizes": [16, 32],
            "patch_sizes": [7, 3],
            "strides": [4, 2],
            "num_attention_heads": [2, 4],
            "mlp_ratios": [2, 2],
            "decoder_hidden_size": 16,
            "drop_path_rate": 0.0,
            "num_labels": 5,
        },
        _image(),
    ),
    "detr": Architecture(
        "DetrForObjectDetection",
        "DetrConfig",
        {
            "d_model": WIDTH,
            "encoder_layers": 1,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 64,
            "decoder_ffn_dim": 64,
            "num_queries": 5,
            "num_labels": 5,
            "use_timm_backbone": False,
            "use_pretrained_backbone": False,
            "backbone": None,
            "backbone_config": lambda: _resnet(out_features=["stage2"]),
        },
        _image(),
    ),
    "clip": Architecture(
        "CLIPModel",
        "CLIPConfig",
        {"text_config": TEXT, "vision_config": VISION, "projection_dim": 16},
        _text_and_image,
    ),
}


def build(name: str, *, dropout: bool = False) -> tuple[torch.nn.Module, Inputs]:
    """A model with random weights, and inputs for it, the same each time; without dropout unless it is asked for."""
    return made(ARCHITECTURES[name], dropout=dropout)


def made(architecture: Architecture, *, dropout: bool = False) -> tuple[torch.nn.Module, Inputs]:
    """The same for an architecture that is not in the table."""
    torch.manual_seed(0)
    arguments = {key: value() if callable(value) else value for key, value in architecture.arguments.items()}
    config = getattr(transformers, architecture.config)(**arguments)
    if not dropout:
        _without_dropout(config)
    model = getattr(transformers, architecture.model)(config)
    return model, architecture.inputs()


def _without_dropout(config: Any) -> None:
    for key, value in list(vars(config).items()):
        if isinstance(value, transformers.PretrainedConfig):
            _without_dropout(value)
        elif isinstance(value, float) and any(word in key for word in ("drop", "pdrop")):
            setattr(config, key, 0.0)
