"""Cases made by hand, a table a topic: what samples rarely hit and backends often get wrong."""

from fairlead_conformance._families._directed import (
    _arithmetic,
    _gradients,
    _indexing,
    _integers,
    _neural,
    _pooling,
    _reductions,
    _shapes,
    _special,
    _windows,
)
from fairlead_conformance._families._directed._row import Row

__all__ = ["ROWS", "Row"]

ROWS: tuple[Row, ...] = (
    *_arithmetic.ROWS,
    *_gradients.ROWS,
    *_indexing.ROWS,
    *_integers.ROWS,
    *_neural.ROWS,
    *_pooling.ROWS,
    *_reductions.ROWS,
    *_shapes.ROWS,
    *_special.ROWS,
    *_windows.ROWS,
)
"""All of them."""
