"""What Fairlead knows of how Dynamo runs what it has compiled. Checked on torch 2.8, 2.13 and 2.15.

What is read: the entries that Dynamo keeps for a code object, and the bytecode in them; its frame evaluation, for a
call that compiles nothing; and the state of a thread that its guards look at. As in `_torch`, each function degrades
to "not known", but for `run_compiled`, without which nothing can be frozen.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import inspect
import itertools
import threading
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch._dynamo.config
import torch._dynamo.types as types_of_dynamo
import torch.nn.modules.module as modules
from torch._C._dynamo.eval_frame import _debug_get_cache_entry_list, set_eval_frame
from torch._dynamo import trace_rules
from torch._dynamo.convert_frame import has_tensor_in_frame
from torch._dynamo.symbolic_convert import InstructionTranslator
from torch._dynamo.types import ConvertFrameReturn
from torch._dynamo.variables import torch as functions
from torch.autograd import forward_ad
from torch.utils._pytree import tree_flatten, tree_unflatten

__all__ = [
    "APART",
    "Frame",
    "backend_of_trace",
    "capturing_numbers",
    "deny_exporting",
    "flattened",
    "frame_of",
    "has_backward_hooks",
    "has_hooks",
    "hold_order",
    "in_forward_mode",
    "original",
    "own_code",
    "run_compiled",
    "signature",
    "thread_state",
    "top_function",
    "transform_around",
    "without_limits",
]


APART: Any = {"isolate_recompiles": True} if "isolate_recompiles" in inspect.signature(torch.compile).parameters else {}
"""What to tell ``torch.compile`` so that a program's recompilations are its own.

Dynamo counts them by function, and stops at the eighth: of nine modules of one class, each a program of its own, the
ninth would run in eager mode. torch 2.11 and before know no better.
"""


_numbers = itertools.count()


def own_code(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with code of its own, where `APART` does nothing: releases before count and guard by code."""
    if APART or not isinstance(function, types.FunctionType):
        return function
    code = function.__code__.replace(co_name=f"{function.__name__}_{next(_numbers)}")
    return types.FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )


def deny_exporting(module: str) -> None:
    """Have ``torch.compiler.is_exporting()`` be false in programs whose backend is an object of this module.

    Dynamo says so of all that is not exported since torch 2.13; before, it says true of whatever it traces, and
    transformers then keeps masks that hide nothing, with which attention loses its fast kernels on CUDA.
    """
    if tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 13):
        return
    known = functions.tracing_state_functions()

    class Answers(dict[Any, bool | None]):
        def __getitem__(self, function: Any) -> bool | None:
            if function is torch.compiler.is_exporting and backend_of_trace().__module__ == module:
                return bool(torch.compiler._is_exporting_flag)
            return known[function]

    answers = Answers(known)
    functions.tracing_state_functions = lambda: answers  # type: ignore[assignment]


def backend_of_trace() -> Any:
    """What ``torch.compile`` was given for the program that this thread is tracing."""
    backend: Any = InstructionTranslator.current_tx().output.compiler_fn
    for wrapped in ("_torchdynamo_orig_backend", "compiler_fn"):
        backend = getattr(backend, wrapped, backend)
    return backend


def original(compiled: Any) -> Callable[..., Any]:
    """What ``torch.compile`` wrapped: it runs as compiled where frames are evaluated by Dynamo, else in eager mode."""
    function: Callable[..., Any] = compiled._torchdynamo_orig_callable
    return function


def run_compiled(
    compiled: Any, args: Sequence[Any], kwargs: Mapping[str, Any], missed: Callable[[types.CodeType], None]
) -> Any:
    """Call what ``torch.compile`` wrapped with what it has compiled so far, in this thread, guards and all.

    A frame with tensors that no entry fits is told to ``missed``, and run in eager mode where that does not raise.
    """

    def callback(frame: Any, *args: Any, **kwargs: Any) -> ConvertFrameReturn:
        if not trace_rules.check(frame.f_code) and has_tensor_in_frame(frame):
            missed(frame.f_code)
            return _once()
        return ConvertFrameReturn()

    cells = dict(zip(compiled.__code__.co_freevars, compiled.__closure__, strict=True))
    for name in _OF_BACKEND:
        setattr(callback, name, cells["callback"].cell_contents)
    function = original(compiled)
    prior, entries = set_eval_frame(None), _set_entries(getattr(compiled, "_isolate_recompiles_id", -1))
    try:
        set_eval_frame(callback)
        return function(*args, **kwargs)  # from here, as any frame between would be looked at too
    finally:
        set_eval_frame(prior)
        _set_entries(entries)


_set_entries = getattr(torch._C._dynamo.eval_frame, "set_eval_frame_isolate_recompiles_id", lambda whose: -1)
"""Choose whose entries Dynamo looks at in this thread, as `APART` keeps them; answers with whose they were."""


_OF_BACKEND = ("_torchdynamo_orig_backend", "_torchdynamo_orig_callable")
"""Where Dynamo reads from a callback whose entries it is about; torch 2.8 has the second name."""


def _once() -> ConvertFrameReturn:
    """Run this frame in eager mode, and ask again the next time."""
    action: Any = types_of_dynamo.FrameAction  # type: ignore[attr-defined]
    strategy: Any = types_of_dynamo.FrameExecStrategy  # type: ignore[attr-defined]
    return ConvertFrameReturn(frame_exec_strategy=strategy(action.DEFAULT, action.DEFAULT))


_order = threading.Lock()
_holds = 0


def hold_order() -> Callable[[], None]:
    """Have Dynamo leave the entries of all functions in their order; what is returned ends that, and is called once.

    Otherwise Dynamo moves the entry that fits to the front while other threads, which give the GIL away between guards,
    are on their way through the list and miss what has moved behind them. torch 2.8 has no such switch.
    """
    _hold(1)
    return functools.partial(_hold, -1)


def _hold(more: int) -> None:
    global _holds
    with _order:
        _holds += more
        moves = getattr(torch._C._dynamo.eval_frame, "_set_lru_cache", None)
        if moves is not None:
            moves(_holds == 0)


class Frame(NamedTuple):
    """The one frame of a program: its function, what is passed first, and the bytecode that Dynamo made of it.

    ``graph`` is the global name by which the bytecode calls the compiled graph.
    """

    function: types.FunctionType
    leading: tuple[Any, ...]
    code: types.CodeType
    graph: str

    def install(self, name: str, graph: Callable[..., Any]) -> Callable[[], None]:
        """Put a function among the globals of the bytecode; what is returned takes it away."""
        names: dict[str, Any] = getattr(self.function, "__globals__")  # noqa: B009 - mypy takes it for a bound method
        names[name] = graph
        return functools.partial(names.pop, name, None)

    def calling(self, name: str, *, root: object | None = None) -> Callable[..., Any]:
        """The frame's bytecode as a function, without guards, that calls the global ``name`` in place of the graph.

        ``root`` stands in for the module from which the bytecode collects weights, where `collects_from_root` holds.
        """
        function: Any = self.function
        leading = self.leading
        code = self.code.replace(co_names=tuple(name if n == self.graph else n for n in self.code.co_names))
        closure = function.__closure__
        if root is not None:
            if leading:
                leading = (root,)
            else:
                closure = tuple(types.CellType(root) for _ in closure or ())
        made = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
        made.__kwdefaults__ = function.__kwdefaults__
        made.__dict__["made_from"] = self.code  # Dynamo takes the globals of its bytecode away with it
        return types.MethodType(made, *leading) if leading else made

    def collects_from_root(self, sources: Sequence[str]) -> bool:
        """Whether the bytecode reads the module for its weights alone.

        ``sources`` are those of the inputs that are no weights.
        """
        if self.leading:
            name = self.function.__code__.co_varnames[0]
        elif isinstance(_only_cell(self), torch.nn.Module):
            (name,) = self.function.__code__.co_freevars
        else:
            return False
        if any(not source or f"L['{name}']" in source for source in sources):
            return False
        used = [_names(i.argval) for i in dis.get_instructions(self.code)]
        results = next((k for k, names in enumerate(used) if _RESULTS in names), None)
        return results is not None and not any(name in names for names in used[results:])


_RESULTS = "graph_out_0"
"""The local variable in which Dynamo's bytecode keeps what its first graph returns."""


def _names(argument: object) -> tuple[object, ...]:
    """The names that an instruction is about: newer releases of Python have instructions about two."""
    return argument if isinstance(argument, tuple) else (argument,)


class Top(NamedTuple):
    """The function whose frame is compiled first when a program is called, and what is passed to it first."""

    function: types.FunctionType
    leading: tuple[Any, ...]


def top_function(function: Any) -> Top | None:
    """The top of what `original` gives: of a module without hooks, its forward. None where that is no function."""
    leading: tuple[Any, ...] = ()
    if isinstance(function, types.MethodType):
        leading = (function.__self__,)
        if isinstance(leading[0], torch.nn.Module) and function.__func__ is torch.nn.Module._wrapped_call_impl:
            function = leading[0].forward
        function = getattr(function, "__func__", None)
    return Top(function, leading) if isinstance(function, types.FunctionType) else None


def frame_of(top: Top, graph: Callable[..., Any]) -> Frame | None:
    """The frame whose bytecode calls ``graph`` and nothing else that was compiled; None where there is none.

    What goes on after a break of the graph needs Dynamo.
    """
    function, leading = top
    for entry in _debug_get_cache_entry_list(function.__code__):
        code = entry.code
        called = [n for n in code.co_names if n.startswith("__compiled_fn")]
        resumed = any(n.startswith("__resume_at") for n in code.co_names)
        if len(called) == 1 and not resumed and code.co_freevars == function.__code__.co_freevars:
            found = function.__globals__.get(called[0])
            if getattr(found, "_torchdynamo_orig_callable", found) is graph:
                return Frame(function, leading, code, called[0])
    return None


def _only_cell(frame: Frame) -> object:
    cells = frame.function.__closure__ or ()
    return cells[0].cell_contents if len(cells) == 1 else None


def capturing_numbers() -> contextlib.AbstractContextManager[object]:
    """Have Dynamo capture what reads a number out of a tensor, as later releases than 2.8 do by default."""
    config: Any = torch._dynamo.config
    if config.capture_scalar_outputs:
        return contextlib.nullcontext()
    patched: contextlib.AbstractContextManager[object] = config.patch(capture_scalar_outputs=True)
    return patched


def without_limits() -> contextlib.AbstractContextManager[object]:
    """Have Dynamo compile one function as often as it is asked to. Where it stops, calls run in eager mode."""
    config: Any = torch._dynamo.config
    patched: contextlib.AbstractContextManager[object] = config.patch(dict.fromkeys(_LIMITS, 2**16))
    return patched


_LIMITS = ("recompile_limit", "accumulated_recompile_limit")


def flattened(result: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """The leaves of a result, and what puts others in their places."""
    leaves, spec = tree_flatten(result)
    return leaves, lambda others: tree_unflatten(others, spec)


def has_hooks(module: torch.nn.Module) -> bool:
    """Whether something is called before or after the module's forward."""
    return bool(
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
        or modules._has_any_global_hook()  # type: ignore[no-untyped-call]
    )


def has_backward_hooks(module: torch.nn.Module) -> bool:
    """Whether something is called before or after the backward of the module or of one in it."""
    return any(m._backward_hooks or m._backward_pre_hooks for m in module.modules())


_PLAIN = frozenset({int, bool, str, bytes, type(None), torch.dtype, torch.device})
_SIGNED = frozenset({float, complex})
_TENSORS = frozenset({torch.Tensor, torch.nn.Parameter})
_keys = torch._C._dispatch_keys


def signature(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """What guards can ask of arguments: two calls with equal signatures pass the same guards.

    None where it cannot be told: other arguments than dense tensors, numbers, text, lists, tuples and dictionaries of
    them, one tensor twice, or attributes of tensors.
    """
    seen: set[int] = set()
    try:
        return tuple(_described(a, seen) for a in args), tuple((n, _described(a, seen)) for n, a in kwargs.items())
    except _Undescribed:
        return None


class _Undescribed(Exception):
    pass


def _described(value: Any, seen: set[int]) -> Any:
    type_ = type(value)
    if type_ in _TENSORS:
        if id(value) in seen or value.layout is not torch.strided or value.__dict__:
            raise _Undescribed
        seen.add(id(value))
        keys = _keys(value).raw_repr()
        return type_, value.dtype, value.shape, value.stride(), value.device, value.requires_grad, keys
    if type_ in _PLAIN:
        return type_, value
    if type_ in _SIGNED:  # 0.0 == -0.0
        return type_, repr(value)
    if type_ is tuple or type_ is list:
        return type_, *(_described(v, seen) for v in value)
    if type_ is dict and all(type(k) is str for k in value):
        return type_, *((k, _described(v, seen)) for k, v in value.items())
    raise _Undescribed


def thread_state() -> tuple[Any, ...] | None:
    """What guards ask of the thread; None where gradients, autocast, a mode or a transform is on: Dynamo knows how."""
    if (
        torch.is_grad_enabled()
        or torch.is_autocast_enabled("cpu")
        or torch.is_autocast_enabled("cuda")
        or torch._C._len_torch_function_stack()
        or torch._C._len_torch_dispatch_stack()
        or torch._C._functorch.peek_interpreter_stack() is not None
    ):
        return None
    return torch.is_inference_mode_enabled(), torch.get_default_dtype()


transform_around = torch._C._functorch.peek_interpreter_stack
"""The transform of ``torch.func`` that calls here, the innermost; None where there is none.

Dynamo compiles nothing within one, and gives up for good what is called there.
"""


def in_forward_mode() -> bool:
    """Whether this is within ``torch.autograd.forward_ad.dual_level``: what is compiled drops a dual's tangent."""
    return forward_ad._current_level >= 0
