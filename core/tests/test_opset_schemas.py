"""The frozen signatures are those of the running torch, and the interpreter's own ops are listed."""

from __future__ import annotations

import re

import pytest
import torch
import torch.ao.quantization.fx._decomposed
import torch.distributed

import fairlead.numpy
from fairlead.interpret._own import OWN
from fairlead.ir import opset
from fairlead.ir.opset import OpSpec

OURS = ("nn", "hop")
"""Namespaces of ops that torch has under no name, or under others."""

OTHERWISE: dict[str, tuple[str, ...]] = {
    "aten._cdist_backward.default": ("(Tensor grad_output, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor",),
    "aten._pdist_backward.default": ("(Tensor grad_output, Tensor self, float p, Tensor pdist) -> Tensor",),
    "aten._fused_rms_norm.default": (
        "(Tensor input, int normalized_shape_ndim, Tensor weight, float eps) -> Tensor",  # 2.8, on MPS alone
    ),
}
"""How some releases write a signature: with other names (2.15), or with another meaning."""

RESPELLED = {"Any group_name": "str group_name", "Any reduce_op": "str reduce_op"}
"""Types that some releases widen; what capture writes keeps to the narrow ones."""

MISSING: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {
    "aten._fused_rms_norm_backward.default": ((2, 8), (2, 9)),
    "aten._scaled_mm_v2.default": ((2, 8), (2, 9)),
    "aten.cholesky.default": ((2, 15), (3, 0)),
    "aten.hash_tensor.default": ((2, 8), (2, 9)),
}
"""Ops that some releases do not have: from the first, up to the second."""

VERSION = tuple(int(n) for n in torch.__version__.split(".")[:2])
ATEN = [s for s in opset.specs().values() if s.id.partition(".")[0] not in OURS]


def torch_signature(op: str) -> str | None:
    """A schema as the table has it: without alias annotations, and with dots."""
    namespace, name, overload = op.split(".")
    try:
        schema = torch._C._get_schema(f"{namespace}::{name}", "" if overload == "default" else overload)
    except RuntimeError:
        return None
    _, _, rest = re.sub(r"\([a-z]!?( -> \*)?\)", "", str(schema)).partition("(")
    return f"{op}({rest}"


@pytest.mark.parametrize("spec", ATEN, ids=lambda s: s.id)
def test_a_frozen_signature_is_torchs(spec: OpSpec) -> None:
    found = torch_signature(spec.id)
    if found is None:
        first, end = MISSING[spec.id]
        assert first <= VERSION < end
        return
    for theirs, ours in RESPELLED.items():
        found = found.replace(theirs, ours)
    assert found in (spec.signature, *(spec.id + text for text in OTHERWISE.get(spec.id, ())))


def test_the_interpreters_own_ops_are_in_the_table() -> None:
    own = {op: len(target.keywords) for op, target in OWN.items()}
    assert own.items() <= {op: len(opset.signature(s.signature).operands) for op, s in opset.specs().items()}.items()
    assert {op for op in opset.specs() if op.startswith("nn.")} <= own.keys()


def test_the_table_says_which_ops_numpy_computes() -> None:
    listed = {s.id for s in opset.specs().values() if "numpy" in s.interpreters}
    assert listed == {op for op in opset.specs() if fairlead.numpy.supports(op)}


@pytest.mark.parametrize("tier", ["base", "ext", "nn"])
def test_numpy_computes_every_op_of_the_tiers_that_it_promises(tier: str) -> None:
    assert [s.id for s in opset.specs().values() if s.tier == tier and "numpy" not in s.interpreters] == []
