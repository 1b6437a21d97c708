"""What each op of the IR means, as torch code: a graph becomes an FX module that runs it op by op.

This is the reference every backend is compared with, the fallback of last resort, and the way back into compilers
that take FX.
"""

from fairlead._torch_types import torch_dtype
from fairlead.interpret._additions import adding_rows
from fairlead.interpret._bfloat16 import multiplies_bfloat16, quicker_in_bfloat16
from fairlead.interpret._copies import Packing, copies, overwrite
from fairlead.interpret._fx import run, to_fx
from fairlead.interpret._lists import picking
from fairlead.interpret._strides import overlaps, restride
from fairlead.interpret._tensors import tensor_of
from fairlead.interpret._threads import in_clean_thread

__all__ = [
    "Packing",
    "adding_rows",
    "copies",
    "in_clean_thread",
    "overlaps",
    "overwrite",
    "picking",
    "multiplies_bfloat16",
    "quicker_in_bfloat16",
    "restride",
    "run",
    "tensor_of",
    "to_fx",
    "torch_dtype",
]
