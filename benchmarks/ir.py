"""What the IR costs, with the limit beside each number.

    python benchmarks/ir.py [--quick]

Times are processor seconds, the best of several runs on one thread. The file of 4 GiB is sparse: its weights are zeros
that no disk holds.
"""

from __future__ import annotations

import argparse
import io
import math
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from fairlead import ir
from fairlead.ir import DType, Graph, Input, Kind, Node, Output, Role, TensorType, Token, Value

GIB = 1 << 30
SIZES = (1_000, 10_000, 100_000)


def chain(count: int) -> Graph:
    """A graph of so many nodes with the ops, arguments and shapes of a transformer's, each node with a source line."""
    x = Value(0, TensorType(DType.f32, ("b", 128, 512)))
    weight = Value(1, TensorType(DType.f32, (512, 512)))
    nodes: list[Node] = []
    last, here = [x, x], ir.Location("/home/ann/model.py", 12, "forward", "layers.0")
    for i in range(count):
        result = Value(i + 2, TensorType(DType.f32, ("b", 128, 512)))
        args: tuple[str, tuple[Any, ...]] = (
            ("aten.linear.default", (last[-1], weight, None)),
            ("aten.add.Tensor", (last[-1], last[-2], 1)),
            ("aten.view.default", (last[-1], (ir.DimExpr("b"), 128, 512))),
            ("aten.mul.Tensor", (last[-1], 1.0 + i % 7)),
            ("aten._to_copy.default", (last[-1], Token("dtype", "f32"), None, None, None, False, None)),
            ("aten.cat.default", ((last[-1],), 0)),
        )[i % 6]
        location = msgspec.structs.replace(here, line=i // 3)
        nodes.append(Node(*args, (result,), location))
        last = [last[-1], result]
    inputs = (Input(x, name="x"), Input(weight, Role.parameter, "fc.weight"))
    return Graph("main", Kind.inference, inputs, tuple(nodes), (Output(last[-1]),), (ir.Symbol("b", 1, None, (0, 0)),))


def best(call: Callable[[], object], runs: int) -> float:
    """Processor seconds of the quickest run, those of child processes included."""
    times = []
    for _ in range(runs):
        start = _spent()
        call()
        times.append(_spent() - start)
    return min(times)


def _spent() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def forms(count: int, folder: pathlib.Path, runs: int) -> dict[str, float]:
    """Seconds that each form takes for a graph of so many nodes."""
    graph, path = chain(count), folder / "g.fir"
    ir.write(path, graph)
    text, data = ir.to_text(graph), ir.to_bytes(graph)
    return {
        "save": best(lambda: ir.write(path, graph), runs),
        "load": best(lambda: ir.read(path), runs),
        "hash": best(lambda: ir.fingerprint(graph), runs),
        "verify": best(lambda: ir.verify(graph), runs),
        "print": best(lambda: ir.to_text(graph), runs),
        "parse": best(lambda: ir.parse(text), runs),
        "from bytes": best(lambda: ir.from_bytes(data), runs),
    }


class _Sparse(io.FileIO):
    """A file in which runs of zeros are holes."""

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        if size < 4096 or any(memoryview(data)[:: 1 << 20]):
            return super().write(data) or 0
        self.seek(size, io.SEEK_CUR)
        return size


def large_file(path: pathlib.Path) -> None:
    """A ``.fir`` file with 4 GiB of weights, written as `ir.write` writes it but for the holes."""
    from fairlead.ir import _file, _weights

    piece = memoryview(bytearray(GIB // 4))
    inputs = tuple(Input(Value(i, TensorType(DType.u8, (GIB // 4,))), Role.parameter, f"w{i}") for i in range(16))
    whole = ir.module(Graph("large", Kind.inference, inputs, (), (Output(inputs[0].value),)))
    constants = {i: ir.TensorData(DType.u8, (GIB // 4,), piece[:]) for i in range(16)}
    pathlib.Path(path).unlink(missing_ok=True)
    entries = _file.entries_of(whole, *_weights.specify(whole, dict(constants), "inline", path.parent), "inline", b"")
    with _Sparse(path, "wb") as file:
        _file.write_zip(file, entries, _file.INLINE)  # type: ignore[arg-type]
        file.truncate()


def open_large(folder: pathlib.Path) -> Iterator[tuple[str, float, float, str]]:
    path = folder / "large.fir"
    large_file(path)
    seconds = best(lambda: ir.read(path).constants()[15], 5)
    yield "open a 4 GiB file and take a tensor", seconds * 1e3, 50, "ms"
    assert path.stat().st_size > 4 * GIB
    path.unlink()


def fx_rows() -> Iterator[tuple[str, float, float, str]]:
    """Microseconds a node of FX graphs that AOTAutograd makes: the forward and the backward of an encoder."""
    import torch

    import fairlead
    from fairlead import _capture

    read = _capture.graph_of
    found: list[tuple[str, float]] = []

    def timed(gm: Any, name: str, *args: Any) -> Any:
        seconds = best(lambda: read(gm, name, *args), 5)
        found.append((f"FX to IR, a node of the {name} of an encoder", seconds * 1e6 / len(gm.graph.nodes)))
        return read(gm, name, *args)

    _capture.graph_of = timed
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
    model = fairlead.compile(torch.nn.TransformerEncoder(layer, 12), backend="eager")
    model(torch.randn(2, 8, 32)).sum().backward()
    _capture.graph_of = read
    for what, number in found:
        yield what, number, 25, "us"


def import_time(folder: str) -> float:
    """Milliseconds that ``import fairlead.ir`` adds to the start of Python, once it is compiled."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def start(code: str) -> float:
        return best(lambda: subprocess.run([sys.executable, "-c", code], check=True, env=environment), 9)

    return (start("import fairlead.ir") - start("pass")) * 1e3


def rows(quick: bool) -> Iterator[tuple[str, float, float, str]]:
    """What was measured, the number, its limit and the unit."""
    with tempfile.TemporaryDirectory() as name:
        yield "import fairlead.ir", import_time(name), 60, "ms"
        folder = pathlib.Path(name)
        found = {count: forms(count, folder, 3) for count in (SIZES[:2] if quick else SIZES)}
        for what, seconds in found[10_000].items():
            yield f"{what}, 10,000 nodes", seconds * 1e3, 100 if what in ("save", "load", "hash") else math.inf, "ms"
        if not quick:
            for what in found[10_000]:
                growth = (found[100_000][what] / 100_000) / (found[10_000][what] / 10_000)
                yield f"{what}, a node of 100,000 / a node of 10,000", growth, 1.5, "x"
        yield from open_large(folder)
    yield from fx_rows()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="no graphs beyond 10,000 nodes")
    missed = 0
    print(f"{'':50} {'':>10} {'limit':>8}")
    for what, number, limit, unit in rows(parser.parse_args().quick):
        missed += number > limit
        shown = "" if math.isinf(limit) else f"{limit:8g}"
        print(f"{what:50} {number:10.2f} {shown:>8} {unit}{'  MISSED' if number > limit else ''}", flush=True)
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
