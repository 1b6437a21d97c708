"""Run the zoo or the mutants: ``python -m conformance.tests.zoo [mutants] [--out FILE] [NAME...]``."""
