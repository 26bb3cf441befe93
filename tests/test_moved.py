"""Tests for L{kubetwist._moved}: modules are found by the names that they had in the previous release."""

from __future__ import annotations

import re
import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

import kubetwist
from kubetwist import _moved

from .checkout import CHECKOUT

#: What plugins and tests could import in kubetwist 0.1, by the names of then.
DOCUMENTED = {
    "kubetwist.admission.attributes": ("AdmissionAttributes", "AdmissionContext"),
    "kubetwist.admission.factory": ("AdmissionPluginFactory",),
    "kubetwist.api.authorization": ("AuthorizerAttributes", "Decision", "Verdict"),
    "kubetwist.api.errors": ("APIStatusError",),
    "kubetwist.api.podspecs": ("containers", "pod_template"),
    "kubetwist.api.resource": ("JSONObject", "UserInfo"),
    "kubetwist.authentication.errors": ("AuthenticationFailed",),
    "kubetwist.authorizers.rbac": ("RBAC",),
    "kubetwist.authorizers.union": ("AuthorizerUnion",),
    "kubetwist.controllers.client": ("Client",),
    "kubetwist.controllers.context": ("Context",),
    "kubetwist.controllers.controller": ("Controller",),
    "kubetwist.controllers.factory": ("ControllerFactory",),
    "kubetwist.controllers.informers": ("Informer",),
    "kubetwist.controllers.queue": ("WorkQueue",),
    "kubetwist.extension": ("ExtensionOptions", "Resource", "make_service"),
    "kubetwist.outgoing.outgoing": ("Outgoing",),
    "kubetwist.registry.scope": ("RequestScope",),
    "kubetwist.registry.store": ("Store",),
    "kubetwist.registry.strategy": ("Strategy",),
    "kubetwist.server.errors": ("StartError",),
    "kubetwist.server.plugins": ("AuthenticatorFactory", "AuthorizerFactory", "StorageBackendFactory"),
    "kubetwist.server.request": ("KubeRequest",),
    "kubetwist.storage.errors": ("KeyNotFound", "StorageError"),
    "kubetwist.storage.etcd": ("EtcdStorage",),
    "kubetwist.storage.memory": ("MemoryStorage",),
    "kubetwist.storage.record": ("Record",),
    "kubetwist.storage.sqlite": ("SQLiteStorage",),
    "kubetwist.storage.values": ("Page", "StorageEvent", "StoredValue", "Write"),
    "kubetwist.storage.watchcache": ("Listing", "WatchCache"),
    "kubetwist.tap": ("Options",),
    "kubetwist.testing": ("InProcessServer", "KubeAPI", "SubprocessServer"),
    "kubetwist.testing.admission": ("StubServer", "write"),
    "kubetwist.testing.history": ("History",),
    "kubetwist.testing.historycheck": ("violations",),
    "kubetwist.testing.storage": ("storage_tests",),
    "kubetwist.testing.trial": ("KubeAPIMixin",),
    "kubetwist.testing.webhooks": ("WebhookServer",),
}


def forget(before: set[str]) -> None:
    """Remove modules that were imported by old names from C{sys.modules} and from their packages."""
    for name in set(sys.modules) - before:
        module = sys.modules[name]
        if name.startswith("kubetwist.") and (module.__name__ != name or "__file__" not in vars(module)):
            del sys.modules[name]
            parent, _, child = name.rpartition(".")
            vars(sys.modules.get(parent, kubetwist)).pop(child, None)


class TableTests(SynchronousTestCase):
    """The table of renamed modules."""

    def test_lines(self) -> None:
        """Lines are sorted, have two names, and name public modules that were renamed."""
        text = Path(_moved.__file__).with_suffix(".txt").read_text()
        lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
        self.assertEqual(sorted(lines), lines)
        for line in lines:
            self.assertEqual(2, len(line), line)
            self.assertNotIn("_", {part[0] for part in line[0].split(".")})

    def test_modules(self) -> None:
        """There is a module with each new name, and none with an old name."""
        folder = Path(kubetwist.__file__).parent
        for old, new in _moved.read_table().items():
            path = folder.joinpath(*new.split(".")[1:])
            self.assertTrue(path.with_suffix(".py").exists() or (path / "__init__.py").exists(), new)
            path = folder.joinpath(*old.split(".")[1:])
            self.assertFalse(path.with_suffix(".py").exists() or (path / "__init__.py").exists(), old)

    def test_unused(self) -> None:
        """No module of the package, drop-in or page has an old name."""
        names = "|".join(re.escape(old) for old in sorted(_moved.read_table(), key=len, reverse=True))
        old_name = re.compile(rf"(?<![\w.])(?:{names})(?![\w.])")
        folder = Path(kubetwist.__file__).parent
        paths = [*folder.rglob("*.py"), *(folder.parent / "twisted" / "plugins").glob("kube*.py")]
        pages = [path for path in (CHECKOUT / "docs").rglob("*.md") if path.parent.name != "decisions"]
        found = [(path.name, one) for path in (*paths, *pages) for one in old_name.findall(path.read_text("utf-8"))]
        self.assertEqual([], found)

    def test_imported(self) -> None:
        """The import of each old name gives the module with the new name, with one warning for each name."""
        self.addCleanup(forget, set(sys.modules))
        for old, new in _moved.read_table().items():
            try:
                module = import_module(new)
            except ModuleNotFoundError as error:
                if (error.name or "").startswith("kubetwist"):
                    raise
                continue  # it needs a package that is not installed
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", DeprecationWarning)
                found = import_module(old)
            if old not in _moved.read_packages():
                self.assertIs(module, found, old)
            text = f"{old} was renamed {new}; the old name will be removed in kubetwist 0.3"
            self.assertEqual(1, [str(one.message) for one in caught].count(text), old)

    def test_documented(self) -> None:
        """All public modules of the previous release can still be imported."""
        self.addCleanup(forget, set(sys.modules))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            for module, names in DOCUMENTED.items():
                found = import_module(module)
                self.assertEqual([], [name for name in names if not hasattr(found, name)], module)


class ImportTests(SynchronousTestCase):
    """Imports of old names give the modules themselves."""

    def setUp(self) -> None:
        """Rename modules in a table of the test."""
        table = {
            "kubetwist.api.instants": "kubetwist.api.times",
            "kubetwist.oldplace": "kubetwist.api",
            "kubetwist.oldplace.instants": "kubetwist.api.times",
            "kubetwist.split.deeper.instants": "kubetwist.api.times",
        }
        _moved.read_packages.cache_clear()
        self.patch(_moved, "read_table", lambda: table)
        self.addCleanup(_moved.read_packages.cache_clear)
        self.addCleanup(forget, set(sys.modules))

    def imported(self, name: str) -> tuple[object, list[str]]:
        """Import a module, and return it with the warnings."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            module = import_module(name)
        return module, [str(one.message).partition(";")[0] for one in caught]

    def test_module(self) -> None:
        """A renamed module is the module with the new name, which keeps its name and specification."""
        new = import_module("kubetwist.api.times")
        spec = new.__spec__
        module, texts = self.imported("kubetwist.api.instants")
        self.assertIs(new, module)
        self.assertIs(spec, new.__spec__)
        self.assertEqual("kubetwist.api.times", new.__name__)
        self.assertEqual(["kubetwist.api.instants was renamed kubetwist.api.times"], texts)

    def test_once(self) -> None:
        """The second import of an old name emits no warning."""
        self.imported("kubetwist.api.instants")
        self.assertEqual([], self.imported("kubetwist.api.instants")[1])

    def test_package(self) -> None:
        """The modules of a renamed package are found, and are not loaded twice."""
        module, texts = self.imported("kubetwist.oldplace.instants")
        self.assertIs(import_module("kubetwist.api.times"), module)
        self.assertEqual(2, len(texts))
        self.assertIsNone(find_spec("kubetwist.oldplace.times"))

    def test_names_of_package(self) -> None:
        """A renamed package has the names of the new one."""
        package, _ = self.imported("kubetwist.oldplace")
        self.assertEqual(import_module("kubetwist.api").__doc__, getattr(package, "__getattr__")("__doc__"))  # noqa: B009

    def test_removed_package(self) -> None:
        """Modules of a package without a successor are found, and the package itself causes no warning."""
        module, texts = self.imported("kubetwist.split.deeper.instants")
        self.assertIs(import_module("kubetwist.api.times"), module)
        self.assertEqual(1, len(texts))

    def test_place(self) -> None:
        """The warning is reported for the line with the import."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            from kubetwist.oldplace import instants  # type: ignore[import-not-found]  # noqa: F401
        self.assertEqual({__file__}, {one.filename for one in caught})

    def test_unknown(self) -> None:
        """Names that never existed are not found."""
        self.assertRaises(ModuleNotFoundError, import_module, "kubetwist.nowhere")
        self.assertRaises(ModuleNotFoundError, import_module, "kubetwist.api.nowhere")
