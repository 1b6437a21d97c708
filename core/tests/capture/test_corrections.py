"""Graphs have the dtypes that kernels return, also where torch's fake kernels promise others."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from fairlead._capture._corrections import correct_types
from fairlead.interpret import run, torch_dtype
from fairlead.ir import Graph, Role, parse_graph, verify

from .conftest import Compile


def dtypes(graph: Graph, inputs: list[Tensor]) -> list[tuple[torch.dtype, torch.dtype]]:
    """The declared and the real dtype of each output that is a tensor."""
    results = run(graph, inputs)
    return [(torch_dtype(v.tensor.dtype), r.dtype) for v, r in zip(graph.output_values(), results, strict=True)]


def test_running_statistics_of_half_precision_keep_their_dtype(program: Compile) -> None:
    model = nn.BatchNorm1d(3).to(torch.bfloat16)
    compiled = program(model)
    compiled(torch.randn(4, 3, dtype=torch.bfloat16))
    (graph,) = compiled.graphs
    names = {i: item.name for i, item in enumerate(graph.inputs)}
    written = {names[o.target]: o.value.tensor.dtype for o in graph.outputs if o.role is Role.mutation}
    assert written == {"running_mean": "bf16", "running_var": "bf16", "num_batches_tracked": "i64"}
    assert model.running_mean.dtype is torch.bfloat16


LAYER = """
graph @g inference {
  in %0 user "x" : bf16[2, 4]
  in %1 parameter "scale" : f32[4]
  %2, %3, _ = aten.native_layer_norm.default(%0, [4], %1, none, 1e-05) : bf16[2, 4], bf16[2, 1], _
  out %2 user
  out %3 user
}
"""

GROUP = """
graph @g inference {
  in %0 user "x" : bf16[2, 4]
  in %1 parameter "scale" : f32[4]
  %2, %3, _ = aten.native_group_norm.default(%0, %1, %1, 2, 4, 1, 2, 1e-05) : bf16[2, 4], bf16[2, 2], _
  out %2 user
  out %3 user
}
"""

BATCH = """
graph @g inference {
  in %0 user "x" : bf16[2, 4]
  in %1 parameter "scale" : f32[4]
  %2, %3, _ = aten._native_batch_norm_legit.no_stats(%0, %1, none, true, 0.1, 1e-05) : bf16[2, 4], bf16[4], _
  out %2 user
  out %3 user
}
"""

IN_A_REGION = """
graph @g inference {
  in %0 user "x" : bf16[2, 4]
  in %1 parameter "scale" : f32[4]
  %2 = aten.sum.dim_IntList(%0, [], false, none) : bf16[]
  %3 = aten.gt.Scalar(%2, 0) : bool[]
  %4, %5 = hop.cond(%3, [%1, %0]) : bf16[2, 4], bf16[2, 1] {
    region @region region {
      in %0 user "" : f32[4]
      in %1 user "" : bf16[2, 4]
      %2, %3, _ = aten.native_layer_norm.default(%1, [4], %0, none, 1e-05) : bf16[2, 4], bf16[2, 1], _
      out %2 user
      out %3 user
    }
    region @region region {
      in %0 user "" : f32[4]
      in %1 user "" : bf16[2, 4]
      %2, %3, _ = aten.native_layer_norm.default(%1, [4], %0, none, 0.5) : bf16[2, 4], bf16[2, 1], _
      out %2 user
      out %3 user
    }
  }
  out %4 user
  out %5 user
}
"""

INTO_A_REGION = """
graph @g inference {
  in %0 user "x" : bf16[2, 4]
  in %1 parameter "scale" : f32[4]
  %2, %3, _ = aten.native_layer_norm.default(%0, [4], %1, none, 1e-05) : bf16[2, 4], bf16[2, 1], _
  %4 = hop.map([%0], [%3]) : bool[2, 2, 4] {
    region @region region {
      in %0 user "" : bf16[4]
      in %1 user "" : bf16[2, 1]
      %2 = aten.gt.Tensor(%0, %1) : bool[2, 4]
      out %2 user
    }
  }
  out %2 user
  out %4 user
}
"""


@pytest.mark.parametrize("text", [LAYER, GROUP, BATCH, IN_A_REGION], ids=["layer", "group", "batch", "region"])
def test_statistics_of_half_precision_with_wide_weights_are_wide(text: str) -> None:
    graph = verify(correct_types(parse_graph(text)))
    found = dtypes(graph, [torch.randn(2, 4, dtype=torch.bfloat16), torch.ones(4)])
    assert found == [(torch.bfloat16, torch.bfloat16), (torch.float32, torch.float32)]


def test_a_region_is_given_statistics_as_they_are() -> None:
    graph = verify(correct_types(parse_graph(INTO_A_REGION)))
    (region,) = graph.nodes[1].regions
    assert [i.value.tensor.dtype for i in region.inputs] == ["bf16", "f32"]
    assert graph.nodes[1].args == ((graph.inputs[0].value,), (graph.nodes[0].results[1],))


def test_the_gradients_of_a_group_norm_have_the_sizes_of_its_input() -> None:
    call = "aten.native_group_norm_backward.default(%0, %0, %1, %1, %2, 2, <c>, 1, 2, [true, true, false])"
    graph = parse_graph(f"""
        symbol c in [2, inf] from in0.dim1
        graph @g backward {{
          in %0 saved "x" : f32[2, c]
          in %1 saved "mean" : f32[2, 2]
          in %2 saved "scale" : f32[c]
          %3, %4, _ = {call} : f32[2, 2*(c//2)], f32[2*(c//2)], _
          out %3 gradient
          out %4 gradient
        }}
    """)
    found = verify(correct_types(graph))
    assert [v.tensor.shape for v in found.output_values()] == [(2, "c"), ("c",)]
