"""The smallest bundled model: enough for a first look, with torch alone."""

from __future__ import annotations

import torch

from fairlead._models._model import Model

__all__ = ["mlp"]


def mlp() -> Model:
    """Two linear layers of width 256 around a GELU, batch 4."""
    module = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 16))
    return Model("mlp", module, (torch.randn(4, 64),), {}, {"0": {0: "batch"}})
