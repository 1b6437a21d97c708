"""All that is packed: convolutions, products, products of groups and LSTMs whose weights are known."""

from __future__ import annotations

from collections.abc import Mapping

from torch import fx

from fairlead_ipex._convolutions import Convolution, pack_convolutions
from fairlead_ipex._draft import Draft
from fairlead_ipex._groups import pack_groups
from fairlead_ipex._options import IpexOptions
from fairlead_ipex._post_ops import Chains
from fairlead_ipex._products import pack_products
from fairlead_ipex._recurrent import pack_lstms

__all__ = ["pack"]


def pack(draft: Draft, convolutions: Mapping[fx.Node, Convolution], options: IpexOptions, chain_of: Chains) -> None:
    """Before: a module of ATen's ops, with these convolutions to be packed. After: whatever is packed in it is."""
    pack_convolutions(draft, convolutions, chain_of)
    pack_products(draft, options, chain_of)
    pack_groups(draft, options)
    pack_lstms(draft)
