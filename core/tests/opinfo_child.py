"""Runs PyTorch's own samples of ops compiled and as they are, and prints what differs, one JSON line an op.

A program of its own, because importing the samples changes torch for the whole process.
"""

from __future__ import annotations

import itertools
import json
import sys
from typing import Any

import torch
from torch.testing._internal import common_methods_invocations as invocations
from torch.utils._pytree import tree_flatten, tree_map

import fairlead

SAMPLES = 2


def fresh(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def difference(expected: Any, actual: Any) -> str:
    """How two results differ; empty where they do not. A stride counts where there are two elements along it."""
    wanted, found = tree_flatten(expected)[0], tree_flatten(actual)[0]
    if len(wanted) != len(found):
        return f"{len(found)} results, not {len(wanted)}"
    for index, (x, y) in enumerate(zip(wanted, found, strict=True)):
        if (kind(x), kind(y)) != ("tensor", "tensor"):
            if x != y:
                return f"result {index} is {y}, not {x}"
            continue
        if (x.dtype, x.shape) != (y.dtype, y.shape):
            return f"result {index} is {y.dtype}{list(y.shape)}, not {x.dtype}{list(x.shape)}"
        if x.numel() and any(n > 1 and a != b for n, a, b in zip(x.shape, x.stride(), y.stride(), strict=True)):
            return f"result {index} has strides {y.stride()}, not {x.stride()}"
        if not torch.allclose(x, y, rtol=1e-5, atol=1e-5, equal_nan=True):
            return f"result {index} is off by {(x - y).abs().max()}"
    return ""


def kind(value: Any) -> str:
    return "tensor" if isinstance(value, torch.Tensor) else type(value).__name__


def aliases(results: Any, inputs: Any) -> list[list[int]]:
    """For each result, the inputs and results whose memory it is in."""
    tensors = [x for x in tree_flatten((inputs, results))[0] if isinstance(x, torch.Tensor)]
    addresses = [x.untyped_storage().data_ptr() if x.numel() else None for x in tensors]
    return [[i for i, a in enumerate(addresses) if a is not None and a == b] for b in addresses]


def problem(op: Any, sample: Any) -> str:
    def call(*args: Any) -> Any:
        return op.op(*args, **sample.kwargs)

    torch._dynamo.reset()
    compiled = fairlead.compile(call, backend="eager", fallback=())
    given = (sample.input, *sample.args)
    expected_inputs, actual_inputs = tree_map(fresh, given), tree_map(fresh, given)
    torch.manual_seed(1)
    expected = call(*expected_inputs)
    torch.manual_seed(1)
    actual = compiled(*actual_inputs)
    placement = compiled.fairlead.placement  # type: ignore[attr-defined]
    if not placement.graphs or placement.native_share < 1:
        return "it was not captured"
    if aliases(expected, expected_inputs) != aliases(actual, actual_inputs):
        return "it shares memory otherwise"
    return difference((expected, expected_inputs), (actual, actual_inputs))


def unseeded(op: Any, *args: Any, **kwargs: Any) -> Any:
    return op(*args, **kwargs)


def main(names: list[str]) -> None:
    invocations.wrapper_set_seed = unseeded  # it breaks graphs; the seed is set outside
    found = {f"{op.name}.{op.variant_test_name}".rstrip("."): op for op in invocations.op_db}
    for name in names:
        samples = itertools.islice(found[name].sample_inputs("cpu", torch.float32), SAMPLES)
        try:
            problems = [p for p in (problem(found[name], s) for s in samples) if p]
        except Exception as error:
            problems = [f"{type(error).__name__}: {error}"]
        print(json.dumps([name, "; ".join(problems)]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
