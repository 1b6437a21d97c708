"""Ops that make tensors of nothing, and that draw random numbers."""

from __future__ import annotations

import math

from fairlead.ir._model import Token
from fairlead.ir._types import DType, ScalarType, TensorType
from fairlead.ir.dims import Dim
from fairlead.ir.infer._promotion import dtype_of, result_dtype
from fairlead.ir.infer._rule import BrokenRule, Dims, Number, Results, Rule, require
from fairlead.ir.infer._sizes import broadcast, ceildiv, like, minus, with_shape


def _made(shape: Dims, dtype: DType, device: Token | None) -> TensorType:
    require(not any(isinstance(d, int) and d < 0 for d in shape), f"{list(shape)} has a negative size")
    return TensorType(dtype, shape, None, device.name if device else "cpu")


def full(
    size: Dims,
    fill_value: Number,
    dtype: DType | None,
    layout: Token | None,
    device: Token | None,
    pin_memory: bool | None,
) -> Results:
    """One number everywhere; its dtype is the default one of the number, where none is given."""
    return _made(size, dtype or dtype_of(fill_value), device)


def arange(
    start: Number,
    end: Number,
    step: Number,
    dtype: DType | None,
    layout: Token | None,
    device: Token | None,
    pin_memory: bool | None,
) -> Results:
    """Numbers from start to before end, so many that ``(end - start) / step`` is rounded up."""
    require(step != 0, "the step is zero")
    floating = any(isinstance(n, float) for n in (start, end, step))
    return _made((_count(start, end, step),), dtype or (DType.f32 if floating else DType.i64), device)


def _count(start: Number, end: Number, step: Number) -> Dim:
    if isinstance(start, int | float) and isinstance(end, int | float) and isinstance(step, int | float):
        exact = all(isinstance(n, int) for n in (start, end, step))
        count = -((start - end) // step) if exact else math.ceil((end - start) / step)
        require(count >= 0, f"from {start} no steps of {step} lead to {end}")
        return int(count)
    if not (isinstance(start, int | str) and isinstance(end, int | str) and isinstance(step, int | str)):
        raise BrokenRule(f"how many there are depends on {start}, {end} and {step}")
    if isinstance(step, int) and step < 0:
        start, end, step = end, start, -step
    length = minus(end, start)
    return length if step == 1 else ceildiv(length, step)


def drawn(
    size: Dims, dtype: DType | None, layout: Token | None, device: Token | None, pin_memory: bool | None
) -> Results:
    """Random numbers, in the default floating dtype where none is given."""
    return _made(size, dtype or DType.f32, device)


def empty(
    size: Dims,
    dtype: DType | None,
    layout: Token | None,
    device: Token | None,
    pin_memory: bool | None,
    memory_format: Token | None,
) -> Results:
    """Whatever memory holds, in the default floating dtype where none is given."""
    return _made(size, dtype or DType.f32, device)


def permutation(
    n: Dim, dtype: DType | None, layout: Token | None, device: Token | None, pin_memory: bool | None
) -> Results:
    """The numbers below n in random order."""
    return _made((n,), dtype or DType.i64, device)


def integers_below(
    high: Dim,
    size: Dims,
    dtype: DType | None,
    layout: Token | None,
    device: Token | None,
    pin_memory: bool | None,
) -> Results:
    """Random integers."""
    return _made(size, dtype or DType.i64, device)


def integers_between(
    low: Dim,
    high: Dim,
    size: Dims,
    dtype: DType | None,
    layout: Token | None,
    device: Token | None,
    pin_memory: bool | None,
) -> Results:
    """Random integers."""
    return _made(size, dtype or DType.i64, device)


def integers_like(
    self: TensorType,
    high: Dim,
    dtype: DType | None,
    layout: Token | None,
    device: Token | None,
    pin_memory: bool | None,
    memory_format: Token | None,
) -> Results:
    """Random integers, as many as there are elements."""
    return TensorType(dtype or self.dtype, self.shape, None, device.name if device else self.device)


def integers_between_like(
    self: TensorType,
    low: Dim,
    high: Dim,
    dtype: DType | None,
    layout: Token | None,
    device: Token | None,
    pin_memory: bool | None,
    memory_format: Token | None,
) -> Results:
    """Random integers, as many as there are elements."""
    return integers_like(self, high, dtype, layout, device, pin_memory, memory_format)


def mask(size: Dims, p: float, dtype: DType, device: Token) -> Results:
    """The mask of a dropout."""
    return _made(size, dtype, device)


def one_by_one(self: TensorType, parameter: float, generator: object) -> Results:
    """A random number for each element."""
    return like(self)


def two_by_one(self: TensorType, first: float, second: float, generator: object) -> Results:
    """A random number for each element, of a distribution with two parameters."""
    return like(self)


def each_its_own(self: TensorType, generator: object) -> Results:
    """A random number for each element, of a distribution that it is the parameter of."""
    return like(self)


def normal_tensors(mean: TensorType, std: TensorType, generator: object) -> Results:
    """A random number for each mean and deviation."""
    return with_shape(mean, broadcast(mean.shape, std.shape), result_dtype((mean, std)))


def normal_tensor_number(mean: TensorType, std: float, generator: object) -> Results:
    """A random number for each mean."""
    return like(mean)


def normal_number_tensor(mean: float, std: TensorType, generator: object) -> Results:
    """A random number for each deviation."""
    return like(std)


def normal_numbers(
    mean: float,
    std: float,
    size: Dims,
    generator: object,
    dtype: DType | None,
    layout: Token | None,
    device: Token | None,
    pin_memory: bool | None,
) -> Results:
    """Random numbers."""
    return _made(size, dtype or DType.f32, device)


def multinomial(self: TensorType, num_samples: Dim, replacement: bool, generator: object) -> Results:
    """So many indices for each row of weights."""
    require(self.rank in (1, 2), f"the weights have {self.rank} dimensions")
    return with_shape(self, (*self.shape[:-1], num_samples), DType.i64)


def dropout(input: TensorType, p: float, train: bool | None) -> Results:  # noqa: A002 - ATen's name
    """The result and the mask."""
    return like(input), like(input, DType.bool)


def rrelu(
    self: TensorType, noise: TensorType, lower: Number, upper: Number, training: bool, generator: object
) -> Results:
    """The result and the noise."""
    return like(self), like(noise)


def rrelu_backward(
    grad_output: TensorType,
    self: TensorType,
    noise: TensorType,
    lower: Number,
    upper: Number,
    training: bool,
    self_is_result: bool,
) -> Results:
    """A gradient for each element."""
    return like(self)


def triangle_indices(
    row: int,
    col: int,
    offset: int,
    dtype: DType | None,
    layout: Token | None,
    device: Token | None,
    pin_memory: bool | None,
) -> Results:
    """Rows and columns of a matrix's lower triangle."""
    count = sum(min(max(i + offset + 1, 0), col) for i in range(row))
    return _made((2, count), dtype or DType.i64, device)


def upper_triangle_indices(
    row: int,
    col: int,
    offset: int,
    dtype: DType | None,
    layout: Token | None,
    device: Token | None,
    pin_memory: bool | None,
) -> Results:
    """Rows and columns of a matrix's upper triangle."""
    count = sum(col - min(max(i + offset, 0), col) for i in range(row))
    return _made((2, count), dtype or DType.i64, device)


def number_of(self: TensorType) -> Results:
    """The only element, as a number."""
    return ScalarType(self.dtype)


RULES: dict[str, Rule] = {
    "aten.full.default": full,
    "aten.arange.start_step": arange,
    "aten.empty.memory_format": empty,
    "aten.rand.default": drawn,
    "aten.randn.default": drawn,
    "aten._efficientzerotensor.default": drawn,
    "aten.randperm.default": permutation,
    "aten.randint.default": integers_below,
    "aten.randint.low": integers_between,
    "aten.randint_like.default": integers_like,
    "aten.randint_like.low_dtype": integers_between_like,
    "nn.bernoulli.default": mask,
    "aten.bernoulli.p": one_by_one,
    "aten.bernoulli.default": each_its_own,
    "aten.poisson.default": each_its_own,
    "aten.exponential.default": one_by_one,
    "aten.geometric.default": one_by_one,
    "aten.uniform.default": two_by_one,
    "aten.cauchy.default": two_by_one,
    "aten.log_normal.default": two_by_one,
    "aten.normal_functional.default": two_by_one,
    "aten.normal.Tensor_Tensor": normal_tensors,
    "aten.normal.Tensor_float": normal_tensor_number,
    "aten.normal.float_Tensor": normal_number_tensor,
    "aten.normal.float_float": normal_numbers,
    "aten.multinomial.default": multinomial,
    "aten.native_dropout.default": dropout,
    "aten.rrelu_with_noise_functional.default": rrelu,
    "aten.rrelu_with_noise_backward.default": rrelu_backward,
    "aten.tril_indices.default": triangle_indices,
    "aten.triu_indices.default": upper_triangle_indices,
    "aten._local_scalar_dense.default": number_of,
}
