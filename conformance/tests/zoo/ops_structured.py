"""Wrong in products, windows, indices and shapes."""

from __future__ import annotations

import numpy as np

from conformance.tests.zoo._fault import Kind
from fairlead.ir import DType
from fairlead.numpy._dtypes import wide

KIND = Kind("ops")
op = KIND.op

MODELS = ("models/conv-net/f32/*forward", "models/residual-block/f32/*forward", "directed/*conv*")


@op("mm", "bmm", "addmm", "linear")
def product_a_thousandth_off(right, call, *args):
    """Products of matrices are 10^-3 too large."""
    found = np.asarray(right(call, *args))
    return found * (1 + 1e-3) if found.dtype.kind in "fc" else found


@op("mm", "bmm", "addmm", "linear", aims=("semantics/float32-stays-float32/*",))
def product_of_float32_in_bfloat16(right, call, *args):
    """Products of float32 matrices are computed in bfloat16, as some runtimes do by default."""
    import ml_dtypes

    if call.dtype is not DType.f32:
        return right(call, *args)
    short = [a.astype(ml_dtypes.bfloat16).astype(np.float32) if isinstance(a, np.ndarray) else a for a in args]
    return right(call, *short)


@op("mm", "bmm", "addmm", "linear")
def product_of_float32_in_tf32(right, call, *args):
    """Products of float32 matrices keep ten bits of each factor, and the capabilities do not say so."""
    if call.dtype is not DType.f32:
        return right(call, *args)
    short = [_ten_bits(a) if isinstance(a, np.ndarray) else a for a in args]
    return right(call, *short)


def _ten_bits(x):
    mantissa, exponent = np.frexp(wide(x))
    return np.ldexp(np.round(mantissa * 2**11) / 2**11, exponent).astype(np.float32)


@op("mm", "bmm")
def product_accumulated_in_float16(right, call, x, y):
    """Products of float16 matrices are summed up in float16."""
    if call.dtype is not DType.f16:
        return right(call, x, y)
    total = np.zeros(call.shape(), np.float16)
    for k in range(x.shape[-1]):
        total = (total + x[..., k : k + 1] * y[..., k : k + 1, :]).astype(np.float16)
    return total


@op("mm")
def square_matrices_transposed(right, call, x, y):
    """The second matrix is transposed where it is square."""
    return right(call, x, y.T if y.shape[0] == y.shape[1] else y)


@op("linear")
def square_weights_transposed(right, call, x, weight, bias=None):
    """The weight is transposed where it is square."""
    return right(call, x, weight.T if weight.shape[0] == weight.shape[1] else weight, bias)


@op("linear")
def linear_without_bias(right, call, x, weight, bias=None):
    """The bias is left out."""
    return right(call, x, weight, None)


@op("mm", "bmm", "linear")
def product_of_nothing_is_one(right, call, *args):
    """A sum of no products is 1 and not 0."""
    found = np.asarray(right(call, *args))
    return found + 1 if np.asarray(args[0]).shape[-1] == 0 else found


@op("mm", "bmm", "linear", "addmm")
def product_in_blocks_of_four(right, call, *args):
    """What is left over after blocks of four is not summed."""
    at = 1 if call.node.op == "aten.addmm.default" else 0
    x = np.array(args[at])
    rest = x.shape[-1] % 4
    if rest and x.shape[-1] > 4:
        x[..., -rest:] = 0
    return right(call, *args[:at], x, *args[at + 1 :])


@op("addmm", aims=("directed/*addmm*",))
def addmm_without_beta(right, call, x, a, b, beta=1, alpha=1):
    """The multiplier of what is added is ignored."""
    return right(call, x, a, b, 1, alpha)


@op("addmm", aims=("directed/*addmm*",))
def addmm_without_alpha(right, call, x, a, b, beta=1, alpha=1):
    """The multiplier of the product is ignored."""
    return right(call, x, a, b, beta, 1)


@op("gelu", aims=("directed/*gelu*",))
def gelu_always_by_tanh(right, call, x, approximate="none"):
    """The approximation is used where the exact function is asked for."""
    return right(call, x, "tanh")


@op("elu")
def elu_without_alpha(right, call, x, *rest):
    """The scale of the negative part is ignored."""
    return right(call, x)


@op("silu", "mish", "hardswish")
def activation_flattens_early(right, call, x):
    """Below -2 the result is 0."""
    x = wide(x)
    return np.where(x < -2, 0, right(call, x))


@op("convolution", aims=MODELS)
def convolution_without_dilation(right, call, x, weight, bias, stride, padding, dilation, *rest):
    """The first dilation is used for all dimensions."""
    return np.resize(right(call, x, weight, bias, stride, padding, [1] * len(dilation), *rest), call.shape())


@op("convolution", aims=MODELS)
def convolution_is_a_convolution(right, call, x, weight, *rest):
    """The kernel is turned around, as in a textbook."""
    return right(call, x, np.flip(weight, tuple(range(2, weight.ndim))), *rest)


@op("convolution", aims=("models/separable-convolution/f32/*forward", "directed/*conv*"))
def convolution_mixes_its_groups(right, call, x, weight, bias, stride, padding, dilation, transposed, extra, groups):
    """The channels of a group are every n-th and not those beside one another."""
    if groups > 1:
        x = np.reshape(x, (x.shape[0], groups, -1, *x.shape[2:])).swapaxes(1, 2).reshape(x.shape)
        weight = np.roll(weight, 1, 0)
    return right(call, x, weight, bias, stride, padding, dilation, transposed, extra, groups)


@op("convolution", aims=MODELS)
def convolution_pads_with_ones(right, call, x, weight, bias, stride, padding, dilation, transposed, *rest):
    """What lies outside counts as 1."""
    if transposed or not any(padding):
        return right(call, x, weight, bias, stride, padding, dilation, transposed, *rest)
    sizes = list(padding) * (x.ndim - 2) if len(padding) == 1 else padding
    x = np.pad(wide(x), [(0, 0), (0, 0), *((p, p) for p in sizes)], constant_values=1)
    return right(call, x, weight, bias, stride, [0] * len(padding), dilation, transposed, *rest)


@op("max_pool2d_with_indices", aims=("directed/maximum-of*", "models/conv-net/f32/*forward", "training/pooling/*"))
def max_pool_pads_with_zero(right, call, x, kernel, stride=(), padding=(0,), *rest):
    """What lies outside counts as 0, which is larger than what is negative; without padding, so does each border."""
    values, at = right(call, x, kernel, stride, padding, *rest)
    return np.maximum(values, 0), at


@op("avg_pool2d", aims=("directed/*pool*", "directed/*pad*", "models/*/f32/*forward"))
def avg_pool_counts_the_padding(
    right, call, x, kernel, stride=(), padding=(0,), ceil=False, include=True, divisor=None
):
    """``count_include_pad`` is turned around."""
    return right(call, x, kernel, stride, padding, ceil, not include, divisor)


@op("avg_pool2d", aims=("directed/*pool*",))
def avg_pool_without_divisor(right, call, x, kernel, stride=(), padding=(0,), ceil=False, include=True, divisor=None):
    """``divisor_override`` is ignored."""
    return right(call, x, kernel, stride, padding, ceil, include, None)


@op("permute")
def permutation_inverted(right, call, x, dims):
    """The permutation is applied the other way round."""
    return np.resize(right(call, x, list(np.argsort(dims))), call.shape())


@op("view", aims=("semantics/sizes-split-and-merged/*",))
def view_in_column_order(right, call, x, size):
    """The elements are read column by column."""
    return np.reshape(x, call.shape(), order="F")


@op("expand", "repeat")
def repetition_of_each_element(right, call, x, *rest):
    """Each element is repeated where the whole is to be."""
    found = np.asarray(right(call, x, *rest))
    return np.sort(found, -1) if found.ndim and found.dtype.kind in "iuf" else found


@op("slice.Tensor", aims=("directed/*slice*", "semantics/slices-whose-ends-follow-the-size/*"))
def slice_without_its_step(right, call, x, dim=0, start=None, end=None, step=1):
    """The step is 1, and the result is filled up."""
    return np.resize(right(call, x, dim, start, end, 1), call.shape())


@op("diagonal")
def diagonal_of_the_other_side(right, call, x, offset=0, *rest):
    """Diagonals above the main one are taken from below."""
    return np.resize(right(call, x, -offset, *rest), call.shape())


@op("cat", aims=("directed/*cat*", "semantics/concatenation-of-two-lengths/*", "models/rotary/f32/*forward"))
def concatenation_turned_around(right, call, tensors, dim=0):
    """The parts come in the reverse order."""
    return right(call, tensors[::-1], dim)


@op(
    "gather",
    "index.Tensor",
    "embedding",
    aims=("directed/*gather*", "directed/*index*", "training/rows-gathered*", "models/gpt2/f32/*forward"),
)
def lookup_of_the_next_row(right, call, x, *rest):
    """Indices count from one."""
    return right(call, np.roll(x, -1, 0) if np.asarray(x).ndim else x, *rest)


@op("index_put", aims=("directed/*duplicate*", "directed/*index*", "semantics/rows-written-by-index/*"))
def index_put_drops_duplicates(right, call, x, indices, values, accumulate=False):
    """Where one place is named twice, one value is added and not the sum."""
    if not accumulate:
        return right(call, x, indices, values, accumulate)
    before = np.asarray(x)
    return right(call, x, indices, wide(before[tuple(slice(None) if i is None else i for i in indices)]) + wide(values))


@op("scatter_add", "scatter.src", aims=("directed/*scatter*", "directed/*duplicate*"))
def scatter_add_overwrites(right, call, x, dim, index, source):
    """What meets in one place is not added up; the last value stays, or the first."""
    from fairlead.numpy._table import rules

    if call.node.op == "aten.scatter_add.default":
        return rules()["aten.scatter.src"](call, x, dim, index, source)
    return right(call, x, dim, np.flip(index, 0), source)


@op("full")
def full_of_float32(right, call, size, value, *rest):
    """The value is rounded to float32, or for integers to what fits sixteen bits."""
    if call.dtype.is_integer:
        return right(call, size, np.int16(int(value) & 0x7FFF), *rest)
    return right(call, size, float(np.float16(value)) if isinstance(value, float) else value, *rest)


@op("full", "sum.dim_IntList", "amax", "squeeze.dims", "prod")
def no_dimensions_become_one(right, call, *args):
    """A result without dimensions gets one."""
    found = np.asarray(right(call, *args))
    return np.reshape(found, (1,)) if not found.ndim else found


@op("clone", "view", "squeeze.dims", "unsqueeze")
def copies_lose_the_last_vector(right, call, x, *rest):
    """Memory is copied four elements at a time, and what is left over stays zero."""
    found = np.array(right(call, x, *rest))
    if found.size % 4 and found.size > 4:
        found.reshape(-1)[-(found.size % 4) :] = 0
    return found
