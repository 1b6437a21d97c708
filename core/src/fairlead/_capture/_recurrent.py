"""Which recurrent layers Dynamo traces in programs of ours: ``nn.LSTM`` in inference on a CPU.

There, and nowhere else, AOTAutograd has an op for a layer; it takes others apart step by step. Private names of torch,
checked on 2.13: where one is missing, Dynamo leaves an LSTM to eager mode, as it does by itself.
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch
import torch._dynamo.config
from torch._dynamo.exc import Unsupported
from torch._dynamo.variables import TensorVariable
from torch._dynamo.variables.builder import VariableBuilder
from torch._dynamo.variables.torch import TorchInGraphFunctionVariable

from fairlead._capture._dynamo import backend_of_trace, transform_around

__all__ = ["allow_lstm"]


def allow_lstm(module: str) -> None:
    """Have Dynamo trace such an LSTM in programs whose backend is an object of this module."""
    config: Any = torch._dynamo.config
    wrap: Any = getattr(VariableBuilder, "wrap_module", None)
    handlers: Any = getattr(TorchInGraphFunctionVariable, "_get_handlers", None)
    if wrap is None or handlers is None or not hasattr(config, "allow_rnn"):
        return

    def wrap_module(self: Any, value: torch.nn.Module) -> Any:
        allowed = type(value) is torch.nn.LSTM and _is_one_op(value) and backend_of_trace().__module__ == module
        if allowed:
            handlers().setdefault(torch.lstm, call)
        with config.patch(allow_rnn=True) if allowed else contextlib.nullcontext():
            return wrap(self, value)

    def call(self: Any, tx: Any, *args: Any, **kwargs: Any) -> None:
        """A module is wrapped once in a trace, and may be called where it could not have been wrapped."""
        if not config.allow_rnn and backend_of_trace().__module__ == module and (why := _taken_apart(*args)):
            raise Unsupported(f"an LSTM {why} runs in eager mode")

    VariableBuilder.wrap_module = wrap_module  # type: ignore[method-assign]


def _is_one_op(lstm: torch.nn.LSTM) -> bool:
    """Whether AOTAutograd has an op for its layers, as `select_one_layer_lstm_function` in torch says."""
    weights = list(lstm.parameters())
    return (
        not torch.is_grad_enabled()
        and torch._C._get_mkldnn_enabled()
        and not lstm.proj_size
        and all(w.device.type == "cpu" and w.dtype in (torch.float32, torch.bfloat16) for w in weights)
    )


def _taken_apart(data: Any, states: Any, *rest: Any) -> str | None:
    """What about this call of ``torch.lstm`` has no op, or would be computed otherwise; None where nothing is."""
    if torch.is_grad_enabled() or data.as_proxy().node.meta["example_value"].requires_grad:
        return "in training"
    if isinstance(states, TensorVariable):
        return "over packed sequences"
    if transform_around() is not None:
        return "within a transform of torch.func"
    _, _, _, dropout, training, *_ = map(_value, rest)
    return None if training is False or dropout == 0 else "that drops out"  # which torch's decomposition does not


def _value(variable: Any) -> Any:
    """A constant, or a number that may be another at the next call; asking it for its value makes a guard."""
    return variable.as_python_constant() if variable.is_python_constant() else getattr(variable, "sym_num", None)
