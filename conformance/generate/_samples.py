"""Which of an op's samples are worth a case: those that show something which the ones before them do not."""

from __future__ import annotations

import itertools
import random
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy
import torch
from torch.utils._pytree import tree_flatten_with_path

__all__ = ["chosen", "seed_everything"]

MOST_ELEMENTS = 20_000
CANDIDATES = 200
"""How many samples of each kind are looked at."""


def seed_everything(name: str) -> None:
    """The same samples for a name in every process and in any order of names."""
    seed = zlib.crc32(name.encode())
    random.seed(seed)
    numpy.random.seed(seed)
    torch.manual_seed(seed)


def chosen(
    op: Any, dtype: torch.dtype, count: int, *, requires_grad: bool = False, with_references: bool = False
) -> list[Any]:
    """At most ``count`` samples, in their own order.

    Greedily, those with the most features that no sample before has: ranks and sizes of tensors, how they lie in
    memory, values of other arguments and which of those come together. ``with_references``: look at the samples too
    that PyTorch compares with NumPy on, which have more sizes and values.
    """
    found = [(sample, _features(sample)) for sample in _candidates(op, dtype, requires_grad, with_references)]
    seen: set[Any] = set()
    picked: list[int] = []
    while len(picked) < min(count, len(found)):
        gains = [len(features - seen) if i not in picked else -1 for i, (_, features) in enumerate(found)]
        best = max(range(len(found)), key=lambda i: (gains[i], -i))
        if gains[best] <= 0:
            break
        picked.append(best)
        seen |= found[best][1]
    return [found[i][0] for i in sorted(picked)]


def _candidates(op: Any, dtype: torch.dtype, requires_grad: bool, with_references: bool) -> Iterator[Any]:
    listed = [op.sample_inputs("cpu", dtype, requires_grad=requires_grad)]
    if with_references:
        listed.append(_quiet(op.reference_inputs("cpu", dtype)))
    for samples in listed:
        for sample in itertools.islice(samples, CANDIDATES):
            leaves = _leaves(sample)
            if sum(x.numel() for _, x in leaves if isinstance(x, torch.Tensor)) <= MOST_ELEMENTS:
                yield sample


def _quiet(samples: Any) -> Iterator[Any]:
    """Up to the first that cannot be made: some of the database's own samples ask for what a dtype lacks."""
    try:
        yield from samples
    except Exception:
        return


def _leaves(sample: Any) -> list[tuple[Any, Any]]:
    leaves, _ = tree_flatten_with_path((sample.input, sample.args, sample.kwargs))
    return leaves


def _features(sample: Any) -> set[Any]:
    leaves = _leaves(sample)
    tensors = [(str(path), x) for path, x in leaves if isinstance(x, torch.Tensor)]
    others = [(str(path), repr(x)) for path, x in leaves if not isinstance(x, torch.Tensor)]
    features: set[Any] = {("arguments", tuple(path for path, _ in leaves)), ("others", *others), *others}
    features.add(("ranks", tuple(x.ndim for _, x in tensors)))
    features.add(("dtypes", tuple(x.dtype for _, x in tensors)))
    for path, x in tensors:
        features |= {(path, x.ndim, kind) for kind in _kinds(x)}
    if len(tensors) > 1:
        features.add(("broadcast", len({tuple(x.shape) for _, x in tensors}) > 1))
    return features


def _kinds(x: torch.Tensor) -> Sequence[str]:
    kinds = ["empty" if not x.numel() else "single" if x.numel() == 1 else "full"]
    if any(n == 1 for n in x.shape):
        kinds.append("one")
    if any(n % 2 for n in x.shape):
        kinds.append("odd")
    if not x.is_contiguous():
        kinds.append("strided")
    if x.is_conj() or x.is_neg():
        kinds.append("lazy")
    if x.dtype.is_floating_point and x.numel() and not x.isfinite().all():
        kinds.append("not finite")
    return kinds
