"""What follows a product and oneDNN computes within it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from torch import fx

from fairlead.ir import Node
from fairlead_ipex._draft import op_of, type_of

__all__ = ["Chain", "Chains", "Unary", "chain_of"]


class Unary(NamedTuple):
    """An element-wise function in the words of torch's oneDNN ops."""

    name: str = "none"
    numbers: tuple[float, ...] = ()
    algorithm: str = ""


class Chain(NamedTuple):
    """A product and what follows it alone: ``binary`` with ``other``, or ``unary``. ``last`` gives the result."""

    last: fx.Node
    other: fx.Node | None = None
    binary: str = ""
    unary: Unary = Unary()


Chains = Callable[[fx.Node], Chain]
"""Gives the chain that begins with a product; `Chain` itself is the one that leaves what follows to others."""


def chain_of(product: fx.Node, *, finite: bool) -> Chain:
    """The longest chain after a product that gives torch's numbers."""
    after = _only_user(product)
    if after is None:
        return Chain(product)
    if (binary := _BINARY.get(op_of(after) or "")) and (other := _other(after, product)) is not None:
        return Chain(after, other, binary)
    unary = _unary(after, finite)
    return Chain(product) if unary is None else Chain(after, unary=unary)


def _only_user(node: fx.Node) -> fx.Node | None:
    users = list(node.users)
    return users[0] if len(users) == 1 and users[0].op == "call_function" else None


def _other(node: fx.Node, product: fx.Node) -> fx.Node | None:
    """The other operand, where it is a tensor of the product's type and nothing is scaled or promoted."""
    made_from: Node = node.meta["node"]
    if made_from.op == "aten.add.Tensor" and made_from.args[2] != 1:
        return None
    first, second = node.args[:2]
    other = second if first is product else first
    mine, others, result = type_of(product), type_of(other), type_of(node)
    if other is product or mine is None or others is None or result is None or not isinstance(other, fx.Node):
        return None
    same = mine.shape == others.shape == result.shape and mine.dtype == others.dtype == result.dtype
    return other if same else None


def _unary(node: fx.Node, finite: bool) -> Unary | None:
    op = op_of(node) or ""
    rule = (_FINITE if finite else _UNARY).get(op)
    return None if rule is None else rule(node.meta["node"].args)


def _named(name: str) -> Callable[[tuple[Any, ...]], Unary]:
    return lambda args: Unary(name)


def _gelu(args: tuple[Any, ...]) -> Unary | None:
    return Unary("gelu", (), "tanh") if args[1] == "tanh" else None


def _any_gelu(args: tuple[Any, ...]) -> Unary:
    return Unary("gelu", (), str(args[1]))


def _with_numbers(name: str) -> Callable[[tuple[Any, ...]], Unary | None]:
    def rule(args: tuple[Any, ...]) -> Unary | None:
        numbers = args[1:]
        return Unary(name, numbers) if all(isinstance(n, int | float) for n in numbers) else None

    return rule


_Rules = Mapping[str, Callable[[tuple[Any, ...]], Unary | None]]

_BINARY: Mapping[str, str] = {"aten.add.Tensor": "add", "aten.mul.Tensor": "mul"}

_UNARY: _Rules = {
    "aten.sigmoid.default": _named("sigmoid"),
    "aten.tanh.default": _named("tanh"),
    "aten.silu.default": _named("swish"),
    "aten.hardswish.default": _named("hardswish"),
    "aten.leaky_relu.default": _with_numbers("leaky_relu"),
    "aten.gelu.default": _gelu,
}

_FINITE: _Rules = {
    **_UNARY,
    "aten.relu.default": _named("relu"),
    "aten.hardsigmoid.default": _named("hardsigmoid"),
    "aten.hardtanh.default": _with_numbers("hardtanh"),
    "aten.gelu.default": _any_gelu,
}
"""Those of which oneDNN makes a number where torch has NaN, or NaN where torch has infinity, as well."""
