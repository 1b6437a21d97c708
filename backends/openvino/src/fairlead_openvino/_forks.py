"""Forks: a child has none of the threads that OpenVINO keeps for the next model, and must not be given them.

OpenVINO hands the threads of a model that was let go to the next one of the same settings. In a forked child they do
not exist, and compiling waits for them without end (defects/fork.py). So nothing is idle when a process forks, and a
child lets go of no model that it has inherited.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Mapping
from typing import Any

import numpy
import openvino
from openvino import opset13

__all__ = ["compile_model"]

_log = logging.getLogger("fairlead.openvino")


class _Settings:
    """The models alive that were compiled with the same settings, and how many there have been at once."""

    def __init__(self, core: openvino.Core, device: str, properties: Mapping[str, Any]) -> None:
        self._core = core
        self._device = device
        self._properties = properties
        self._alive: weakref.WeakSet[openvino.CompiledModel] = weakref.WeakSet()
        self._most = 0

    def add(self, model: openvino.CompiledModel) -> None:
        self._alive.add(model)
        self._most = max(self._most, len(self._alive))

    def alive(self) -> list[openvino.CompiledModel]:
        return list(self._alive)

    def take(self) -> list[openvino.CompiledModel]:
        """Small models that have all the threads which no other has."""
        return [self._small() for _ in range(self._most - len(self._alive))]

    def _small(self) -> openvino.CompiledModel:
        value = opset13.parameter([1], numpy.float32)
        return self._core.compile_model(openvino.Model([opset13.abs(value)], [value]), self._device, self._properties)


_lock = threading.RLock()
_settings: dict[str, _Settings] = {}
_taken: list[openvino.CompiledModel] = []
_inherited: list[openvino.CompiledModel] = []


def compile_model(
    core: openvino.Core, model: openvino.Model, device: str, properties: Mapping[str, Any]
) -> openvino.CompiledModel:
    """Compile the model, and keep account of its threads."""
    compiled = core.compile_model(model, device, properties)
    of_threads = {name: value for name, value in properties.items() if name != "CACHE_DIR"}
    key = repr((device, sorted(of_threads.items())))
    with _lock:
        _settings.setdefault(key, _Settings(core, device, of_threads)).add(compiled)
    return compiled


def _before() -> None:
    _lock.acquire()
    for each in _settings.values():
        try:
            _taken.extend(each.take())
        except RuntimeError as error:
            _log.warning("a process forks, and OpenVINO may wait for threads in its child: %s", error)


def _in_parent() -> None:
    _taken.clear()
    _lock.release()


def _in_child() -> None:
    for each in _settings.values():
        _inherited.extend(each.alive())
    _inherited.extend(_taken)
    _taken.clear()
    _settings.clear()
    _lock.release()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
