"""The dtype and shape of every result, by rule: what an op makes of its operands, without torch.

Covers the ops that graphs hold after capture and `canonicalize`: tiers base and ext of the opset, the composites, and
most of what a decomposition leaves over. Sizes come out in the normal form of `fairlead.ir.dims`.

>>> from fairlead.ir import DType, TensorType, Value, type_text
>>> x = Value(0, TensorType(DType.i64, ("b", 3)))
>>> [type_text(t) for t in infer("aten.div.Tensor", (x, 2))]
['f32[b, 3]']
"""

from fairlead.ir.infer._compare import Finding, Verdict, compare_types, verify_types
from fairlead.ir.infer._promotion import promoted, result_dtype
from fairlead.ir.infer._table import RULES, infer

__all__ = ["Finding", "RULES", "Verdict", "compare_types", "infer", "promoted", "result_dtype", "verify_types"]
