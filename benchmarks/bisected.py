"""The models that faulty backends are searched in: BERT and ResNet of transformers, narrow, with no weight at zero.

Weights that a network starts with hide faults: a bias of zero may as well be left out. So do sizes that are multiples
of four. Each function takes what its configuration has otherwise.
"""

from __future__ import annotations

from typing import Any

import torch
import transformers


def bert(**config: Any) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """Two layers of width 128, 23 tokens with padding, batch 2."""
    torch.manual_seed(0)
    made = transformers.BertConfig(
        vocab_size=1000,
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=512,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        **config,
    )
    ids = torch.randint(3, 1000, (2, 23))
    mask = torch.ones_like(ids)
    mask[1, 18:] = 0
    inputs = {"input_ids": ids, "attention_mask": mask}
    return _moved(transformers.BertForSequenceClassification(made)), inputs


def resnet(**config: Any) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """ResNet-18 of a quarter of the width, 64 by 64 pixels, batch 2."""
    torch.manual_seed(0)
    made = transformers.ResNetConfig(
        embedding_size=16,
        hidden_sizes=[16, 32, 64, 128],
        depths=[2, 2, 2, 2],
        layer_type="basic",
        num_labels=10,
        **config,
    )
    return _moved(transformers.ResNetForImageClassification(made)), {"pixel_values": torch.randn(2, 3, 64, 64)}


def _moved(module: torch.nn.Module) -> torch.nn.Module:
    """The module with vectors other than zeros and ones. Its matrices are drawn as they are: larger ones blow up."""
    with torch.no_grad():
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor.is_floating_point() and tensor.ndim == 1:
                tensor += 0.1 * torch.rand_like(tensor)
    return module
