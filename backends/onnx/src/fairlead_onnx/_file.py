"""A lowered model as bytes: what a runtime reads, and what an artifact holds."""

from __future__ import annotations

import msgspec

__all__ = ["ModelFile"]


class ModelFile(msgspec.Struct, frozen=True):
    """The bytes of an ONNX file, and the names that lead from the graph into it, as `Lowered` has them.

    >>> file = ModelFile(b"...", ("in0", None), ("v2",))
    >>> ModelFile.from_bytes(file.to_bytes()) == file
    True
    """

    model: bytes
    inputs: tuple[str | None, ...]
    outputs: tuple[str, ...]
    check: str | None = None

    def text(self) -> str:
        """The model in ONNX's text form."""
        import onnx
        import onnx_ir

        return onnx_ir.to_onnx_text(onnx_ir.from_proto(onnx.ModelProto.FromString(self.model)))

    def to_bytes(self) -> bytes:
        """All of it, as MessagePack."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> ModelFile:
        """What `to_bytes` wrote; raises `msgspec.DecodeError` on anything else."""
        return msgspec.msgpack.decode(data, type=cls)
