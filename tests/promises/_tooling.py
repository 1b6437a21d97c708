"""Promises about what Fairlead adds to compiled programs."""

from __future__ import annotations

import copy
import tempfile

import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

import fairlead
from fairlead import artifacts
from fairlead.backend import Executable
from fairlead.errors import ArtifactUnsupportedError, NotCompiledError
from fairlead.hooks import CompileJob, hookimpl, plugin_manager

from ._catalogue import Section
from ._through import Through
from ._training import learn

__all__ = ["PROMISES"]

promise = Section("Fairlead")
PROMISES = promise.promises


@promise("`fairlead.explain` names graphs, breaks and what ran where")
def explained(through: Through) -> None:
    def program(x: Tensor) -> Tensor:
        y = torch.tanh(x)
        if y.sum() > 100:
            y = y * 2
        return torch.tanh(y)

    found = fairlead.explain(program, backend=through.backend, fallback=through.fallback)(through.randn(3, 4))
    assert [b.reason for b in found.breaks] == ["a branch on the value of a tensor"]
    assert len(found.graphs) == 2
    through.placed(found.placement)


@promise("`fairlead.compile_times` says how long a backend took")
def times(through: Through) -> None:
    before = fairlead.compile_times().stages.get(f"backend {through.backend}", 0.0)
    with torch.no_grad():
        net = through.net()
        through.agrees(through.compile(net), net, through.randn(3, 4))
    after = fairlead.compile_times().stages.get(f"backend {through.backend}", 0.0)
    assert after > before


@promise("`fairlead.freeze`: nothing is compiled any more, and a miss is an error")
def frozen(through: Through) -> None:
    net = through.net()
    compiled = through.compile(net, dynamic=False)
    with torch.no_grad():
        x = through.randn(3, 4)
        compiled(x)
        with fairlead.freeze(compiled):
            for _ in range(3):
                through.agrees(compiled, net, x)
            with pytest.raises(NotCompiledError):
                compiled(through.randn(5, 4))
    assert through.kinds == ["inference"]


@promise("`shapes=`: a program for each bucket, compiled ahead, and padding between them")
def buckets(through: Through) -> None:
    net = through.net()
    batch = fairlead.Dim("batch", max=4, buckets=[2, 4])
    compiled = through.compile(net, shapes={"x": {0: batch}})
    with torch.no_grad():
        assert list(fairlead.compile_ahead(compiled, [through.randn(1, 4)])) == ["batch=2", "batch=4"]
        with fairlead.freeze(compiled):
            for size in (1, 2, 3, 4):
                through.agrees(compiled, net, through.randn(size, 4))
    assert through.kinds == ["inference"] * 2


class Store:
    """A plugin that keeps what was compiled, and gives it back."""

    secret = b"known to this test alone"

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.served = 0
        self.refused = ""

    @hookimpl
    def fairlead_compile(self, job: CompileJob) -> Executable | None:
        artifact = self.kept.get(artifacts.identify(job).digest)
        if artifact is None:
            return None
        self.served += 1
        return artifacts.unpack(artifact, job, self.secret)

    @hookimpl
    def fairlead_compiled(self, job: CompileJob, executable: Executable, seconds: float) -> None:
        try:
            self.kept[artifacts.identify(job).digest] = artifacts.pack(job, executable, self.secret)
        except ArtifactUnsupportedError as error:
            self.refused = error.what


@promise(
    "Artifacts: what was compiled is stored, and runs again",
    declined={"cudagraphs": "does not store executables"},
    on_cuda={"inductor": "programs on CUDA are not stored"},
)
def stored(through: Through) -> None:
    store = Store()
    plugin_manager().register(store)
    try:
        with torch.no_grad():
            for _ in range(2):
                torch._dynamo.reset()
                net = through.net()
                through.agrees(through.compile(net), net, through.randn(3, 4))
    finally:
        plugin_manager().unregister(store)
    if store.refused:
        through.leave(store.refused)
        assert store.served == 0
    else:
        assert store.served == 1


@promise("`fairlead.bisect` finds nothing wrong with a program that is right")
def bisected(through: Through) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = fairlead.bisect(through.net(), [through.randn(3, 4)], backend=through.backend, folder=folder)
    assert (found.rung, found.failure) == (None, None), str(found)


class Blocks(torch.nn.Module):
    """Two layers of 1 MiB, the least that torch takes for a bucket."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(512, 512), torch.nn.Linear(512, 512)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(torch.tanh(self.first(x)))


RUNS: list[int] = []
"""One for each time that the kernel of ``counted`` has run."""


@torch.library.custom_op("fairlead_promises::counted", mutates_args=())
def counted(x: Tensor) -> Tensor:
    RUNS.append(1)
    return x.clone()


@counted.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


@promise('`verify="first"`: the first call is compared with eager')
def verified(through: Through) -> None:
    def program(x: Tensor) -> Tensor:
        return torch.tanh(counted(torch.tanh(x)))

    x, runs = through.randn(3, 4), []
    compiled = fairlead.compile(program, backend=through.backend, fallback="eager", verify="first")
    for _ in range(2):
        RUNS.clear()
        compiled(x)
        runs.append(len(RUNS))
    first, second = runs
    assert first > second == 1
    with torch.no_grad():
        net = through.net()
        through.agrees(through.compile(net, verify="first"), net, x)


@promise('`rng="eager"`: dropout drops what it drops in eager mode')
def drawn(through: Through) -> None:
    model = torch.nn.Sequential(through.net(), torch.nn.Dropout(0.5))
    x = through.randn(3, 4)
    results = []
    for call in (through.compile(model, rng="eager"), model):
        torch.manual_seed(5)
        results.append((learn(call, model, x), torch.rand(2, device=through.device)))
    through.close(*results)
    assert through.kinds == ["forward", "backward"]


@promise('`precision="highest"`: float32 stays float32, whatever torch is set to')
def precise(through: Through) -> None:
    layer = torch.nn.Linear(256, 64).to(through.device)
    x = through.randn(16, 256)
    before = torch.get_float32_matmul_precision()
    with torch.no_grad():
        exact = copy.deepcopy(layer).double()(x.double())
        torch.set_float32_matmul_precision("medium")
        try:
            found = through.compile(layer, precision="highest")(x)
            assert torch.get_float32_matmul_precision() == "medium"
        finally:
            torch.set_float32_matmul_precision(before)
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-5)


@promise("DDP, of one process here: a graph for each bucket of gradients, in each direction")
def distributed(through: Through) -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        torch.manual_seed(1)
        model = DistributedDataParallel(Blocks().to(through.device), bucket_cap_mb=1)
        x = through.randn(3, 512)
        through.close(learn(through.compile(model), model, x), learn(model, model, x))
    finally:
        dist.destroy_process_group()
    assert through.kinds == ["forward", "forward", "backward", "backward"]
