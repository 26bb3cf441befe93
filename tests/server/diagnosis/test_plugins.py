"""Tests for L{kubetwist.server.diagnosis.plugins}."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.diagnosis.findings import Severity
from kubetwist.server.diagnosis.plugins import broken_modules, check_plugins, judge_plugins, read_factories

NAMES = {"storage backend": ["sqlite", "etcd3"], "controller": ["namespace"]}


class PluginTests(SynchronousTestCase):
    """Checks of plugins."""

    def test_judged(self) -> None:
        """Modules that cannot be imported are warnings, unusable factories and missing backends errors."""
        cases = (
            (({}, NAMES, {}, "sqlite"), "plugins", Severity.OK),
            (({"mine": "ImportError: x"}, NAMES, {}, "sqlite"), "plugins/import", Severity.WARNING),
            (({}, NAMES, {"authorizer": "two are called x"}, "sqlite"), "plugins/factories", Severity.ERROR),
            (({}, {}, {}, "sqlite"), "plugins/factories", Severity.ERROR),
            (({}, NAMES, {}, "mine"), "plugins/storage", Severity.ERROR),
        )
        for arguments, identifier, expected in cases:
            (found,) = judge_plugins(*arguments)  # type: ignore[arg-type] # the literals have narrower types
            self.assertEqual((found.id, found.severity), (identifier, expected))

    def test_installed(self) -> None:
        """The built-in plugins can be used."""
        names, problems = read_factories()
        self.assertEqual(problems, {})
        self.assertIn("sqlite", names["storage backend"])
        self.assertIn("NamespaceLifecycle", names["admission plugin"])
        self.assertNotIn(Severity.ERROR, [one.severity for one in check_plugins("sqlite")])

    def test_broken(self) -> None:
        """A drop-in that cannot be imported is found, with the reason."""
        folder = Path(self.mktemp()).absolute()
        package = folder / "diagnosedplugins"
        package.mkdir(parents=True)
        for name, content in (("__init__", ""), ("good", ""), ("broken", "raise RuntimeError('of another version')")):
            (package / f"{name}.py").write_text(content)
        # In place, as Twisted keeps a reference to the list.
        sys.path.append(str(folder))
        self.addCleanup(sys.path.remove, str(folder))
        try:
            self.assertEqual(
                broken_modules(import_module("diagnosedplugins")), {"broken": "RuntimeError: of another version"}
            )
        finally:
            for name in [one for one in sys.modules if one.partition(".")[0] == "diagnosedplugins"]:
                del sys.modules[name]
        self.flushLoggedErrors(RuntimeError)
