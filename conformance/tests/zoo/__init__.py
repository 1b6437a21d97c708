"""Faulty backends that the suite has to catch, and mutants of the reference interpreter: the tests of the tests.

``python -m conformance.tests.zoo`` runs all of them and writes how many were caught (``make zoo``).
"""
