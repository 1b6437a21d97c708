"""The rules and the opset's table belong together."""

from __future__ import annotations

import inspect

import pytest

from fairlead.ir.infer import RULES
from fairlead.ir.infer._rule import _parameters
from fairlead.ir.opset import signature, specs

TIERS = ("base", "ext", "linalg", "special", "nn", "collective")
"""The tiers whose every op has a rule. Of control flow the regions say what it returns."""

COVERED = sorted(op for op, spec in specs().items() if op in RULES)


@pytest.mark.parametrize("tier", TIERS)
def test_every_op_of_a_tier_has_a_rule(tier: str) -> None:
    assert [op for op, spec in specs().items() if spec.tier == tier and op not in RULES] == []


@pytest.mark.parametrize("op", COVERED)
def test_a_rule_takes_the_parameters_of_the_signature(op: str) -> None:
    parameters = signature(specs()[op].signature).parameters
    names = list(inspect.signature(RULES[op]).parameters)
    assert len(names) == len(parameters)


@pytest.mark.parametrize("op", COVERED)
def test_a_rule_takes_the_defaults_of_the_signature(op: str) -> None:
    parameters = signature(specs()[op].signature).parameters
    _, fits, _ = _parameters(RULES[op])
    for parameter, fit in zip(parameters, fits, strict=True):
        if not parameter.required and parameter.type.element != "ScalarType":
            default = parameter.default
            assert fit(default) or fit((default,)), parameter.name
