"""The conformance suite of Fairlead, as tests of this wheel: pytest --backend=acme --level=L1."""

from fairlead_conformance.test_cases import *
