"""Fairlead backend: what `ipex` promised, on torch as it is.

`backend` packs the weights of linear layers and convolutions once, in the layouts of oneDNN, which is in torch, folds
batch norms into convolutions and fuses what follows. Importing this module does not import torch.
"""

from fairlead_ipex._backend import IpexBackend
from fairlead_ipex._options import IpexOptions

__all__ = ["IpexBackend", "IpexOptions", "backend"]

backend = IpexBackend()
"""What the entry point ``ipex`` leads to."""
