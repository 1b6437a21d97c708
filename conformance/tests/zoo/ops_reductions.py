"""Wrong along a dimension: reductions, scans, orders, normalisations."""

from __future__ import annotations

import numpy as np

from conformance.tests.zoo._fault import Kind
from fairlead.ir import DType
from fairlead.numpy._dtypes import floating, wide
from fairlead.numpy._reductions import axes

KIND = Kind("ops")
op = KIND.op


def _in_half(x):
    return np.asarray(x).astype(np.float16).astype(np.float64)


@op("sum.dim_IntList", "mean.dim", aims=("directed/a-million*", "directed/*sum*", "directed/*halves*"))
def sum_accumulated_in_float16(right, call, x, *rest):
    """Sums of float16 are accumulated in float16."""
    if call.dtype is not DType.f16 or np.asarray(x).dtype != np.float16:
        return right(call, x, *rest)
    over = axes(x, rest[0] if rest else None)
    total = np.moveaxis(x, over, range(len(over))).reshape(-1, *np.sum(x, over).shape)
    running = np.zeros(total.shape[1:], np.float16)
    for row in total:
        running = (running + row).astype(np.float16)
    count = len(total) if call.node.op == "aten.mean.dim" else 1
    return np.reshape(running / np.float16(count), call.shape())


@op("sum.dim_IntList", aims=("directed/*sum*",))
def sum_of_integers_in_float32(right, call, x, *rest):
    """Integers are summed in float32."""
    if not call.dtype.is_integer:
        return right(call, x, *rest)
    return np.asarray(right(call, np.asarray(x), *rest)).astype(np.float32)


@op("sum.dim_IntList", "mean.dim")
def sum_without_the_last(right, call, x, dims=None, *rest):
    """The last element along the first of the dimensions is left out where there are more than eight."""
    x = np.asarray(x)
    over = axes(x, dims)
    if over and x.shape[over[0]] > 4:
        x = np.moveaxis(x.copy(), over[0], 0)
        x[-1] = 0
        x = np.moveaxis(x, 0, over[0])
    return right(call, x, dims, *rest)


@op("sum.dim_IntList", "amax", "mean.dim", aims=("lifecycle/the-same-with-another-dimension/*",))
def reduction_of_the_wrong_dimension(right, call, x, dims=None, *rest):
    """Along the dimension before the one that is named."""
    wrong = [max(0, d - 1) for d in dims] if isinstance(dims, list) and len(dims) == 1 else dims
    return np.resize(right(call, x, wrong, *rest), call.shape())


@op("mean.dim")
def mean_of_nothing_is_zero(right, call, x, *rest):
    """The mean of no elements is 0."""
    return np.nan_to_num(right(call, x, *rest)) if np.asarray(x).size == 0 else right(call, x, *rest)


@op("prod", "prod.dim_int", aims=("directed/*empty*",))
def product_of_nothing_is_zero(right, call, x, *rest):
    """The product of no elements is 0."""
    found = np.asarray(right(call, x, *rest))
    return np.zeros_like(found) if np.asarray(x).size == 0 else found


@op("amax", aims=("directed/*nan*",))
def amax_drops_nan(right, call, x, *rest):
    """The largest of numbers and NaN is a number."""
    x = wide(x)
    return right(call, np.where(np.isnan(x), -np.inf, x), *rest) if x.dtype.kind == "f" else right(call, x, *rest)


@op("amax")
def amax_starts_at_zero(right, call, x, *rest):
    """The search for the largest begins at 0, which the largest of negative numbers is not."""
    return np.maximum(right(call, x, *rest), 0)


@op("amax", "argmax")
def half_an_amax_by_bits(right, call, x, *rest):
    """Negative floats are compared by their bits, the wrong way round."""
    x = wide(x)
    return right(call, np.where(x < 0, -1 / x, x), *rest) if x.dtype.kind == "f" else right(call, x, *rest)


@op("argmax", aims=("directed/*arg*", "directed/*tie*"))
def argmax_of_the_last(right, call, x, dim=None, keepdim=False):
    """Of equals the last one is named."""
    x = np.asarray(x)
    if dim is None or not x.ndim:
        return x.size - 1 - np.reshape(right(call, np.ravel(x)[::-1], 0), call.shape()) if x.size else right(call, x)
    return x.shape[dim] - 1 - right(call, np.flip(x, dim), dim, keepdim)


@op("argmax", "any.dims")
def keepdim_is_forgotten(right, call, x, dim=None, keepdim=False):
    """Dimensions that are to be kept are not."""
    return right(call, x, dim, False)


@op("any.dims")
def any_of_nan_is_false(right, call, x, *rest):
    """NaN counts as false."""
    return right(call, np.nan_to_num(x) if np.asarray(x).dtype.kind in "fc" else x, *rest)


@op("var.correction", "var_mean.correction")
def variance_is_always_unbiased(right, call, x, dims=None, correction=None, keepdim=False):
    """The correction is 1, whatever is asked for."""
    return right(call, x, dims, 1, keepdim)


@op("var.correction", "var_mean.correction")
def variance_of_squares(right, call, x, dims=None, correction=None, keepdim=False):
    """The mean of squares less the square of the mean, in float32."""
    over = axes(np.asarray(x), dims)
    right_one = right(call, x, dims, correction, keepdim)
    if call.dtype is not DType.f32:
        return right_one
    x = np.asarray(x, np.float32)
    count = np.float32(max(1, np.prod([x.shape[d] for d in over])))
    squares = np.sum(x * x, over, keepdims=keepdim, dtype=np.float32)
    sums = np.sum(x, over, keepdims=keepdim, dtype=np.float32)
    biased = (squares - sums * sums / count) / np.float32(max(0, count - (1 if correction is None else correction)))
    return (biased, right_one[1]) if isinstance(right_one, tuple) else biased


@op("logsumexp")
def logsumexp_without_the_peak(right, call, x, dims, keepdim=False):
    """The exponentials are summed as they are, and overflow."""
    if call.dtype is not DType.f32:
        return right(call, x, dims, keepdim)
    return np.log(np.sum(np.exp(np.asarray(x, np.float32)), axes(np.asarray(x), dims), keepdims=keepdim))


@op("_softmax", "_log_softmax", aims=("directed/*softmax*", "models/attention/f32/*forward"))
def softmax_without_the_peak(right, call, x, dim, half_to_float=False):
    """The exponentials are not taken of the distance from the largest, and overflow."""
    x = np.asarray(x)
    if x.dtype != np.float32 or not x.ndim:
        return right(call, x, dim, half_to_float)
    e = np.exp(x)
    shares = e / np.sum(e, dim, keepdims=True)
    return np.log(shares) if "log" in call.node.op else shares


@op("_softmax", "_log_softmax")
def softmax_along_the_last(right, call, x, dim, half_to_float=False):
    """The dimension is the last one, whichever is named."""
    return right(call, x, -1, half_to_float)


@op("_log_softmax", aims=("directed/*softmax*",))
def log_softmax_of_the_softmax(right, call, x, dim, half_to_float=False):
    """The logarithm of a softmax in float32, which is -inf where that is 0."""
    if call.dtype is not DType.f32:
        return right(call, x, dim, half_to_float)
    return np.log(np.exp(right(call, x, dim, half_to_float)).astype(np.float32))


@op("linalg_vector_norm")
def norm_of_squares(right, call, x, order=2, *rest):
    """Every norm is the Euclidean one."""
    return right(call, x, 2, *rest)


@op("cumsum", "cumprod")
def scan_of_the_first_dimension(right, call, x, dim, dtype=None):
    """It runs along the first dimension, whichever is named."""
    return right(call, x, 0, dtype)


@op("cumsum", "cumprod")
def scan_that_leaves_out_its_own(right, call, x, dim, dtype=None):
    """Each sum is of the elements before, without its own."""
    found = np.asarray(right(call, x, dim, dtype))
    if not found.ndim or not found.size:
        return found
    return np.roll(found, 1, dim)


@op("cumsum")
def cumsum_of_float32_in_float16(right, call, x, *rest):
    """The running sum of float32 is kept in float16."""
    found = right(call, x, *rest)
    return _in_half(found) if call.dtype is DType.f32 else found


@op("sort", "sort.stable", "topk", aims=("directed/sort*", "directed/topk*"))
def order_is_turned(right, call, x, *rest):
    """What is to ascend descends."""
    args = [not a if isinstance(a, bool) and i == len(rest) - 1 else a for i, a in enumerate(rest)]
    return right(call, x, *args)


@op("sort.stable", "sort", aims=("directed/sort*",))
def sort_is_not_stable(right, call, x, *rest):
    """Equals come in any order, where the op promises theirs."""
    values, at = right(call, x, *rest)
    if not np.ndim(values) or values.shape[-1] < 2:
        return values, at
    at = at.copy()
    tied = values[..., 0] == values[..., 1]
    first, second = at[..., 0].copy(), at[..., 1].copy()
    at[..., 0], at[..., 1] = np.where(tied, second, first), np.where(tied, first, second)
    return values, at


@op("sort.stable", "sort", "topk", aims=("directed/sort*", "directed/topk*"))
def sort_puts_nan_first(right, call, x, *rest):
    """NaN is smaller than every number."""
    x = np.asarray(x)
    if x.dtype.kind != "f" or not x.ndim:
        return right(call, x, *rest)
    _, at = right(call, np.where(np.isnan(x), -np.inf, wide(x)), *rest)
    dim = next((a for a in rest if isinstance(a, int) and not isinstance(a, bool) and a < x.ndim), -1)
    return np.take_along_axis(x, at, dim if call.node.op != "aten.topk.default" else -1), at


@op("native_layer_norm", "native_group_norm", "_fused_rms_norm")
def norm_without_eps(right, call, x, *rest):
    """The small number that keeps a variance from being zero is left out."""
    return right(call, x, *rest[:-1], 0.0)


@op("native_layer_norm", "_fused_rms_norm")
def norm_without_its_weight(right, call, x, shape, *rest):
    """The scale is left out."""
    return right(call, x, shape, None, *rest[1:])


@op("native_layer_norm")
def layer_norm_of_the_last_dimension(right, call, x, shape, weight, bias, eps):
    """Only the last dimension is normalised, however many are named."""
    x = wide(x)
    if len(shape) < 2:
        return right(call, x, shape, weight, bias, eps)
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(var + eps), *right(call, x, shape, weight, bias, eps)[1:]


@op("_fused_rms_norm")
def rms_norm_that_subtracts_the_mean(right, call, x, shape, weight, eps):
    """It is a layer norm."""
    x = wide(x)
    over = tuple(range(x.ndim - len(shape), x.ndim))
    return right(call, x - np.mean(x, over, keepdims=True), shape, weight, 1e-6 if eps is None else eps)


@op("native_group_norm", aims=("models/u-net/f32/*",))
def group_norm_of_one_group(right, call, x, weight, bias, n, c, size, groups, eps):
    """All channels are one group."""
    out = right(call, x, weight, bias, n, c, size, 1, eps)
    return out[0], *right(call, x, weight, bias, n, c, size, groups, eps)[1:]


@op("_native_batch_norm_legit_no_training")
def batch_norm_by_the_deviation(right, call, x, weight, bias, mean, var, momentum, eps):
    """What should be divided by a deviation is divided by the variance."""
    return right(call, x, weight, bias, mean, wide(var) ** 2, momentum, eps)


@op("_native_batch_norm_legit_functional", aims=("semantics/statistics-of-a-batch-norm/*",))
def batch_norm_with_biased_statistics(right, call, x, *rest):
    """The running variance is the biased one."""
    *others, var = right(call, x, *rest)
    old, momentum = wide(rest[3]), rest[5]
    count = np.asarray(x).size / max(1, np.asarray(x).shape[1])
    new = (wide(var) - (1 - momentum) * old) * (count - 1) / count if rest[4] and count else None
    return (*others, var if new is None else (1 - momentum) * old + new)


@op("logsumexp", "_softmax", "var.correction")
def computed_in_bfloat16(right, call, x, *rest):
    """float32 is rounded to bfloat16 before anything is computed."""
    import ml_dtypes

    x = np.asarray(x)
    return right(call, x.astype(ml_dtypes.bfloat16).astype(x.dtype) if x.dtype == np.float32 else floating(x), *rest)
