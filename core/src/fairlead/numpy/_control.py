"""Control flow: the bodies of a node, run as often as the data says, and random states as values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairlead.numpy._dtypes import Array
from fairlead.numpy._table import Call, op


@op("hop.cond")
def _cond(call: Call, predicate: Any, operands: Sequence[Any]) -> tuple[Any, ...]:
    """The first region where the predicate is true, the second where not."""
    return call.region(call.node.regions[0 if bool(predicate) else 1], operands)


@op("hop.while_loop")
def _while_loop(call: Call, carried: Sequence[Any], operands: Sequence[Any]) -> tuple[Any, ...]:
    """The second region, on what it gave before, as long as the first one says so."""
    condition, body = call.node.regions
    current = tuple(carried)
    while bool(call.region(condition, [*current, *operands])[0]):
        current = call.region(body, [*current, *operands])
    return current


@op("hop.scan")
def _scan(call: Call, init: Sequence[Any], xs: Sequence[Array], operands: Sequence[Any]) -> tuple[Any, ...]:
    """The region on each row of ``xs``, with what it carries on; then the last carry, and the other results stacked."""
    carry, rows = tuple(init), []
    for i in range(len(xs[0])):
        found = call.region(call.node.regions[0], [*carry, *(x[i] for x in xs), *operands])
        carry = found[: len(carry)]
        rows.append(found[len(carry) :])
    return *carry, *_stacked(call, rows, len(carry))


@op("hop.map")
def _map(call: Call, xs: Sequence[Array], operands: Sequence[Any]) -> tuple[Any, ...]:
    """The region on each row of ``xs``, its results stacked."""
    rows = [call.region(call.node.regions[0], [*(x[i] for x in xs), *operands]) for i in range(len(xs[0]))]
    return _stacked(call, rows, 0)


def _stacked(call: Call, rows: Sequence[tuple[Any, ...]], first: int) -> tuple[Any, ...]:
    if rows:
        return tuple(np.stack(column) for column in zip(*rows, strict=True))
    results = range(first, len(call.node.results))
    return tuple(None if call.node.results[i] is None else np.zeros(call.shape(i)) for i in results)


@op("hop.run_and_save_rng_state")
def _save_rng_state(call: Call, device: Any, operands: Sequence[Any]) -> tuple[Any, ...]:
    """The generator's state before the region, as bytes, and what the region gives."""
    state = _state_bytes(call.rng, call.shape(0)) if call.node.results[0] is not None else None
    return state, *call.region(call.node.regions[0], operands)


@op("hop.run_with_rng_state")
def _run_with_rng_state(call: Call, device: Any, state: Array, operands: Sequence[Any]) -> tuple[Any, ...]:
    """What the region gives with that state; the generator's own is as before afterwards."""
    kept = call.rng.bit_generator.state
    call.rng.bit_generator.state = _state_of(call.rng, state)
    try:
        return call.region(call.node.regions[0], operands)
    finally:
        call.rng.bit_generator.state = kept


_WORD = 16
"""How many bytes a number of the PCG64 generator takes."""


def _state_bytes(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    state: Any = rng.bit_generator.state
    if state["bit_generator"] != "PCG64":
        raise TypeError(
            f"the state of a {state['bit_generator']} generator has no place in a tensor, that of PCG64 has"
        )
    numbers = (state["state"]["state"], state["state"]["inc"], state["has_uint32"], state["uinteger"])
    raw = b"".join(n.to_bytes(_WORD, "little") for n in numbers)
    out = np.zeros(shape, np.uint8)
    out[: len(raw)] = np.frombuffer(raw, np.uint8)
    return out


def _state_of(rng: np.random.Generator, data: Array) -> Any:
    raw = data.tobytes()
    numbers = [int.from_bytes(raw[i * _WORD : (i + 1) * _WORD], "little") for i in range(4)]
    inner = {"state": numbers[0], "inc": numbers[1]}
    return {"bit_generator": "PCG64", "state": inner, "has_uint32": numbers[2], "uinteger": numbers[3]}
