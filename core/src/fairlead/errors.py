"""The error tree: every error Fairlead raises on purpose, with a stable code.

::

    FairleadError
    ├── RegistryError
    │   ├── BackendNotFoundError        FL101  no installed wheel provides that name
    │   ├── BackendImportError          FL102  the wheel is installed but does not import
    │   ├── BackendConflictError        FL103  two wheels claim one name
    │   ├── BackendVersionError         FL104  written for another version of the contract
    │   ├── BackendNotReadyError        FL105  imports, but its SDK or device is not usable here
    │   ├── BackendContractError        FL106  the object does not fulfil the backend contract
    │   └── PluginError                 FL107  a plugin does not import or has a wrong hook
    ├── OptionsError
    │   ├── UnknownOptionError          FL201  an option that the backend does not have
    │   ├── OptionValueError            FL202  an option of the wrong type or out of range
    │   ├── ArgumentError               FL203  a wrong argument or environment variable
    │   └── ShapeError                  FL204  padding to a bucket would change results
    ├── CaptureError                    FL301  the program could not be turned into a graph
    │   ├── TorchMissingError           FL302  torch is needed and not installed
    │   └── StepError                   FL303  a training step could not be captured as one graph
    ├── PlacementError
    │   ├── FallbackBudgetError         FL401  more was declined than the caller allows
    │   └── DeviceError                 FL402  the backend cannot use the device of the tensors
    ├── ExecutionError
    │   ├── SupportsError               FL501  the backend raised in ``supports``
    │   ├── CompileError                FL502  the backend raised in ``compile``
    │   ├── RunError                    FL503  the backend raised while running
    │   ├── ResultError                 FL504  the backend returned something else than declared
    │   ├── InterpretError              FL505  the NumPy interpreter lacks an op, or an op refuses its operands
    │   ├── NotCompiledError            FL506  a frozen program was called with what nothing was compiled for
    │   └── AccuracyError               FL507  a verified call gave other numbers than eager
    ├── ArtifactError
    │   ├── ArtifactFormatError         FL801  bytes that are no artifact, are damaged, or signed by somebody else
    │   ├── ArtifactMismatchError       FL802  an artifact of another SDK, machine, option, graph or weight
    │   └── ArtifactUnsupportedError    FL803  the backend does not store what it compiles
    ├── IRError
    │   ├── IRFormatError               FL601  a file or text that is not well-formed IR
    │   ├── IRVersionError              FL602  written by a newer, unknown version
    │   └── VerificationError           FL603  a graph that breaks a rule of the IR
    └── ToolError
        ├── ModelNotFoundError          FL701  a MODEL argument that names nothing
        ├── ExtraMissingError           FL702  a package that an extra of Fairlead's installs is needed
        └── CommandNotFoundError        FL703  the command line has no subcommand of that name

A message has three lines: what happened, from where (the wheel and its version, the file, the user's line), and what
to do next.
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "AccuracyError",
    "ArgumentError",
    "ArtifactError",
    "ArtifactFormatError",
    "ArtifactMismatchError",
    "ArtifactUnsupportedError",
    "BackendConflictError",
    "BackendContractError",
    "BackendImportError",
    "BackendNotFoundError",
    "BackendNotReadyError",
    "BackendVersionError",
    "CaptureError",
    "CommandNotFoundError",
    "CompileError",
    "DeviceError",
    "ExecutionError",
    "ExtraMissingError",
    "FairleadError",
    "FallbackBudgetError",
    "IRError",
    "IRFormatError",
    "IRVersionError",
    "InterpretError",
    "ModelNotFoundError",
    "NotCompiledError",
    "OptionValueError",
    "OptionsError",
    "PlacementError",
    "PluginError",
    "RegistryError",
    "ResultError",
    "RunError",
    "ShapeError",
    "StepError",
    "SupportsError",
    "ToolError",
    "TorchMissingError",
    "UnknownOptionError",
    "VerificationError",
]


class FairleadError(Exception):
    """The root of the tree: catch it to catch everything that Fairlead raises on purpose.

    ``what`` says what happened, ``where`` names the source (a wheel and its version, a file and line), ``next`` says
    what to do.

    >>> print(BackendNotFoundError("no backend is called 'tmv'", where="12 backends", next="did you mean 'tvm'?"))
    FL101: no backend is called 'tmv'
      from: 12 backends
      next: did you mean 'tvm'?
    """

    code: ClassVar[str] = "FL000"

    def __init__(self, what: str, *, where: str, next: str) -> None:  # noqa: A002 - the message's third line is called next
        super().__init__(what)
        self.what = what
        self.where = where
        self.next = next

    def __str__(self) -> str:
        return f"{self.code}: {self.what}\n  from: {self.where}\n  next: {self.next}"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.what, self.where, self.next)


def _rebuild(cls: type[FairleadError], what: str, where: str, next_: str) -> FairleadError:
    return cls(what, where=where, next=next_)


class RegistryError(FairleadError):
    """Something is wrong with finding or loading a backend or a plugin."""


class BackendNotFoundError(RegistryError):
    """No installed wheel provides the name."""

    code = "FL101"


class BackendImportError(RegistryError):
    """The wheel that provides the backend is installed but its module does not import."""

    code = "FL102"


class BackendConflictError(RegistryError):
    """Two installed wheels provide the same name; Fairlead never picks one of them."""

    code = "FL103"


class BackendVersionError(RegistryError):
    """The backend was written for a version of the contract that this core does not accept."""

    code = "FL104"


class BackendNotReadyError(RegistryError):
    """The backend imports, but its ``probe`` says that its SDK or device is not usable here."""

    code = "FL105"


class BackendContractError(RegistryError):
    """The entry point leads to an object that does not fulfil the backend contract."""

    code = "FL106"


class PluginError(RegistryError):
    """A plugin does not import, or implements a hook that does not exist."""

    code = "FL107"


class OptionsError(FairleadError):
    """Something is wrong with what the caller passed."""


class UnknownOptionError(OptionsError):
    """An option that the backend does not have; the message names the nearest one that it has."""

    code = "FL201"


class OptionValueError(OptionsError):
    """An option whose value has the wrong type or is out of range."""

    code = "FL202"


class ArgumentError(OptionsError):
    """A wrong argument of a public function, or a wrong environment variable."""

    code = "FL203"


class ShapeError(OptionsError):
    """Padding along a dimension that was declared with buckets changes what the model computes; see `fairlead.Dim`."""

    code = "FL204"


class CaptureError(FairleadError):
    """The program could not be turned into a graph of the IR."""

    code = "FL301"


class TorchMissingError(CaptureError):
    """Torch is needed for what was asked and is not installed."""

    code = "FL302"


class StepError(CaptureError):
    """A whole training step could not be captured as one graph; see `fairlead.compile_step`."""

    code = "FL303"


class PlacementError(FairleadError):
    """The graph could not be placed as the caller demands."""


class FallbackBudgetError(PlacementError):
    """More nodes were declined by the backend than ``max_fallback`` or ``fallback`` allows."""

    code = "FL401"


class DeviceError(PlacementError):
    """The backend cannot use the device that the tensors live on."""

    code = "FL402"


class ExecutionError(FairleadError):
    """A backend failed while compiling or running."""


class SupportsError(ExecutionError):
    """The backend raised in ``supports``, which has to be pure and total."""

    code = "FL501"


class CompileError(ExecutionError):
    """The backend raised in ``compile``; the graph is kept as a file that replays the failure."""

    code = "FL502"


class RunError(ExecutionError):
    """The backend's executable raised."""

    code = "FL503"


class ResultError(ExecutionError):
    """The executable returned another number of tensors, shape or dtype than the graph declares."""

    code = "FL504"


class InterpretError(ExecutionError):
    """An op that the NumPy interpreter has no meaning for, or that refuses its operands."""

    code = "FL505"


class NotCompiledError(ExecutionError):
    """A frozen program was called with what nothing was compiled for; see `fairlead.freeze`."""

    code = "FL506"


class AccuracyError(ExecutionError):
    """A call that was compared with torch, as ``verify`` asks for, is off by more than the rule allows."""

    code = "FL507"


class ArtifactError(FairleadError):
    """Something is wrong with a stored executable; see `fairlead.artifacts`."""


class ArtifactFormatError(ArtifactError):
    """Bytes that are no artifact, are damaged, were signed with another secret, or that the backend cannot load."""

    code = "FL801"


class ArtifactMismatchError(ArtifactError):
    """An artifact that was made for another SDK, machine, option, graph or weight than those at hand."""

    code = "FL802"


class ArtifactUnsupportedError(ArtifactError):
    """The backend does not store what it compiles."""

    code = "FL803"


class IRError(FairleadError):
    """Something is wrong with a graph."""


class IRFormatError(IRError):
    """A file, text or expression that is not well-formed IR."""

    code = "FL601"


class IRVersionError(IRError):
    """A file that a newer version of the IR wrote."""

    code = "FL602"


class VerificationError(IRError):
    """A graph that breaks a rule of the IR."""

    code = "FL603"


class ToolError(FairleadError):
    """Something is wrong with what a command line tool was given."""


class ModelNotFoundError(ToolError):
    """A MODEL argument that is no bundled name, no ``module:factory`` and no ``.fir`` file."""

    code = "FL701"


class ExtraMissingError(ToolError):
    """What was asked needs a package that one of Fairlead's extras installs."""

    code = "FL702"


class CommandNotFoundError(ToolError):
    """A subcommand that neither core nor an installed wheel has; the message names the wheel that would bring it."""

    code = "FL703"
