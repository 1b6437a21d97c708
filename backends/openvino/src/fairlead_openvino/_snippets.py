"""Finds models that OpenVINO's CPU plugin cannot tokenize into snippets: it ends the process instead (2026.4).

The plugin first makes one subgraph of each chain of small matrix products (`TokenizeMLPSeqSnippets`), closed to
others, and then merges elementwise ops with the subgraphs that they read. An op that reads both a closed subgraph and
an open one dereferences a null pointer, as in the second of two residual MLPs on rows (defects/crash.py).
"""

from __future__ import annotations

from typing import Any

import openvino

from fairlead_openvino._nodes import is_constant

__all__ = ["crashes_tokenizer"]

_RANK = 2
"""Chains are of tensors with at most so many dimensions."""


def crashes_tokenizer(model: openvino.Model) -> bool:
    """Whether an op reads a chain of products and also something else that is computed. Too often rather than not."""
    return any(_merges(node) for first in model.get_ops() if _is_product(first) for node in _after_second(first))


def _after_second(product: Any) -> list[Any]:
    """What the plugin may add to the chain that begins with ``product``, from its second product on, and the reader."""
    products, node, chain = 1, product, []
    while (readers := node.output(0).get_target_inputs()) and len(readers) == 1:
        node = next(iter(readers)).get_node()
        products += _is_product(node)
        if products > 1:
            chain.append(node)
        if not _is_small(node):
            return chain
    return chain + [reader.get_node() for reader in readers] if products > 1 else []


def _merges(node: Any) -> bool:
    return sum(not _is_given(source.get_node()) for source in node.input_values()) > 1


def _is_product(node: Any) -> bool:
    return node.get_type_name() == "MatMul" and _is_small(node) and is_constant(node.input_value(1).get_node())


def _is_small(node: Any) -> bool:
    rank = node.get_output_partial_shape(0).rank
    return bool(rank.is_static and rank.get_length() <= _RANK)


def _is_given(node: Any) -> bool:
    return node.get_type_name() == "Parameter" or is_constant(node)
