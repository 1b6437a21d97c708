"""What XLA computes otherwise than IEEE 754 on a CPU, with jax alone: each line should agree."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def show(name: str, found: object, right: str) -> None:
    print(f"{name:36} {found}  right: {right}")


with jax.enable_x64(True):
    double = jax.jit(lambda x: 2 * x)
    show("2 * 5e-324, in f64", double(jnp.float64(5e-324)), "1e-323")
    show("2 * 1e-310, in f64", double(jnp.float64(1e-310)), "2e-310")
    show("2 * 1e-40, in f32", double(jnp.float32(1e-40)), "2e-40")
    show("log of 1e-40, in f32", jax.jit(jnp.log)(jnp.full(11, 1e-40, jnp.float32))[-2:], "-92.10341")
    show("x + 1e8 - 1e8 of 2.3, in f32", jax.jit(lambda x: x + 1e8 - 1e8)(jnp.float32(2.3)), "0.0")
    show("7.1 / 3 - 7.1 / 3, in f32", jax.jit(lambda x, y: x / 3 - x / y)(jnp.float32(7.1), jnp.float32(3)), "0.0")
