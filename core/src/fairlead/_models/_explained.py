"""A model explained: its example called once, through a backend."""

from __future__ import annotations

import msgspec
import torch

from fairlead._compare._reference import example, with_dynamic
from fairlead._explain import explain
from fairlead._models._captured import backward, mark
from fairlead._models._model import Model
from fairlead.explanation import Explanation

__all__ = ["explain_model"]


def explain_model(model: Model, backend: str, *, training: bool, dynamic: bool) -> Explanation:
    """What the first call makes; in training with a loss and its backward, with ``dynamic`` with symbols for sizes."""
    if dynamic:
        model = with_dynamic(model)
    tensors = example(model, dynamic)
    if dynamic:
        mark(model, tensors)
    args, kwargs = model.inputs(dict(tensors))
    with torch.set_grad_enabled(training):
        found = explain(model.module, backend=backend, then=backward if training else None)(*args, **kwargs)
    return msgspec.structs.replace(found, subject=model.name)
