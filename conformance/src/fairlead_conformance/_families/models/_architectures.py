"""Architectures of the transformers package from their public configurations, cut to a size that runs in moments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from fairlead_conformance._families.models._zoo import Net
from fairlead_conformance._programs import Trial

__all__ = ["ARCHITECTURES"]

_TOKENS: dict[str, Any] = {"vocab_size": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


class _Logits(nn.Module):
    """A model whose result is the logits alone."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, *args: Tensor) -> Any:
        return self.model(*args).logits


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise ModuleNotFoundError("real architectures need: pip install 'fairlead-conformance[models]'") from error
    return transformers


def _built(config: str, model: str, **fields: Any) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        library = _transformers()
        return _Logits(getattr(library, model)(getattr(library, config)(**fields)))

    return build


def _ids(trial: Trial, batch: int, length: int) -> tuple[Any, ...]:
    return (trial.integers(60, batch, length) + 3,)


def _masked_ids(trial: Trial, batch: int, length: int) -> tuple[Any, ...]:
    mask = torch.ones(batch, length, dtype=torch.int64, device=trial.device)
    mask[0, -1] = 0
    return *_ids(trial, batch, length), mask


def _pixels(trial: Trial, batch: int, length: int) -> tuple[Any, ...]:
    return (trial.normal(batch, 3, 32, 32),)


_BERT = _built(
    "BertConfig",
    "BertForSequenceClassification",
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=48,
    max_position_embeddings=32,
    vocab_size=64,
)
_GPT2 = _built(
    "GPT2Config", "GPT2LMHeadModel", n_embd=32, n_layer=2, n_head=2, n_positions=32, use_cache=False, **_TOKENS
)
_LLAMA = _built(
    "LlamaConfig",
    "LlamaForCausalLM",
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=32,
    use_cache=False,
    **_TOKENS,
)
_VIT = _built(
    "ViTConfig",
    "ViTForImageClassification",
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=48,
    image_size=32,
    patch_size=8,
)
_RESNET = _built(
    "ResNetConfig",
    "ResNetForImageClassification",
    embedding_size=8,
    hidden_sizes=[8, 16],
    depths=[1, 2],
    layer_type="bottleneck",
)

ARCHITECTURES = {
    "bert": Net(_BERT, _masked_ids),
    "gpt2": Net(_GPT2, _ids),
    "llama": Net(_LLAMA, _ids),
    "vit": Net(_VIT, _pixels),
    "resnet": Net(_RESNET, _pixels),
}
"""Each by the name that ids have; what it takes is as for the small nets."""
