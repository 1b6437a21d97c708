"""The opset: every op of the IR, with its frozen signature and how results of it are compared. Works without torch.

The table itself is the text file ``v1.txt`` beside this module. It is read when it is first asked for.

>>> relu = spec("aten.relu.default")
>>> relu.tier, relu.version, relu.comparison
('base', 1, 'exact')
>>> [p.name for p in signature(relu.signature).parameters]
['self']
"""

from fairlead.ir.opset._signature import Parameter, ParameterType, Result, Signature, signature
from fairlead.ir.opset._table import OPSET_VERSION, TIERS, OpSpec, Tier, spec, specs, tiers

__all__ = [
    "OPSET_VERSION",
    "TIERS",
    "OpSpec",
    "Parameter",
    "ParameterType",
    "Result",
    "Signature",
    "Tier",
    "signature",
    "spec",
    "specs",
    "tiers",
]
