"""The options of the backend."""

from __future__ import annotations

from typing import Literal

from fairlead.backend import Options

__all__ = ["IpexOptions"]


class IpexOptions(Options, frozen=True, kw_only=True):
    """What a caller may set; the defaults are the fastest that are exact.

    ``products``: who computes linear layers of float32. ``"auto"`` is MKL on processors of Intel, where it is faster,
    oneDNN on others with AVX-512, and either by the size of the weights with AVX2 alone. ``finite``: no NaN or infinity
    comes up, so that ``relu``, ``hardtanh``, ``hardsigmoid`` and the exact ``gelu`` are computed within the product
    before them, and what goes into stretches of convolutions is not checked. oneDNN gives 0 for the ``relu`` of NaN,
    where torch gives NaN. ``weights``: the bits in which linear layers of bfloat16 keep their weights, ``"int8"`` with
    a factor for each row, or ``"int4"`` with a factor and an offset for every 64 weights; results change accordingly.
    ``fuse``: where sizes are numbers, stretches of convolutions are compiled by oneDNN Graph, and what lies between
    products elsewhere by Inductor, if its C++ compiler is found and there is enough of it; if False, nothing is
    compiled.
    """

    products: Literal["auto", "onednn", "mkl"] = "auto"
    finite: bool = False
    weights: Literal["same", "int8", "int4"] = "same"
    fuse: bool = True
