"""Does `fairlead.bisect` find the faulty op of the zoo's backends inside BERT and ResNet, and in what time?

    python benchmarks/bisection.py [FAULT...] [--out PATH]

Each faulty backend of the conformance suite's zoo whose fault is in one op, as a wheel of its own. It is found where
one node is left and its op is one that the fault is in. The script is then run again in an environment that has
torch, NumPy, the wheel of core and the faulty backend (with the sources of the zoo, which it is made from), and no
other wheel of this repository; it has to fail there in the same way. Exit status 1 where one
fault is not found, its script does not show it, or it took longer than two minutes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import bisected
import torch

ROOT = Path(__file__).parents[1]
sys.path.insert(1, str(ROOT))

import fairlead  # noqa: E402 - the folders of this repository come first
from conformance.tests.zoo._fault import Fault  # noqa: E402
from conformance.tests.zoo._zoo import ZOO  # noqa: E402
from fairlead._compare._machine import describe  # noqa: E402
from fairlead.bisection import Bisection, Failure, Rung  # noqa: E402
from fairlead.registry import registry  # noqa: E402
from tests.environments import environment, required  # noqa: E402

LIMIT = 120.0
"""Seconds that a search may take."""

WHEEL = """\
import os

from conformance.tests.zoo._fault import Reference
from conformance.tests.zoo._zoo import ZOO

FAULTS = {fault.name: fault.make for fault in ZOO}
backend = FAULTS.get(os.environ["ZOO_FAULT"], Reference)()
backend.capabilities = type(backend.capabilities)(
    **{name: getattr(backend.capabilities, name) for name in backend.capabilities.__struct_fields__ if name != "keeps"},
    keeps=tuple(os.environ["ZOO_KEEPS"].split()),
)
"""


class Setting(NamedTuple):
    """Where faults are searched. ``keeps``: the composites that the backend takes whole, all (``*``) or none.

    ``config``: what the model's configuration has otherwise than by default.
    """

    model: str
    training: bool = False
    keeps: str = "*"
    config: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        words = [self.model, *(f"{name} {value}" for name, value in self.config)]
        words += ["a training step"] * self.training + ["composites taken apart"] * (not self.keeps)
        return ", ".join(words)


PLAN = {
    Setting("bert"): (
        "add_of_float32_in_float16",
        "where_exchanged",
        "where_by_multiplication",
        "norm_without_its_weight",
        "product_a_thousandth_off",
        "product_of_float32_in_bfloat16",
        "product_of_float32_in_tf32",
        "square_weights_transposed",
        "linear_without_bias",
        "gelu_always_by_tanh",
        "view_in_column_order",
        "lookup_of_the_next_row",
        "no_dimensions_become_one",
        "copies_lose_the_last_vector",
    ),
    Setting("bert", keeps=""): (
        "mul_of_float32_in_bfloat16",
        "mul_broadcasts_the_wrong_row",
        "sub_exchanged",
        "rsqrt_by_a_table",
        "erf_by_a_formula_of_three_digits",
        "sum_without_the_last",
        "reduction_of_the_wrong_dimension",
        "amax_starts_at_zero",
        "half_an_amax_by_bits",
        "square_matrices_transposed",
        "product_in_blocks_of_four",
    ),
    Setting("bert", config=(("attn_implementation", "eager"),)): (
        "computed_in_bfloat16",
        "permutation_inverted",
        "full_of_float32",
    ),
    Setting("bert", config=(("hidden_act", "gelu_new"),)): ("pow_of_negative_bases",),
    Setting("bert", training=True): ("repetition_of_each_element",),
    Setting("resnet"): (
        "convolution_is_a_convolution",
        "convolution_pads_with_ones",
        "batch_norm_by_the_deviation",
        "add_of_float32_in_float16",
        "linear_without_bias",
        "product_of_float32_in_tf32",
    ),
    Setting("resnet", keeps=""): ("mul_of_float32_in_bfloat16", "rsqrt_by_a_table", "sub_exchanged"),
    Setting("resnet", config=(("hidden_act", "silu"),)): ("activation_flattens_early", "max_pool_pads_with_zero"),
    Setting("resnet", training=True): ("batch_norm_with_biased_statistics",),
}
"""The faults by setting: those that change a number there beyond what rounding does, which nothing finds otherwise."""


class Row(NamedTuple):
    """What came of one fault. ``shown``: the script fails as it ought to in that environment."""

    fault: Fault
    setting: Setting
    found: Bisection
    seconds: float
    shown: bool

    @property
    def op(self) -> bool:
        """Whether the one node that is left has the planted op."""
        return len(self.found.nodes) == 1 and set(self.found.ops) <= set(self.fault.aims)

    @property
    def late(self) -> bool:
        """Whether the search took too long."""
        return self.seconds > LIMIT

    @property
    def good(self) -> bool:
        """Whether all of it is as it should be."""
        return self.op and self.shown and not self.late


def main() -> None:
    options = _options()
    warnings.simplefilter("ignore")
    faults = {fault.name: fault for fault in ZOO}
    rows: list[Row] = []
    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory(prefix="fairlead-bisection-") as folder:
        site, python = _wheel(Path(folder, "site")), _bare(Path(folder, "bare"))
        for setting, names in PLAN.items():
            for name in names:
                if (not options.faults or name in options.faults) and time.monotonic() < end:
                    rows.append(_row(faults[name], setting, site, python, Path(folder, "out", str(len(rows)))))
                    print(_line(rows[-1]), flush=True)
    page = _page(rows)
    print(page)
    if options.out:
        Path(options.out).with_suffix(".md").write_text(page, "utf-8")
    sys.exit(not all(row.good for row in rows))


def _wheel(site: Path) -> Path:
    """A folder with the wheel of the faulty backend and the sources that it is made from, on the path of all."""
    package, info = site / "zoo_wheel", site / "zoo_wheel-1.0.dist-info"
    for each in (package, info):
        each.mkdir(parents=True)
    (package / "__init__.py").write_text(WHEEL)
    (package / "capabilities.toml").write_text('devices = ["cpu"]\ndtypes = ["f32"]\n')
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: zoo-wheel\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[fairlead.backends]\nzoo = zoo_wheel:backend\n")
    (site / "conformance").symlink_to(ROOT / "conformance")
    (site / "fairlead_conformance").symlink_to(ROOT / "conformance/src/fairlead_conformance")
    sys.path.insert(0, str(site))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH"))))
    return site


def _bare(folder: Path) -> str:
    """A Python with torch, NumPy, what the zoo imports of others, and core alone of our wheels."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    subprocess.run(build, cwd=ROOT / "core", check=True, capture_output=True)
    others = {name for name in required("fairlead", "fairlead-conformance", "torch") if not name.startswith("fairlead")}
    return environment(folder, others | {"torch", "numpy", "ml_dtypes"}, folder.glob("dist/*.whl"))


def _row(fault: Fault, setting: Setting, site: Path, python: str, out: Path) -> Row:
    os.environ |= {"ZOO_FAULT": fault.name, "ZOO_KEEPS": setting.keeps}
    sys.modules.pop("zoo_wheel", None)
    registry.refresh()
    torch._dynamo.reset()
    module, inputs = getattr(bisected, setting.model)(**dict(setting.config))
    if setting.training:
        inputs["labels"] = torch.tensor([0, 1])
    module.train(setting.training)
    start = time.perf_counter()
    found = fairlead.bisect(module, kwargs=inputs, backend="zoo", training=setting.training, folder=out, progress=False)
    seconds = time.perf_counter() - start
    shown = bool(found.script) and _shows(python, found, site)
    return Row(fault, setting, found, seconds, shown)


def _shows(python: str, found: Bisection, site: Path) -> bool:
    environ = {**os.environ, "PYTHONPATH": str(site)}
    ran = subprocess.run([python, found.script], env=environ, capture_output=True, text=True, timeout=LIMIT)
    said = "AssertionError" if found.failure is Failure.wrong else found.detail.partition(":")[0]
    return ran.returncode != 0 and said in ran.stderr


def _line(row: Row) -> str:
    found = row.found
    ops = ", ".join(found.ops)
    if found.rung is not Rung.backend:
        ops = f"no fault ({found.rung or 'no rung'}) {found.detail}".rstrip()
    cells = (row.fault.name, row.setting, ops, len(found.nodes), found.part_nodes, found.trials)
    verdict = "yes" if row.op else "no", "yes" if row.shown else "no", f"{row.seconds:.0f}"
    return f"| {' | '.join(map(str, (*cells, *verdict)))} |"


def _page(rows: Sequence[Row]) -> str:
    here, command = describe(), " ".join(("python benchmarks/bisection.py", *sys.argv[1:]))
    longest = max((r.seconds for r in rows), default=0.0)
    op, shown, slow, good = (sum(getattr(r, n) for r in rows) for n in ("op", "shown", "late", "good"))
    backends = len({r.fault.name for r in rows if r.good})
    return (
        "# Faulty ops found by bisect\n\n"
        f"`{command}`. {here.processor}, {here.cores} cores at a load of {here.load:.1f}, torch "
        f"{torch.__version__}. A load beyond the cores is other programs.\n\n"
        f"{sum(map(len, PLAN.values()))} searches are planned, {len(rows)} were made; {good} of them, for {backends} "
        f"faulty backends of the zoo, are as they should be. {op} left one node, of the planted op. {shown} scripts "
        f"show the fault with torch, core and the faulty backend alone. {slow} took longer than two minutes; the "
        f"longest took {longest:.0f} s.\n\n"
        "| fault | in | op that is left | nodes | of | graphs tried | found | shown | seconds |\n"
        "|---|---|---|---:|---:|---:|---|---|---:|\n" + "\n".join(map(_line, rows)) + "\n"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("faults", nargs="*", metavar="FAULT", help="of the plan; all by default")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="after which no further search begins")
    parser.add_argument("--out", help="where to write the page, without the suffix")
    return parser.parse_args()


if __name__ == "__main__":
    main()
