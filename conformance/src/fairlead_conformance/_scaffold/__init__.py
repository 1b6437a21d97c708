"""The vendor's beginning: ``fairlead new-backend`` writes a wheel; ``fairlead-conformance init`` adopts the suite.

Imports neither torch nor jinja2 at its top: the command line lists what is here.
"""
