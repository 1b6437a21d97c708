"""Executables as bytes: what a backend stored, what that is right for, and a signature over both.

An artifact is used only where everything that went into it is the same: the backend's wheel and SDK, torch, the
processor and the devices, the number of threads, the options, the graph, and the values of the constants. What differs
is an error that names it. The bytes may hold machine code or a pickle of the vendor's, which run when they are
loaded: an artifact is therefore signed with a secret, and read by nobody who does not have it.

>>> secret = bytes(range(32))
>>> damaged = b"not an artifact"
>>> try:
...     verify(damaged, secret)
... except ArtifactFormatError as error:
...     print(error.what)
the bytes are no artifact of Fairlead
"""

from __future__ import annotations

import hashlib
import hmac
import platform
from importlib import metadata
from typing import TYPE_CHECKING, Any

import msgspec
import torch

from fairlead import processor
from fairlead._messages import cause
from fairlead._registry import registry
from fairlead.backend import Backend, Executable, Serializable
from fairlead.errors import (
    ArgumentError,
    ArtifactFormatError,
    ArtifactMismatchError,
    ArtifactUnsupportedError,
    FairleadError,
    RegistryError,
)
from fairlead.ir import TensorType, fingerprint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlead.hooks import CompileJob

__all__ = ["Identity", "identify", "pack", "unpack", "verify"]

_MAGIC = b"FLART\x00\x01"
"""The last byte is the version of the format."""
_SIGNATURE = hashlib.sha256().digest_size
_SHORTEST_SECRET = 16


class Identity(msgspec.Struct, frozen=True):
    """Everything that an executable depends on.

    ``versions``: of the backend's wheel, its SDK and drivers, torch and Fairlead. ``machine``: the processor, its
    instruction sets and the graph's devices. ``options``: as JSON. ``graph``: its `fairlead.ir.fingerprint`.
    ``constants``: SHA-256 of each constant's dtype, shape and bytes, by graph input.
    """

    backend: str
    versions: dict[str, str]
    machine: dict[str, str]
    threads: int
    options: str
    graph: str
    constants: dict[str, str]

    @property
    def digest(self) -> str:
        """SHA-256 of all of it, in hexadecimal: the key under which a store keeps the artifact."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()


class _Contents(msgspec.Struct, frozen=True):
    identity: Identity
    data: bytes


def identify(job: CompileJob) -> Identity:
    """What the executable of this job depends on, here and now. Reads every constant once."""
    return Identity(
        backend=job.backend.name,
        versions=_versions(job.backend),
        machine=_machine(job),
        threads=torch.get_num_threads(),
        options=msgspec.json.encode(job.options, order="deterministic").decode(),
        graph=fingerprint(job.graph),
        constants={str(i): _digest(tensor) for i, tensor in job.constants.items()},
    )


def pack(job: CompileJob, executable: Executable, secret: bytes) -> bytes:
    """The executable that the job's backend made for it, as a signed artifact; constants are not in it.

    ``secret``: at least 16 bytes that only those know who may read and write artifacts. Raises
    `ArtifactUnsupportedError` where the backend stores none, and `ArgumentError` on a short secret.
    """
    _check(secret)
    if not isinstance(job.backend, Serializable):
        raise ArtifactUnsupportedError(
            f"backend {job.backend.name!r} does not store executables",
            where=_source(job.backend),
            next="compile anew in each process, or use a backend with dump and load",
        )
    contents = _Contents(identify(job), job.backend.dump(executable))
    body = msgspec.msgpack.encode(contents)
    return _MAGIC + _sign(body, secret) + body


def verify(artifact: bytes, secret: bytes) -> Identity:
    """What an artifact is right for, once its signature is known to be good. Loads nothing of it.

    Raises `ArtifactFormatError` where it is damaged, foreign, of another version, or signed with another secret.
    """
    return _open(artifact, secret).identity


def unpack(artifact: bytes, job: CompileJob, secret: bytes) -> Executable:
    """The executable of an artifact, with the constants of this job.

    Raises `ArtifactMismatchError` where it was made for anything else than this job here and now, and what `verify`
    raises. Nothing of the artifact reaches the backend before both are known.
    """
    contents = _open(artifact, secret)
    _compare(contents.identity, identify(job))
    backend = job.backend
    if not isinstance(backend, Serializable):
        raise _unreadable("the backend no longer reads artifacts", _source(job.backend))
    try:
        return backend.load(contents.data, job.graph, job.options, job.constants)
    except FairleadError:
        raise
    except Exception as error:  # the backend's, or its SDK's
        raise _unreadable(
            f"backend {job.backend.name!r} cannot load it: {cause(error)}", _source(job.backend)
        ) from error


def _open(artifact: bytes, secret: bytes) -> _Contents:
    _check(secret)
    head = len(_MAGIC) + _SIGNATURE
    if artifact[: len(_MAGIC) - 1] != _MAGIC[:-1] or len(artifact) < head:
        raise _unreadable("the bytes are no artifact of Fairlead", f"{len(artifact)} bytes")
    if artifact[: len(_MAGIC)] != _MAGIC:
        raise _unreadable(f"the artifact has format {artifact[len(_MAGIC) - 1]}, not {_MAGIC[-1]}", "its first bytes")
    body = artifact[head:]
    if not hmac.compare_digest(artifact[len(_MAGIC) : head], _sign(body, secret)):
        raise _unreadable("the artifact is damaged, or signed with another secret", f"{len(artifact)} bytes")
    try:
        return msgspec.msgpack.decode(body, type=_Contents)
    except msgspec.DecodeError as error:
        raise _unreadable(f"the artifact is signed but not readable: {cause(error)}", "its contents") from error


def _compare(made: Identity, here: Identity) -> None:
    """Raise on the first thing that differs, the coarsest first."""
    for field in Identity.__struct_fields__:
        was, now = getattr(made, field), getattr(here, field)
        if was == now:
            continue
        if isinstance(was, dict):
            name = next(k for k in (*was, *now) if was.get(k) != now.get(k))
            was, now, field = was.get(name, "none"), now.get(name, "none"), f"{field.removesuffix('s')} {name}"
        raise ArtifactMismatchError(
            f"the artifact was made for another {_SPOKEN.get(field, field)}: {was}, not {now}",
            where=f"an artifact of backend {made.backend!r}, graph {made.graph[:12]}",
            next="compile again, and store what that gives",
        )


_SPOKEN = {"threads": "number of threads", "options": "choice of options"}


def _versions(backend: Backend[Any]) -> dict[str, str]:
    found = {"fairlead": _version("fairlead"), "torch": torch.__version__, **backend.probe().versions}
    found = {name: str(version) for name, version in found.items()}
    try:
        wheel = registry.wheel(backend.name)
    except RegistryError:
        return found
    return found | {wheel.distribution: wheel.version}


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "unknown"


def _machine(job: CompileJob) -> dict[str, str]:
    features = f"{_cpu()} {torch.backends.cpu.get_cpu_capability()}"
    return {"architecture": f"{platform.system()} {platform.machine()}", "processor": features, **_devices(job)}


def _cpu() -> str:
    """Its name, and a short hash of the instruction sets that the system says it has."""
    features = " ".join(sorted(processor.flags()))
    return f"{processor.name()} {hashlib.sha256(features.encode()).hexdigest()[:8]}"


def _devices(job: CompileJob) -> Mapping[str, str]:
    types = [item.value.type for item in job.graph.inputs]
    types += [result.type for node in job.graph.walk() for result in node.results if result is not None]
    used = {str(t.device) for t in types if isinstance(t, TensorType)} - {"cpu"}
    return {name: _device(torch.device(name)) for name in sorted(used)}


def _device(device: torch.device) -> str:
    if device.type == "cuda":
        major, minor = torch.cuda.get_device_capability(device)
        return f"{torch.cuda.get_device_name(device)} {major}.{minor}"
    return device.type


def _digest(tensor: torch.Tensor) -> str:
    digest = hashlib.sha256(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
    plain = tensor.detach().to("cpu").contiguous().reshape(-1)
    digest.update(plain.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _sign(body: bytes, secret: bytes) -> bytes:
    return hmac.digest(secret, _MAGIC + body, "sha256")


def _check(secret: bytes) -> None:
    if len(secret) < _SHORTEST_SECRET:
        raise ArgumentError(
            f"the secret of an artifact has {len(secret)} bytes, not {_SHORTEST_SECRET} or more",
            where="fairlead.artifacts",
            next="make one with secrets.token_bytes(32), and keep it where only you read it",
        )


def _source(backend: Backend[Any]) -> str:
    try:
        return str(registry.wheel(backend.name))
    except RegistryError:
        return type(backend).__qualname__


def _unreadable(what: str, where: str) -> ArtifactFormatError:
    return ArtifactFormatError(what, where=where, next="delete it and compile again; it is not to be trusted")
