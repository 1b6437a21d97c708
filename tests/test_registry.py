"""The registry with wheels that are broken in every way that a wheel can be, and the message for each."""

from __future__ import annotations

import sys

import pytest

from fairlead._registry import FIRST_PARTY, Registry, Status
from fairlead.backend import Capabilities, NoOptions, Probe
from fairlead.errors import (
    BackendConflictError,
    BackendContractError,
    BackendImportError,
    BackendNotFoundError,
    BackendNotReadyError,
    BackendVersionError,
    FairleadError,
)
from fairlead.hooks import Hooks, PluginManager, hookimpl

from .conftest import BACKEND, REPOSITORY, Site


@pytest.fixture
def registry(site: Site) -> Registry:
    return Registry(PluginManager(Hooks))


def message(error: FairleadError) -> list[str]:
    return str(error).splitlines()


def test_backends_are_named_without_importing_them(site: Site, registry: Registry) -> None:
    site.backend("acme", "raise RuntimeError('imported')")
    assert "acme" in registry.names()
    assert str(registry.wheel("acme")) == "vendor-acme 2.0 (vendor_acme:backend)"
    info = next(info for info in registry.describe() if info.name == "acme")
    assert info.status is Status.unprobed
    assert info.capabilities == Capabilities(devices=("cpu",), dtypes=("f32",))
    assert "vendor_acme" not in sys.modules


def test_a_conforming_backend_is_imported_once(site: Site, registry: Registry) -> None:
    site.backend("acme")
    assert registry.ready("acme") is registry.get("acme")
    assert registry.probe("acme").versions == {"sdk": "1.2"}


def test_a_name_that_is_nearly_right(site: Site, registry: Registry) -> None:
    site.backend("acme")
    with pytest.raises(BackendNotFoundError) as caught:
        registry.get("Acne")
    assert message(caught.value) == [
        "FL101: no backend is called 'Acne'",
        f"  from: installed backends: {', '.join(registry.names())}",
        "  next: did you mean 'acme'?",
    ]


def test_a_first_party_backend_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, registry: Registry) -> None:
    monkeypatch.setattr(sys, "path", [])
    for asked, advice in {
        "openvino": "pip install fairlead-openvino",
        "openvin": "did you mean 'openvino'? pip install fairlead-openvino",
        "zzz": "use an installed one, or install the wheel that provides it; `fairlead backends` lists them",
    }.items():
        with pytest.raises(BackendNotFoundError) as caught:
            registry.get(asked)
        assert message(caught.value) == [
            f"FL101: no backend is called {asked!r}",
            "  from: installed backends: none",
            f"  next: {advice}",
        ]


def test_the_first_party_backends_are_those_of_this_repository() -> None:
    folders = {path.parent.name for path in REPOSITORY.glob("backends/*/pyproject.toml")}
    assert set(FIRST_PARTY) == (folders - {"onnx"}) | {"eager"}


def test_a_backend_that_does_not_import(site: Site, registry: Registry) -> None:
    site.backend("acme", "import a_vendor_sdk_that_is_missing")
    with pytest.raises(BackendImportError) as caught:
        registry.get("acme")
    assert message(caught.value) == [
        "FL102: backend 'acme' does not import: ModuleNotFoundError: No module named 'a_vendor_sdk_that_is_missing'",
        "  from: vendor-acme 2.0 (vendor_acme:backend)",
        "  next: pip install --force-reinstall vendor-acme",
    ]
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


@pytest.mark.parametrize("source", ["import sys; sys.exit(3)", "something_else = 1", "def ("])
def test_whatever_an_import_does_is_an_import_error(site: Site, registry: Registry, source: str) -> None:
    site.backend("acme", source)
    with pytest.raises(BackendImportError, match="backend 'acme' does not import"):
        registry.get("acme")


def test_two_wheels_with_one_name(site: Site, registry: Registry) -> None:
    site.backend("acme")
    site.wheel("rival-acme", "0.7", {"fairlead.backends": {"acme": "rival:backend"}})
    with pytest.raises(BackendConflictError) as caught:
        registry.get("acme")
    assert message(caught.value) == [
        "FL103: 2 sources provide a backend called 'acme'",
        "  from: rival-acme 0.7 (rival:backend); vendor-acme 2.0 (vendor_acme:backend)",
        "  next: keep one: pip uninstall rival-acme, or vendor-acme",
    ]
    info = next(info for info in registry.describe() if info.name == "acme")
    assert info.status is Status.broken
    assert info.reason == caught.value.what


@pytest.mark.parametrize(
    ("version", "command"), [(9, "pip install --upgrade fairlead"), (0, "pip install --upgrade vendor-acme")]
)
def test_another_version_of_the_contract(site: Site, registry: Registry, version: int, command: str) -> None:
    site.backend("acme", f"class Backend:\n    api_version = {version}\nbackend = Backend()")
    with pytest.raises(BackendVersionError) as caught:
        registry.get("acme")
    assert message(caught.value) == [
        f"FL104: the backend is written for version {version} of the contract; this core accepts 1",
        "  from: vendor-acme 2.0 (vendor_acme:backend)",
        f"  next: {command}",
    ]


def test_a_backend_whose_sdk_is_missing(site: Site, registry: Registry) -> None:
    site.backend(
        "acme", BACKEND.format(name="acme").replace('ok=True, devices=("cpu",)', 'ok=False, reason="no acme.so"')
    )
    assert registry.get("acme").name == "acme"
    with pytest.raises(BackendNotReadyError) as caught:
        registry.ready("acme")
    assert message(caught.value) == [
        "FL105: backend 'acme' is not usable here: no acme.so",
        "  from: vendor-acme 2.0 (vendor_acme:backend)",
        "  next: run: fairlead doctor acme",
    ]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise OSError('driver too old')", "its probe failed: OSError: driver too old"),
        ("raise SystemExit(1)", "its probe failed: SystemExit: 1"),
        ("return None", "its probe failed: AttributeError: 'NoneType' object has no attribute 'versions'"),
    ],
)
def test_a_probe_that_fails_says_no(site: Site, registry: Registry, body: str, reason: str) -> None:
    source = BACKEND.format(name="acme").replace(
        'return Probe(ok=True, devices=("cpu",), versions={"sdk": "1.2"})', body
    )
    site.backend("acme", source)
    assert registry.probe("acme") == Probe(ok=False, reason=reason)


def test_versions_of_any_type_become_text(site: Site, registry: Registry) -> None:
    site.backend("acme", BACKEND.format(name="acme").replace('"1.2"', "type('Version', (str,), {})('1.2')"))
    assert type(registry.probe("acme").versions["sdk"]) is str


def test_an_object_that_is_no_backend(site: Site, registry: Registry) -> None:
    source = """
    class Backend:
        name = "another"
        api_version = 1
        capabilities = {}
        options_type = int
        supports = True

        @property
        def probe(self):
            raise OSError("driver too old")

        def compile(self, graph):
            pass

    backend = Backend()
    """
    site.backend("acme", source)
    with pytest.raises(BackendContractError) as caught:
        registry.get("acme")
    assert message(caught.value) == [
        "FL106: not a backend: name is 'another', its entry point says 'acme'; "
        "capabilities is {} (dict), should be a fairlead.backend.Capabilities; "
        "options_type is <class 'int'> (type), should be a subclass of fairlead.backend.Options; "
        "probe is a property that raises OSError: driver too old, should be a method; "
        "supports is True (bool), should be a method; "
        "compile(graph) is called with 3 positional arguments",
        "  from: vendor-acme 2.0 (vendor_acme:backend)",
        "  next: fulfil fairlead.backend.Backend; see docs/backends.md",
    ]


def test_a_class_is_no_backend(site: Site, registry: Registry) -> None:
    site.backend("acme", BACKEND.format(name="acme").replace("backend = Backend()", "backend = Backend"))
    with pytest.raises(BackendContractError, match="it is the class Backend, should be an instance of it"):
        registry.get("acme")


def test_an_option_without_a_default_breaks_the_contract(site: Site, registry: Registry) -> None:
    options = "\nfrom fairlead.backend import Options\nclass O(Options, frozen=True, kw_only=True):\n    level: int\n"
    site.backend("acme", options + BACKEND.format(name="acme").replace("NoOptions\n\n    def", "O\n\n    def"))
    with pytest.raises(BackendContractError, match="option 'level' has no default"):
        registry.get("acme")


@pytest.mark.parametrize("capabilities", [None, "devices =", 'devices = ["cpu"]\ndtypes = []\nfast = true\n'])
def test_a_wheel_that_describes_itself_wrongly_is_listed_as_broken(
    site: Site, registry: Registry, capabilities: str | None
) -> None:
    site.backend("acme", capabilities=capabilities)
    info = next(info for info in registry.describe() if info.name == "acme")
    assert (info.status, info.capabilities) == (Status.broken, None)
    assert info.reason.startswith("no valid capabilities.toml")


def test_a_broken_wheel_leaves_the_others_alone(site: Site, registry: Registry) -> None:
    site.backend("acme")
    site.backend("broken", "raise RuntimeError", capabilities="?")
    site.wheel("vendor-gone", "1.0", {"fairlead.backends": {"gone": "a_package_that_is_gone:backend"}})
    states = {info.name: info.status for info in registry.describe()}
    assert [states[name] for name in ("acme", "broken", "gone")] == [Status.unprobed, Status.broken, Status.broken]
    assert registry.ready("acme").name == "acme"


def test_a_wheel_that_is_installed_later_is_found_after_a_refresh(site: Site, registry: Registry) -> None:
    assert "acme" not in registry.names()
    site.backend("acme")
    assert "acme" not in registry.names()
    registry.refresh()
    assert registry.get("acme").name == "acme"


class Notebook:
    """A backend that no wheel provides."""

    name = "notebook"
    api_version = 1
    capabilities = Capabilities(devices=("cpu",), dtypes=("f32",))
    options_type = NoOptions

    def probe(self) -> Probe:
        return Probe(ok=True)

    def supports(self, node: object) -> object:
        raise NotImplementedError

    def compile(self, graph: object, options: object, constants: object) -> object:
        raise NotImplementedError


def test_a_backend_without_a_wheel(registry: Registry) -> None:
    backend = Notebook()
    registry.register(backend)
    assert registry.ready("notebook") is backend
    assert "notebook" in registry.names()
    assert [(i.wheel, i.capabilities) for i in registry.describe() if i.name == "notebook"] == [
        ("registered at run time", Notebook.capabilities)
    ]
    registry.unregister("notebook")
    assert "notebook" not in registry.names()


def test_a_backend_without_a_wheel_is_replaced_only_on_request(registry: Registry) -> None:
    registry.register(Notebook())
    with pytest.raises(BackendConflictError) as caught:
        registry.register(Notebook())
    source = f"registered at run time ({__name__}:Notebook)"
    assert message(caught.value) == [
        "FL103: 2 sources provide a backend called 'notebook'",
        f"  from: {source}; {source}",
        "  next: register it under another name, or with replace=True",
    ]
    second = Notebook()
    registry.register(second, replace=True)
    assert registry.get("notebook") is second


def test_a_backend_of_a_wheel_is_never_replaced(site: Site, registry: Registry) -> None:
    site.backend("notebook")
    with pytest.raises(BackendConflictError, match="2 sources provide") as caught:
        registry.register(Notebook(), replace=True)
    assert caught.value.next == "register it under another name"


def test_a_plugin_registers_a_backend(site: Site) -> None:
    class Plugin:
        @hookimpl
        def fairlead_register(self, registry: Registry) -> None:
            registry.register(Notebook())

    manager = PluginManager(Hooks)
    early, late = Registry(manager), Registry(manager)
    assert "notebook" not in early.names()
    manager.register(Plugin())
    assert "notebook" in early.names()
    assert "notebook" in late.names()


def test_plugins_are_loaded_when_a_name_is_not_found(site: Site, registry: Registry) -> None:
    source = BACKEND.format(name="plugged") + (
        "from fairlead.hooks import hookimpl\n"
        "@hookimpl\n"
        "def fairlead_register(registry):\n"
        "    registry.register(backend)\n"
    )
    site.plugin("maker", source)
    assert "plugged" not in registry.names()
    assert "plugin_maker" not in sys.modules
    assert registry.get("plugged").name == "plugged"


def test_every_installed_backend_says_the_same_statically_and_at_run_time() -> None:
    registry = Registry(PluginManager(Hooks))
    described = {info.name: info.capabilities for info in registry.describe()}
    assert set(FIRST_PARTY) <= set(described)
    assert described == {name: registry.get(name).capabilities for name in described}
