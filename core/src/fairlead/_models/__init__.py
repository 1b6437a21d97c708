"""Models by name: what ``compare`` and the benchmarks measure, bundled or the user's own.

MODEL is one of

- a bundled name (`CATALOG`): real architectures with seeded random weights, sized for a laptop, nothing downloaded;
- a ``.fir`` file: its graph with its constants, and inputs drawn to fit;
- ``module:factory`` or ``path/to/file.py:factory``: a callable without arguments that returns ``(module, inputs)``,
  ``(module, inputs, dynamic)``, or a module that has ``example_inputs``.

``inputs`` is a mapping (keyword arguments), a sequence (positional arguments) or one tensor. ``dynamic`` says which
dimensions may vary: ``{"input_ids": {0: "batch", 1: "sequence"}}``; positional arguments are named ``"0"``, ``"1"``,
....

Importing this package imports neither torch nor transformers; `fairlead._models._load` does, and makes a `Model` of a
MODEL.
"""

from __future__ import annotations

from fairlead._models._catalog import CATALOG, check_spec, require_numpy, require_torch
from fairlead._models._model import Dynamic, Model, next_sizes
from fairlead._models._tensors import tensors_of, with_tensors

__all__ = [
    "CATALOG",
    "Dynamic",
    "Model",
    "check_spec",
    "next_sizes",
    "require_numpy",
    "require_torch",
    "tensors_of",
    "with_tensors",
]
