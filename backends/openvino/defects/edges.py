"""What OpenVINO's CPU plugin computes wrongly, with its own API alone: each line should agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as op

INF, NAN = np.inf, np.nan


def run(build: Callable[[Any], Any], *values: float, exact: bool = False) -> Any:
    """One op on a row of numbers, in f32."""
    x = op.parameter([1, len(values)], np.float32)
    graph = ov.Model([build(x)], [x])
    for node in graph.get_ops():
        if exact and node.get_type_name() == "Divide":
            node.get_rt_info()["nonconvertable_divide_0"] = True  # ov::disable_divide_conversion
    model = ov.Core().compile_model(graph, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return model([np.array([values], np.float32)])[0][0]


def show(name: str, found: Any, right: str) -> None:
    print(f"{name:28} {found}  right: {right}")


def main() -> None:
    numbers = np.random.default_rng(0).standard_normal((2, 1000)).astype(np.float32)
    divisor = op.constant(numbers[1:])
    quotients = run(lambda x: op.divide(x, divisor), *numbers[0])
    show("inexact quotients of 1000", int((quotients != numbers[0] / numbers[1]).sum()), "0")
    show("softmax of a NaN", run(lambda x: op.softmax(x, 1), NAN, 1.0, 2.0), "nan nan nan")
    show("softmax of infinity", run(lambda x: op.softmax(x, 1), INF, 1.0, 2.0), "nan nan nan")
    show("log_softmax of infinity", run(lambda x: op.log_softmax(x, 1), INF, 1.0, 2.0), "nan nan nan")
    show("exp of 88.7", run(op.exp, 88.7), f"{np.exp(np.float32(88.7))}")
    show("relu of a NaN", run(op.relu, *[NAN] * 2), "nan nan")
    show("softplus of -6, -10", run(op.softplus, -6.0, -10.0), f"{np.log1p(np.exp([-6.0, -10.0]))}")
    show("sum of a million tenths", run(lambda x: op.reduce_sum(x, op.constant([1])), *[0.1] * 10**6), "100000")
    one = op.constant(np.float32(1))
    mean = run(lambda x: op.divide(one, op.reduce_mean(x, op.constant([1]))), 4.0, 4.0, exact=True)
    show("1 / mean(4, 4), not converted", mean, "0.25")
    folded = op.absolute(op.subtract(one, op.constant(np.array([3, 0], np.float32))))
    show("abs of constants 1 - 3, 1 - 0", run(lambda x: op.add(x, folded), 0.0, 0.0), "2 1")

    integers = op.parameter([3], np.int32)
    reduced = ov.Core().compile_model(ov.Model([op.reduce_max(integers, op.constant([0]))], [integers]), "CPU")
    show("max of 1, 2, 2**31 - 1", reduced([np.array([1, 2, 2**31 - 1], np.int32)])[0], "2147483647")
    pair = [op.parameter([2], np.int32) for _ in range(2)]
    given = [np.array([2**31 - 1, 16777217], np.int32), np.array([2**31 - 2, 16777216], np.int32)]
    for name, made, right in (
        ("equal", op.equal(*pair), "False False"),
        ("quotient by 3 of", op.divide(pair[0], op.constant(np.int32(3))), "715827882 5592405"),
        ("rest by 5 of", op.floor_mod(pair[0], op.constant(np.int32(5))), "2 2"),
    ):
        taken = pair if name == "equal" else pair[:1]
        found = ov.Core().compile_model(ov.Model([made], taken), "CPU")(given[: len(taken)])[0]
        show(f"{name} 2**31 - 1, 2**24 + 1", found, right)
    wide = op.parameter([2], np.int64)
    shifted = ov.Core().compile_model(ov.Model([op.add(wide, op.constant(1))], [wide]), "CPU")
    show("1 + 2**40, in i64", shifted([np.array([0, 2**40])])[0], "1 1099511627777")
    show("dft of 1000, relative error", f"{transform():.0e}", "less than 1e-06")
    show("pairs of 27 features, error", f"{pairs():.0e}", "less than 1e-06")


def pairs() -> float:
    """How far off are products of features with each other, the upper triangle: an op for recommenders takes over.

    It has the lower triangle whatever is gathered, once there are 27 features.
    """
    features = [op.parameter([16, 8], np.float32) for _ in range(27)]
    rows = op.reshape(op.concat(features, 1), op.constant([16, 27, 8]), False)
    products = op.matmul(rows, op.transpose(rows, op.constant([0, 2, 1])), False, False)
    flat = op.reshape(op.transpose(products, op.constant([1, 2, 0])), op.constant([27 * 27, 16]), False)
    first, second = np.triu_indices(27, 1)
    picked = op.transpose(op.gather(flat, op.constant(first * 27 + second), op.constant(0)), op.constant([1, 0]))
    graph = ov.Model([op.concat([features[0], picked], 1)], features)
    given = np.random.default_rng(0).standard_normal((27, 16, 8)).astype(np.float32)
    found = ov.Core().compile_model(graph, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(list(given))[0]
    each = np.moveaxis(given.astype(np.float64), 0, 1)
    right = (each @ each.transpose(0, 2, 1))[:, first, second]
    return float(np.abs(found[:, 8:] - right).max() / np.abs(right).max())


def transform() -> float:
    """How far off a Fourier transform of a thousand complex numbers is, as a share of its largest."""
    parts = np.random.default_rng(0).standard_normal((1000, 2)).astype(np.float32)
    exact = np.fft.fft(parts.astype(np.float64) @ (1, 1j))
    x = op.parameter([1000, 2], np.float32)
    model = ov.Core().compile_model(ov.Model([op.dft(x, op.constant([0]))], [x]), "CPU")
    return float(np.abs(model([parts])[0] @ (1, 1j) - exact).max() / np.abs(exact).max())


if __name__ == "__main__":
    main()
