"""Architectures of transformers with random weights, reduced so that a call takes tens of milliseconds on two cores.

Widths and heads are the real ones, because they decide which kernel is fast; depth, vocabulary and image size are cut.
Dropout is off, so that a training step can be compared with eager; caches are off, so that outputs are tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers

from fairlead._models._model import Dynamic, Model

__all__ = ["BUILDERS"]

VOCABULARY = 8192
TEXT = {0: "batch", 1: "sequence"}
CLASSES: dict[str, Any] = {"num_labels": 1000}
TOKENS: dict[str, Any] = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def _tokens(batch: int, length: int) -> torch.Tensor:
    return torch.randint(3, VOCABULARY, (batch, length))


def _images(size: int) -> tuple[dict[str, torch.Tensor], Dynamic]:
    return {"pixel_values": torch.randn(2, 3, size, size)}, {"pixel_values": {0: "batch"}}


def _classes(inputs: dict[str, torch.Tensor], dynamic: Dynamic, training: bool) -> None:
    if training:
        inputs["labels"] = torch.tensor([0, 1])
        dynamic["labels"] = {0: "batch"}


def resnet50(training: bool) -> Model:
    config = transformers.ResNetConfig(
        embedding_size=64,
        hidden_sizes=[256, 512, 1024, 2048],
        depths=[3, 4, 6, 3],
        layer_type="bottleneck",
        **CLASSES,
    )
    module = transformers.ResNetForImageClassification(config)
    # Residual branches that begin small, as is usual: with the default of 1, gradients grow from block to block until
    # rounding alone is a tenth of them, and there is nothing to verify.
    for name, parameter in module.named_parameters():
        if name.endswith("layer.2.normalization.weight"):
            torch.nn.init.constant_(parameter, 0.2)
    inputs, dynamic = _images(96)
    _classes(inputs, dynamic, training)
    return Model("resnet50", module, (), inputs, dynamic)


def vit_b(training: bool) -> Model:
    config = transformers.ViTConfig(num_hidden_layers=4, image_size=112, **CLASSES)
    inputs, dynamic = _images(112)
    _classes(inputs, dynamic, training)
    return Model("vit-b", transformers.ViTForImageClassification(config), (), inputs, dynamic)


def bert(training: bool) -> Model:
    config = transformers.BertConfig(
        vocab_size=VOCABULARY,
        num_hidden_layers=4,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pad_token_id=0,
    )
    ids = _tokens(2, 48)
    mask = torch.ones_like(ids)
    mask[1, 40:] = 0
    inputs, dynamic = {"input_ids": ids, "attention_mask": mask}, {"input_ids": TEXT, "attention_mask": TEXT}
    _classes(inputs, dynamic, training)
    return Model("bert", transformers.BertForSequenceClassification(config), (), inputs, dynamic)


def _language_model(name: str, module: torch.nn.Module, training: bool) -> Model:
    inputs, dynamic = {"input_ids": _tokens(2, 48)}, {"input_ids": TEXT}
    if training:
        inputs["labels"] = inputs["input_ids"].clone()
        dynamic["labels"] = TEXT
    return Model(name, module, (), inputs, dynamic)


def gpt2(training: bool) -> Model:
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_layer=4, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False, **TOKENS
    )
    return _language_model("gpt2", transformers.GPT2LMHeadModel(config), training)


def llama(training: bool) -> Model:
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=512,
        intermediate_size=1408,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=4,
        use_cache=False,
        **TOKENS,
    )
    return _language_model("llama", transformers.LlamaForCausalLM(config), training)


def _decoder(inputs: dict[str, torch.Tensor], dynamic: Dynamic, batch: int, training: bool) -> None:
    ids = _tokens(batch, 24)
    for name in ("decoder_input_ids", "labels") if training else ("decoder_input_ids",):
        inputs[name] = ids.clone()
        dynamic[name] = {0: "batch", 1: "target"}


def t5(training: bool) -> Model:
    start: dict[str, Any] = {"decoder_start_token_id": 0}
    config = transformers.T5Config(
        vocab_size=VOCABULARY,
        d_model=512,
        num_layers=4,
        dropout_rate=0.0,
        use_cache=False,
        **start,
        **TOKENS,
    )
    inputs, dynamic = {"input_ids": _tokens(2, 48)}, {"input_ids": TEXT}
    _decoder(inputs, dynamic, 2, training)
    return Model("t5", transformers.T5ForConditionalGeneration(config), (), inputs, dynamic)


def whisper(training: bool) -> Model:
    config = transformers.WhisperConfig(
        vocab_size=VOCABULARY,
        max_source_positions=200,
        max_target_positions=64,
        decoder_start_token_id=1,
        begin_suppress_tokens=None,
        use_cache=False,
        **TOKENS,
    )
    inputs, dynamic = {"input_features": torch.randn(1, config.num_mel_bins, 400)}, {"input_features": {0: "batch"}}
    _decoder(inputs, dynamic, 1, training)
    return Model("whisper", transformers.WhisperForConditionalGeneration(config), (), inputs, dynamic)


BUILDERS: dict[str, Callable[[bool], Model]] = {
    "resnet50": resnet50,
    "vit-b": vit_b,
    "bert": bert,
    "gpt2": gpt2,
    "llama": llama,
    "t5": t5,
    "whisper": whisper,
}
