"""In how many bits products of float32 may be computed: options of a backend, and torch's own setting."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from fairlead import _options
from fairlead._program import Binding, Plan, Program, Step
from fairlead.backend import Backend, Options, Precision, Relaxable
from fairlead.errors import ArgumentError
from fairlead.ir import Graph, TensorType

__all__ = ["PreciseProgram", "accepted_by_torch", "devices_of", "options_of", "set_to"]


def options_of(backend: Backend[Any], given: Mapping[str, Any] | None, precision: Precision | None) -> Options:
    """The backend's options as the caller gave them, and what the precision makes of the others.

    Raises what parsing raises, and `ArgumentError` where an option that was given says something else.
    """
    options = _options.parse(backend, given)
    if precision is None or not isinstance(backend, Relaxable):
        return options
    relaxed: Options = backend.options_for_precision(options, precision)
    for name in given or {}:
        if getattr(relaxed, name) != getattr(options, name):
            raise ArgumentError(
                f"precision is {precision!r} and the option {name!r} of backend {backend.name!r} is "
                f"{getattr(options, name)!r}: they ask for different things",
                where=f"fairlead.compile; the precision makes it {getattr(relaxed, name)!r}",
                next="pass one of them",
            )
    return relaxed


class PreciseProgram(Program):
    """A program that has torch's kernels compute with a precision, whatever torch is set to for the rest."""

    goes_straight = False

    def __init__(self, precision: Precision | None, plan: Plan, *program: Any) -> None:
        super().__init__(plan, *program)
        self._precision = precision
        self._on_cuda = _is_on_cuda(plan.graph)

    def _run(self, binding: Binding, steps: Sequence[Step], registers: list[Any]) -> None:
        with set_to(self._precision, self._on_cuda):
            super()._run(binding, steps, registers)

    def _made(self, args: Sequence[Any], key: tuple[int, ...], old: Binding | None) -> Binding:
        with set_to(self._precision, self._on_cuda):
            return super()._made(args, key, old)


def accepted_by_torch(graph: Graph) -> Precision:
    """The precision that torch's kernels may compute a graph with, as torch is set; TF32 where it has no one word."""
    try:
        setting = _Setting.now()
    except ArgumentError:
        return "high"
    on_cuda = _is_on_cuda(graph)
    convolves = any(n.op.startswith("aten.convolution") for n in graph.walk())
    if setting.products == "highest":
        return "high" if on_cuda and convolves and setting.tf32_convolutions else "highest"
    return "high" if setting.products == "high" else "medium"


def devices_of(graph: Graph) -> set[str]:
    """The devices of the graph's tensors."""
    values = (*(i.value for i in graph.inputs), *(r for n in graph.nodes for r in n.results if r is not None))
    return {v.type.device for v in values if isinstance(v.type, TensorType)}


def _is_on_cuda(graph: Graph) -> bool:
    return any(device.startswith("cuda") for device in devices_of(graph))


class _Setting(NamedTuple):
    """What torch is set to: for products, and whether convolutions on CUDA may be in TF32."""

    products: str
    tf32_convolutions: bool

    @classmethod
    def now(cls) -> _Setting:
        """Raises `ArgumentError` where the libraries that torch calls are not set alike, which it has no word for."""
        try:
            return cls(torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32)
        except RuntimeError as error:
            raise ArgumentError(
                "precision cannot be set beside torch.backends.fp32_precision",
                where=f"torch {torch.__version__}: {str(error).split(',')[0]}",
                next="leave precision out, and torch's kernels follow torch.backends; or set neither",
            ) from error

    def at(self, precision: Precision, on_cuda: bool) -> _Setting:
        """What it has to be for the precision. On a CPU torch has nothing between float32 and bfloat16."""
        if on_cuda:
            return _Setting(precision, precision != "highest")
        exact_enough = precision == "high" and self.products == "highest"
        return self._replace(products=self.products if exact_enough else precision)


class _Hold:
    """Torch has one setting for all threads: programs that want another one wait for those that hold it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._wanted: tuple[Precision, bool] | None = None
        self._holders = 0
        self._restore: Callable[[], None] = _nothing

    def take(self, precision: Precision, on_cuda: bool) -> None:
        """Set torch to a precision, or wait until that can be done."""
        with self._changed:
            self._changed.wait_for(lambda: not self._holders or self._wanted == (precision, on_cuda))
            if not self._holders:
                self._restore = _changed_to(precision, on_cuda)
                self._wanted = precision, on_cuda
            self._holders += 1

    def give_back(self) -> None:
        """Set torch to what it was, if nobody else holds it."""
        with self._changed:
            self._holders -= 1
            if not self._holders:
                self._restore()
                self._changed.notify_all()


def _changed_to(precision: Precision, on_cuda: bool) -> Callable[[], None]:
    """What undoes the change; torch is left alone where it is set so already."""
    before = _Setting.now()
    wanted = before.at(precision, on_cuda)
    if wanted == before:
        return _nothing
    libraries = [(each, each.fp32_precision) for each in _libraries()]
    _set(wanted)

    def restore() -> None:
        _set(before)
        with _allowed():
            for each, own in libraries:
                each.fp32_precision = own

    return restore


def _nothing() -> None:
    pass


def _set(setting: _Setting) -> None:
    with _allowed():
        torch.set_float32_matmul_precision(setting.products)
        torch.backends.cudnn.allow_tf32 = setting.tf32_convolutions


def _allowed() -> contextlib.AbstractContextManager[None]:
    """Within, settings may be written by a process that lets them be written only where they are put back, as here."""
    allowed: contextlib.AbstractContextManager[None] = getattr(torch.backends, "__allow_nonbracketed_mutation")()
    return allowed


def _libraries() -> list[Any]:
    """What has a setting of its own beside those two: from torch 2.9 on, each library for each kind of op."""
    names = (("cuda", "matmul"), ("mkldnn", "matmul"), ("cudnn", "conv"), ("cudnn", "rnn"))
    found = [getattr(getattr(torch.backends, library), op, None) for library, op in names]
    return [each for each in found if _has_own(each)]


def _has_own(library: Any) -> bool:
    try:
        return isinstance(library.fp32_precision, str)
    except AttributeError:  # older torch's object raises it for any name, and has none of its own
        return False


_hold = _Hold()


@contextlib.contextmanager
def set_to(precision: Precision | None, on_cuda: bool) -> Iterator[None]:
    """Torch's products and convolutions of float32 with this precision within, None for what torch is set to.

    Afterwards the setting is what it was. What runs in other threads meanwhile has this one as well.
    """
    if precision is None:
        yield
        return
    _hold.take(precision, on_cuda)
    try:
        yield
    finally:
        _hold.give_back()
