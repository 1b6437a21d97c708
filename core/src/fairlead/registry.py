"""The registry of backends, as plugins and tests see it.

>>> from fairlead.registry import registry
>>> "eager" in registry.names()
True
"""

from fairlead._registry import RESERVED, BackendInfo, Registry, Status, Wheel, registry

__all__ = ["RESERVED", "BackendInfo", "Registry", "Status", "Wheel", "registry"]
