"""A second interpreter, in NumPy alone: runs, checks and explains a graph where torch is not installed.

The meaning of each op is written from its definition, not from torch's code, and computed in float64 (complex128, or
integers that wrap around as declared), so that it can judge torch and backends alike. It is made to be right and to be
read, not to be fast. ``pip install 'fairlead[numpy]'`` installs what it needs.

>>> import numpy as np
>>> from fairlead.ir import DType, Graph, Input, Kind, Node, Output, TensorType, Value
>>> x, y = Value(0, TensorType(DType.f32, (2,))), Value(1, TensorType(DType.f32, (2,)))
>>> graph = Graph("g", Kind.inference, (Input(x),), (Node("aten.neg.default", (x,), (y,)),), (Output(y),))
>>> run(graph, [np.array([1.0, -2.0], np.float32)])
(array([-1.,  2.], dtype=float32),)
"""

from __future__ import annotations

from fairlead.numpy._dtypes import array, numpy_dtype
from fairlead.numpy._run import run
from fairlead.numpy._table import supports

__all__ = ["array", "numpy_dtype", "run", "supports"]
