from __future__ import annotations

import pytest

from fairlead.ir import DType, Graph, Kind, Output, ScalarType, TensorType, to_text, type_text


def test_a_graph_with_everything_reads_like_this(rich_graph: Graph) -> None:
    assert (
        to_text(rich_graph) == r"""symbol b in [2, 512] from in0.dim0
symbol n in [0, inf] from in3
graph @forward forward {
  in %0 user "x" : f32[b, 8]
  in %1 parameter "fc.weight" : f32[16, 8] strides[1, 16]
  in %2 buffer "norm.running_mean" : f32[16] @cuda:0
  in %3 symbol "n" : i64
  in %7 constant "table" : c128[2, 2]
  %10 = aten.linear.default(%0, %1, none) : f32[b, 16]
  %300, _, %70000 = test.every_argument.default([%10, none, [1, [2.5, -0.0]]], true, -9223372036854775808, """
        r"""18446744073709551615, inf, nan, "d\u00e9j\u00e0 \"vu\"\n", <2*b + n>, #dtype<bf16>, #device<cuda:0>, """
        r"""#complex<-0.0, -inf>, []) : bf16[2*b + n, 16], _, f32[16] @cuda:0
  _ = aten.neg.default(%300) : _
  out %70000 mutation -> in2
  out %300 user aliases in0
  out none user
  out <b + n> saved
  out 4 user
  out %10 saved
}"""
    )


def test_locations_are_shown_when_asked_for(small_graph: Graph) -> None:
    assert (
        to_text(small_graph, locations=True)
        == """symbol b in [1, inf] from in0.dim0
graph @main inference {
  in %0 user "x" : f32[b, 2]
  in %1 parameter "fc.weight" : f32[3, 2]
  %2 = aten.linear.default(%0, %1, none) : f32[b, 3] loc("model.py":3)
  %3 = aten.relu.default(%2) : f32[b, 3]
  out %3 user
}"""
    )


def test_regions_stand_within_their_node(nested_graph: Graph) -> None:
    assert (
        to_text(nested_graph, locations=True)
        == """symbol b in [1, inf] from in1.dim0
graph @main inference {
  in %0 user "flag" : bool[]
  in %1 user "x" : f32[b, 2]
  %2 = hop.cond.default(%0, [%1]) : f32[b, 2] loc("model.py":7) {
    region @outer region {
      in %0 user "" : f32[b, 2]
      %1 = hop.map.default([%0]) : f32[b, 2] {
        region @inner region {
          in %0 user "" : f32[b, 2]
          %1 = aten.neg.default(%0) : f32[b, 2]
          out %1 user
        }
      }
      out %1 user
    }
    region @same region {
      in %0 user "" : f32[b, 2]
      out %0 user
    }
  }
  out %2 user
}"""
    )


def test_an_empty_graph_has_a_text() -> None:
    assert (
        to_text(Graph("nothing", Kind.backward, (), (), (Output(None),)))
        == "graph @nothing backward {\n  out none user\n}"
    )


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (TensorType(DType.bool, ()), "bool[]"),
        (TensorType(DType.f8e4m3fn, (0, "s0")), "f8e4m3fn[0, s0]"),
        (TensorType(DType.i64, (2,), (3,), "cuda:1"), "i64[2] strides[3] @cuda:1"),
        (ScalarType(DType.i64), "i64"),
    ],
)
def test_types(type_: TensorType | ScalarType, text: str) -> None:
    assert type_text(type_) == text


@pytest.mark.parametrize(
    ("dtype", "size", "long_name"),
    [
        ("bool", 1, "bool"), ("u8", 1, "uint8"), ("i16", 2, "int16"), ("u64", 8, "uint64"), ("f16", 2, "float16"),
        ("bf16", 2, "bfloat16"), ("f64", 8, "float64"), ("c64", 8, "complex64"), ("c128", 16, "complex128"),
        ("f8e4m3fn", 1, "float8_e4m3fn"), ("f8e5m2", 1, "float8_e5m2"),
    ],
)  # fmt: skip
def test_dtypes_have_a_size_and_a_long_name(dtype: str, size: int, long_name: str) -> None:
    assert (DType(dtype).itemsize, DType(dtype).long_name) == (size, long_name)
