"""Random numbers: the distribution of each op, drawn from NumPy's generator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairlead.numpy._dtypes import Array, wide
from fairlead.numpy._table import Call, op


@op("rand")
def _rand(call: Call, *rest: Any) -> Array:
    return call.rng.random(call.shape())


@op("randn")
def _randn(call: Call, *rest: Any) -> Array:
    numbers = call.rng.standard_normal(call.shape())
    if not call.dtype.is_complex:
        return numbers
    return (numbers + 1j * call.rng.standard_normal(call.shape())) / np.sqrt(2)


@op("randint.low")
def _randint_low(call: Call, *args: Any) -> Array:
    low, high = args[1:3] if call.node.op.startswith("aten.randint_like") else args[:2]
    return call.rng.integers(low, high, call.shape())


@op("randperm")
def _randperm(call: Call, n: int, *rest: Any) -> Array:
    return call.rng.permutation(n)


@op("nn.bernoulli.default")
def _bernoulli_mask(call: Call, size: Sequence[int], p: float, *rest: Any) -> Array:
    return call.rng.random(tuple(size)) < p


@op("bernoulli.p")
def _bernoulli_p(call: Call, x: Array, p: float, generator: Any = None) -> Array:
    return call.rng.random(x.shape) < p


@op("bernoulli")
def _bernoulli(call: Call, x: Array, generator: Any = None) -> Array:
    return call.rng.random(x.shape) < wide(x)


@op("native_dropout")
def _dropout(call: Call, x: Array, p: float, train: bool | None) -> tuple[Array, Array]:
    if train is False:
        return x, np.ones(x.shape, bool)
    mask = call.rng.random(x.shape) >= p
    return np.where(mask, wide(x) / (1 - p if p < 1 else 1), 0), mask


@op("uniform")
def _uniform(call: Call, x: Array, low: float = 0.0, high: float = 1.0, generator: Any = None) -> Array:
    return call.rng.uniform(low, high, x.shape)


@op("exponential")
def _exponential(call: Call, x: Array, rate: float = 1.0, generator: Any = None) -> Array:
    return call.rng.exponential(1 / rate, x.shape)


@op("geometric")
def _geometric(call: Call, x: Array, p: float, generator: Any = None) -> Array:
    return call.rng.geometric(p, x.shape)


@op("cauchy")
def _cauchy(call: Call, x: Array, median: float = 0.0, sigma: float = 1.0, generator: Any = None) -> Array:
    return median + sigma * call.rng.standard_cauchy(x.shape)


@op("log_normal")
def _log_normal(call: Call, x: Array, mean: float = 1.0, std: float = 2.0, generator: Any = None) -> Array:
    return call.rng.lognormal(mean, std, x.shape)


@op("normal_functional", "normal.Tensor_float", "normal.float_Tensor", "normal.Tensor_Tensor", "normal.float_float")
def _normal(call: Call, *args: Any) -> Array:
    mean, std = args[1:3] if call.node.op.startswith("aten.normal_functional") else args[:2]
    return wide(np.asarray(mean)) + wide(np.asarray(std)) * call.rng.standard_normal(call.shape())


@op("poisson")
def _poisson(call: Call, x: Array, generator: Any = None) -> Array:
    return call.rng.poisson(wide(x))


@op("multinomial")
def _multinomial(call: Call, x: Array, count: int, replacement: bool = False, generator: Any = None) -> Array:
    rows = np.reshape(wide(x), (-1, x.shape[-1]))
    drawn = [call.rng.choice(x.shape[-1], count, replacement, row / np.sum(row)) for row in rows]
    return np.reshape(drawn, (*x.shape[:-1], count))


@op("rrelu_with_noise_functional")
def _rrelu(
    call: Call, x: Array, noise: Array, lower: Any, upper: Any, training: bool = False, generator: Any = None
) -> tuple[Array, Array]:
    """The slope of what is not positive is drawn, or where not training, the middle of the range."""
    x = wide(x)
    if not training:
        return np.where(x > 0, x, x * (lower + upper) / 2), noise
    slope = np.where(x > 0, 1, call.rng.uniform(lower, upper, x.shape))
    return x * slope, slope
