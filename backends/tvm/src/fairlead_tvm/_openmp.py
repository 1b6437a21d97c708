"""Shares the loops of kernels among OpenMP's threads, which are torch's too.

TVM's own are as many as half the processors on x86, bound to some of them, and wait for work without sleeping on those
that torch's need. A kernel asks for threads by a pointer that TVM sets when it loads the kernel; `ENTRY` has it point
to `launch`, where there is OpenMP.
"""

from __future__ import annotations

import ctypes

__all__ = ["ENTRY", "ENTRY_NAME", "POINTER", "launch_source", "openmp_is_there", "set_launch"]

ENTRY_NAME = "fairlead_openmp"
POINTER = "__fairlead_openmp_launch"

ENTRY = f"""
@{POINTER} = linkonce global ptr null
@__TVMBackendParallelLaunch = external global ptr

define i32 @{ENTRY_NAME}() {{
  %ours = load ptr, ptr @{POINTER}
  %theirs = load ptr, ptr @__TVMBackendParallelLaunch
  %none = icmp eq ptr %ours, null
  %chosen = select i1 %none, ptr %theirs, ptr %ours
  store ptr %chosen, ptr @__TVMBackendParallelLaunch
  ret i32 0
}}
"""
"""What a kernel with shared loops calls first; it has no effect where `set_launch` was not called."""

_LAUNCH = """
%work = type { ptr, ptr, i32 }
%group = type { ptr, i32 }

declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()

define internal void @task(ptr %work) {
  %number = call i32 @omp_get_thread_num()
  %count = call i32 @omp_get_num_threads()
  %group = alloca %group
  store ptr null, ptr %group
  %count_at = getelementptr %group, ptr %group, i32 0, i32 1
  store i32 %count, ptr %count_at
  %body = load ptr, ptr %work
  %data_at = getelementptr %work, ptr %work, i32 0, i32 1
  %data = load ptr, ptr %data_at
  %failed = call i32 %body(i32 %number, ptr %group, ptr %data)
  %failed_at = getelementptr %work, ptr %work, i32 0, i32 2
  %before = atomicrmw or ptr %failed_at, i32 %failed monotonic
  ret void
}

define i32 @launch(ptr %body, ptr %data, i32 %count) {
  %work = alloca %work
  store ptr %body, ptr %work
  %data_at = getelementptr %work, ptr %work, i32 0, i32 1
  store ptr %data, ptr %data_at
  %failed_at = getelementptr %work, ptr %work, i32 0, i32 2
  store i32 0, ptr %failed_at
  call void @GOMP_parallel(ptr @task, ptr %work, i32 0, i32 0)
  %failed = load i32, ptr %failed_at
  ret i32 %failed
}

define i32 @__tvm_ffi_address(ptr %self, ptr %arguments, i32 %count, ptr %result) {
  %address = ptrtoint ptr @launch to i64
  %value_at = getelementptr i64, ptr %result, i32 1
  store i64 1, ptr %result
  store i64 %address, ptr %value_at
  ret i32 0
}
"""
"""TVM's ``TVMBackendParallelLaunch``: ``body(number, group, data)`` on each thread. ``address`` says where it is."""


def openmp_is_there() -> bool:
    """Whether the process has OpenMP as GCC calls it: torch loads it for all where it is torch's."""
    try:
        return hasattr(ctypes.CDLL(None), "GOMP_parallel")
    except TypeError:  # on Windows, where a process has no name
        return False


def launch_source(header: str) -> str:
    """`launch` in LLVM's language; ``header`` says how data lies and for which system it is."""
    return f"{header}\n{_LAUNCH}"


def set_launch(library: str, address: int) -> None:
    """Have ``library``, which is tvm_ffi's, give kernels that it loads from now on the address of `launch`."""
    ctypes.CDLL(library).TVMFFIEnvModRegisterContextSymbol(POINTER.encode(), ctypes.c_void_p(address))
