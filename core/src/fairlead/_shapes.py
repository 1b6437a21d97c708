"""Sizes that are declared once: ranges and buckets, what is compiled for them, and the padding of what lies between."""

from __future__ import annotations

import inspect
import itertools
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import torch

from fairlead._capture import _dynamo
from fairlead._dims import Dim
from fairlead.errors import ArgumentError, ShapeError

Declared = Mapping[str, Mapping[int, Dim]]
"""The dimensions of arguments, by the argument's name and the axis."""

_ROUNDING = {torch.float64: 1e-7, torch.float32: 1e-3}
"""How far results may differ that padding must not change, as a share of the largest; of narrower types 3e-2.

Kernels choose their order of summation by size; what padding changes is not of the size of rounding.
"""


class Shapes:
    """The declared sizes of one program."""

    def __init__(self, model: Callable[..., Any], declared: Declared) -> None:
        function = model.forward if isinstance(model, torch.nn.Module) else model
        self._signature = inspect.signature(function)
        self._eager = model
        self._declared = declared
        self._check()
        self.dims = {dim.name: dim for axes in declared.values() for dim in axes.values()}
        self._cuts: list[dict[int, str]] | None = None

    @property
    def is_static(self) -> bool:
        """Whether all that is compiled has fixed sizes."""
        return all(dim.buckets for dim in self.dims.values())

    def call(self, compiled: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of what is compiled, with sizes padded to their buckets and results cut back.

        Sizes that are not declared are passed on as they are.
        """
        given = self._signature.bind(*args, **kwargs)
        sizes = self._sizes(given)
        padded = {name: bucket for name, size in sizes.items() if (bucket := self.dims[name].bucket(size)) != size}
        if not padded:
            return compiled(*args, **kwargs)
        if self._cuts is None:
            self._cuts = self._learned(given, sizes, padded)
        self._pad(given, padded)
        return self._cut(compiled(*given.args, **given.kwargs), {name: sizes[name] for name in padded})

    def ahead(self, compiled: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Ahead]:
        """Every program that the declared sizes need, made from one example."""
        for choice in itertools.product(*(dim.programs() for dim in self.dims.values())):
            sizes = dict(zip(self.dims, choice, strict=True))
            given = self._signature.bind(*args, **kwargs)
            self._resize(given, sizes)
            for name, axis, dim in self._places(given):
                _mark(given.arguments[name], axis, dim, sizes[dim.name])
            yield Ahead(sizes, lambda given=given: compiled(*given.args, **given.kwargs))  # type: ignore[misc]

    def learn(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Find out which results follow which dimension, and that padding changes nothing else."""
        between = ((name, dim.between()) for name, dim in self.dims.items())
        sizes = {name: size for name, size in between if size is not None}
        if not sizes:
            return
        given = self._signature.bind(*args, **kwargs)
        self._resize(given, sizes)
        self._cuts = self._learned(given, sizes, {name: self.dims[name].bucket(size) for name, size in sizes.items()})

    def __reduce__(self) -> tuple[Any, ...]:
        return Shapes, (self._eager, self._declared)

    def _check(self) -> None:
        for name, axes in self._declared.items():
            if name not in self._signature.parameters:
                known = ", ".join(self._signature.parameters)
                raise _argument(f"shapes names the argument {name!r}", f"name one of: {known}")
            if not all(isinstance(a, int) and a >= 0 and isinstance(d, Dim) for a, d in axes.items()):
                raise _argument(f"shapes of {name!r} is {axes!r}", 'pass axes and dimensions, as in {0: Dim("batch")}')
        dims = {id(d): d for axes in self._declared.values() for d in axes.values()}
        if len({d.name for d in dims.values()}) != len(set(dims.values())):
            raise _argument("two dimensions in shapes have one name", "declare each once, and use it everywhere")

    def _places(self, given: inspect.BoundArguments) -> Iterator[tuple[str, int, Dim]]:
        """The declared dimensions of arguments that a call passes."""
        for name, axes in self._declared.items():
            if given.arguments.get(name) is not None:
                yield from ((name, axis, dim) for axis, dim in axes.items())

    def _resize(self, given: inspect.BoundArguments, sizes: Mapping[str, int]) -> None:
        for name, axis, dim in self._places(given):
            tensor = given.arguments[name]
            if not isinstance(tensor, torch.Tensor) or tensor.dim() <= axis or tensor.shape[axis] == 0:
                raise _argument(f"the example has no dimension {axis} of {name!r}", "pass an example of a call")
            if dim.name in sizes:
                given.arguments[name] = _resized(tensor, axis, sizes[dim.name])

    def _sizes(self, given: inspect.BoundArguments) -> dict[str, int]:
        """The sizes of this call by dimension; none where one is not as declared."""
        sizes: dict[str, int] = {}
        for name, axis, dim in self._places(given):
            tensor = given.arguments[name]
            if not isinstance(tensor, torch.Tensor) or tensor.dim() <= axis:
                return {}
            size = tensor.shape[axis]
            if not dim.min <= size <= dim.max or sizes.setdefault(dim.name, size) != size:
                return {}
        return sizes

    def _pad(self, given: inspect.BoundArguments, padded: Mapping[str, int]) -> None:
        for name, axis, dim in self._places(given):
            if dim.name in padded:
                tensor = given.arguments[name]
                behind = [0, 0] * (tensor.dim() - 1 - axis) + [0, padded[dim.name] - tensor.shape[axis]]
                given.arguments[name] = torch.nn.functional.pad(tensor, behind)

    def _cut(self, result: Any, sizes: Mapping[str, int]) -> Any:
        leaves, rebuild = _dynamo.flattened(result)
        cuts = self._cuts or []
        for index, axes in enumerate(cuts):
            for axis, name in axes.items():
                if name in sizes:
                    leaves[index] = leaves[index].narrow(axis, 0, sizes[name])
        return rebuild(leaves)

    def _learned(
        self, given: inspect.BoundArguments, sizes: Mapping[str, int], padded: Mapping[str, int]
    ) -> list[dict[int, str]]:
        """Which axes of results follow which dimension: the model in eager mode, as it is and with each padded."""
        plain, _ = _dynamo.flattened(self._run(given, {}))
        cuts: list[dict[int, str]] = [{} for _ in plain]
        for dim, bucket in padded.items():
            other, _ = _dynamo.flattened(self._run(given, {dim: bucket}))
            if len(other) != len(plain):
                raise self._depends(dim, "the number of results")
            for index, (before, after) in enumerate(zip(plain, other, strict=True)):
                if not isinstance(before, torch.Tensor):
                    if before != after:
                        raise self._depends(dim, f"result {index}")
                    continue
                axes = [a for a in range(before.dim()) if before.shape[a] != after.shape[a]]
                if any((before.shape[a], after.shape[a]) != (sizes[dim], bucket) for a in axes):
                    raise self._depends(dim, f"the shape of result {index} by another size than its own")
                for axis in axes:
                    cuts[index][axis] = dim
                    after = after.narrow(axis, 0, sizes[dim])
                if not _equal(before, after):
                    raise self._depends(dim, f"the values of result {index}")
        return cuts

    def _run(self, given: inspect.BoundArguments, padded: Mapping[str, int]) -> Any:
        bound = self._signature.bind(*given.args, **given.kwargs)
        self._pad(bound, padded)
        devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
        with torch.random.fork_rng(devices=devices):
            if not isinstance(self._eager, torch.nn.Module):
                return self._eager(*bound.args, **bound.kwargs)
            buffers = {name: buffer.clone() for name, buffer in self._eager.named_buffers()}
            return torch.func.functional_call(self._eager, buffers, bound.args, bound.kwargs)

    def _depends(self, dim: str, what: str) -> ShapeError:
        return ShapeError(
            f"padding along {dim!r} changes {what}",
            where=f"{type(self._eager).__name__}, with zeros behind {dim!r} up to its next bucket",
            next="leave buckets out: one program then serves the whole range; or let the model mask what is padded",
        )


class Ahead:
    """One program to be compiled: the sizes that it is for, and the call that does it."""

    def __init__(self, sizes: dict[str, int], run: Callable[[], Any]) -> None:
        self.sizes = sizes
        self.run = run

    def __str__(self) -> str:
        return ", ".join(f"{name}={size}" for name, size in self.sizes.items())


def compile_all(
    shapes: Shapes,
    compiled: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    progress: bool | None,
) -> dict[str, float]:
    """Compile every program that the declared sizes need; the seconds of each."""
    shapes.learn(args, kwargs)
    programs = list(shapes.ahead(compiled, args, kwargs))
    seconds: dict[str, float] = {}
    with ExitStack() as stack:
        stack.enter_context(_dynamo.without_limits())
        advance = stack.enter_context(_bar(len(programs), progress))
        for program in programs:
            advance(str(program))
            started = time.perf_counter()
            program.run()
            seconds[str(program)] = time.perf_counter() - started
    return seconds


def _bar(total: int, progress: bool | None) -> Any:
    from fairlead._progress import bar

    return bar("compiling", total, sys.stderr.isatty() if progress is None else progress)


def _resized(tensor: torch.Tensor, axis: int, size: int) -> torch.Tensor:
    """The tensor with another size, by repeating what it has; a tensor of its own."""
    return tensor.index_select(axis, torch.arange(size, device=tensor.device) % tensor.shape[axis])


def _mark(tensor: torch.Tensor, axis: int, dim: Dim, size: int) -> None:
    if dim.buckets or size < 2:
        torch._dynamo.mark_static(tensor, axis)
    else:
        torch._dynamo.mark_dynamic(tensor, axis, min=max(dim.min, 2), max=dim.max)


def _equal(before: torch.Tensor, after: torch.Tensor) -> bool:
    if not before.is_floating_point() and not before.is_complex():
        return torch.equal(before, after)
    scale = before.detach().abs().nan_to_num(0.0, 0.0).max().item() if before.numel() else 0.0
    allowed = _ROUNDING.get(before.dtype, 3e-2) * scale
    return torch.allclose(before.detach(), after.detach(), rtol=0.0, atol=allowed, equal_nan=True)


def _argument(what: str, advice: str) -> ArgumentError:
    return ArgumentError(what, where="fairlead.compile", next=advice)
