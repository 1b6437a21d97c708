"""Captures architectures of transformers, in inference and in training, and prints the ops of each in JSON lines."""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import torch
import transformers
from architectures import ARCHITECTURES, DECODER, TEXT, TOKENS, VISION, VOCABULARY, WIDTH, Architecture, made
from opset_capture import Ops, line

from fairlead._capture import capture


def _ids() -> dict[str, torch.Tensor]:
    return {"input_ids": torch.randint(3, VOCABULARY, (2, 12))}


def _pixels() -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.randn(2, 3, 32, 32)}


def _sound() -> dict[str, torch.Tensor]:
    return {"input_values": torch.randn(2, 800)}


MORE: dict[str, Architecture] = {
    "beit": Architecture("BeitForImageClassification", "BeitConfig", {**VISION, "num_labels": 5}, _pixels),
    "bloom": Architecture(
        "BloomForCausalLM",
        "BloomConfig",
        {"vocab_size": VOCABULARY, "hidden_size": WIDTH, "n_layer": 2, "n_head": 4, "use_cache": False, **TOKENS},
        _ids,
    ),
    "dinov2": Architecture("Dinov2ForImageClassification", "Dinov2Config", {**VISION, "num_labels": 5}, _pixels),
    "efficientnet": Architecture(
        "EfficientNetForImageClassification",
        "EfficientNetConfig",
        {"image_size": 32, "width_coefficient": 0.25, "depth_coefficient": 0.25, "hidden_dim": 320, "num_labels": 5},
        _pixels,
    ),
    "electra": Architecture("ElectraForMaskedLM", "ElectraConfig", {**TEXT, "embedding_size": 16}, _ids),
    "falcon": Architecture(
        "FalconForCausalLM", "FalconConfig", {**DECODER, "new_decoder_architecture": True, "alibi": False}, _ids
    ),
    "granite-moe": Architecture(
        "GraniteMoeForCausalLM", "GraniteMoeConfig", {**DECODER, "num_local_experts": 4, "num_experts_per_tok": 2}, _ids
    ),
    "hubert": Architecture(
        "HubertForSequenceClassification",
        "HubertConfig",
        {
            "vocab_size": 32,
            "hidden_size": WIDTH,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "conv_dim": [16, 16],
            "conv_kernel": [10, 3],
            "conv_stride": [5, 2],
            "num_conv_pos_embeddings": 8,
            "num_conv_pos_embedding_groups": 2,
            "mask_time_prob": 0.0,
        },
        _sound,
    ),
    "mobilenet-v2": Architecture(
        "MobileNetV2ForImageClassification",
        "MobileNetV2Config",
        {"image_size": 32, "depth_multiplier": 0.25, "num_labels": 5},
        _pixels,
    ),
    "opt": Architecture(
        "OPTForCausalLM",
        "OPTConfig",
        {
            "vocab_size": VOCABULARY,
            "hidden_size": WIDTH,
            "ffn_dim": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "max_position_embeddings": 64,
            "word_embed_proj_dim": WIDTH,
            "use_cache": False,
            **TOKENS,
        },
        _ids,
    ),
    "yolos": Architecture(
        "YolosForObjectDetection",
        "YolosConfig",
        {**VISION, "image_size": [32, 32], "num_detection_tokens": 5, "num_labels": 5},
        _pixels,
    ),
}
"""Architectures beside those whose gradients are compared."""

ALL = ARCHITECTURES | MORE


def captured(name: str, direction: str) -> dict[str, Any]:
    """The ops of one architecture in one direction."""
    torch._dynamo.reset()
    module, inputs = made(ALL[name], dropout=direction == "training")
    training = direction == "training"
    module.train(training)
    sink = Ops()
    compiled = torch.compile(module, backend=lambda gm, given, **_: capture(gm, given, sink))
    try:
        with torch.set_grad_enabled(training):
            outputs = compiled(**inputs)
            if training:
                _loss(outputs).backward()
    except Exception as raised:
        return line(
            name, direction, sink.found, sink.refused, f"{type(raised).__name__}: {raised}".splitlines()[0][:200]
        )
    return line(name, direction, sink.found, sink.refused)


def _loss(outputs: Any) -> torch.Tensor:
    tensors = [x for x in outputs.values() if isinstance(x, torch.Tensor) and x.requires_grad]
    total: torch.Tensor = sum(x.float().square().mean() for x in tensors)  # type: ignore[assignment]
    return total


def main(names: list[str]) -> None:
    """``list`` prints the architectures and their directions; anything else captures those that are named."""
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    if names == ["list"]:
        print(json.dumps({name: ["inference", "training"] for name in ALL}))
        return
    for name in names:
        print(json.dumps({"begin": name}), flush=True)
        for direction in ("inference", "training"):
            print(json.dumps(captured(name, direction)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
