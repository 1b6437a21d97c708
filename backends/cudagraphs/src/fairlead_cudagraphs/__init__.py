"""Fairlead backend: torch's own kernels, recorded and replayed as CUDA graphs."""

from __future__ import annotations

from fairlead_cudagraphs._backend import CudaGraphsBackend, CudaGraphsOptions

__all__ = ["CudaGraphsBackend", "CudaGraphsOptions", "backend"]

backend = CudaGraphsBackend()
