"""Layers of LSTMs with known weights, which oneDNN is given packed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from fairlead.ir import TensorType
from fairlead_ipex._draft import Draft, op_of, type_of
from fairlead_ipex._dtypes import TORCH, computed_in

__all__ = ["LSTM", "lstm_of_packed", "pack_lstms"]

LSTM = "nn.lstm"

_MODE = 2
"""The number of an LSTM among torch's recurrent layers."""


def pack_lstms(draft: Draft) -> None:
    """Before: a module of ATen's ops. After: LSTMs with known weights read packed ones.

    Torch's own call of the kernel has it pack them each time.
    """
    for node in list(draft.graph.nodes):
        if op_of(node) == LSTM and (weights := _weights(draft, node)) is not None:
            _pack(draft, node, weights)


def _weights(draft: Draft, node: fx.Node) -> tuple[torch.Tensor, ...] | None:
    """Those for the input and for the state, and the two biases, zeros where there are none; None if one is unknown."""
    data, given = type_of(node.args[0]), node.args[3:7]
    ours, recurrent, *biases = (draft.value(w) for w in given)
    if data is None or ours is None or recurrent is None:
        return None
    if any(a is not None and b is None for a, b in zip(given[2:], biases, strict=True)):
        return None
    dtype = computed_in(data.dtype)
    if dtype is None or dtype is not TORCH[data.dtype] or 0 in ours.shape or 0 in recurrent.shape:
        return None
    return ours, recurrent, *(ours.new_zeros(len(ours)) if b is None else b for b in biases)


def _pack(draft: Draft, node: fx.Node, weights: tuple[torch.Tensor, ...]) -> None:
    data, reverse = type_of(node.args[0]), bool(node.args[7])
    assert data is not None
    ours, recurrent = (w.contiguous() for w in weights[:2])
    packed = torch.ops.mkldnn._reorder_mkldnn_rnn_layer_weight(
        ours, recurrent, recurrent.shape[1], reverse, True, False, _typical(data)
    )
    with draft.graph.inserting_before(node):
        held = [draft.hold(w) for w in (*packed, *weights[2:])]
        made = draft.graph.call_function(lstm_of_packed, (*node.args[:3], *held, recurrent.shape[1], reverse))
    node.replace_all_uses_with(made)


def _typical(data: TensorType) -> Sequence[int] | None:
    """The size to pack for; any other is computed as well."""
    sizes = [size for size in data.shape if isinstance(size, int)]
    return sizes if len(sizes) == len(data.shape) and 0 not in sizes else None


def lstm_of_packed(
    data: torch.Tensor,
    hx: torch.Tensor,
    cx: torch.Tensor,
    weight_ih: torch.Tensor,
    weight_hh: torch.Tensor,
    bias_ih: torch.Tensor,
    bias_hh: torch.Tensor,
    width: int,
    reverse: bool,
) -> tuple[Any, ...]:
    """A layer over ``data`` of steps, samples and features, from states ``width`` wide: results, state and cell.

    Of no samples, which oneDNN does not take, nothing is computed.

    Raises:
        RuntimeError: There are no steps, which torch refuses in these words.
    """
    if len(data) == 0:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    if data.numel() == 0:
        return data.new_empty(*data.shape[:2], width), hx.clone(), cx.clone()
    made: tuple[Any, ...] = torch.ops.aten.mkldnn_rnn_layer.default(
        data.contiguous(),
        *(weight_ih, weight_hh, bias_ih, bias_hh),
        *(hx.contiguous(), cx.contiguous()),
        *(reverse, (), _MODE, width, 1, True, False, False, False),
    )
    return made[:3]
