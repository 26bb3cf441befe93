"""Tests for L{kubetwist.server.diagnosis.process}."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.diagnosis.findings import Severity
from kubetwist.server.diagnosis.process import (
    ProcessFacts,
    check_versions,
    installed_versions,
    judge_files,
    judge_memory,
    judge_processors,
    judge_versions,
    read_process,
)

GOOD = ProcessFacts(65536, 0, 4 << 30, 100 << 20, 2, 0)
PACKAGES = {"Twisted": ("26.10.0", "26.10"), "attrs": ("25.1", "23.2")}


class LimitTests(SynchronousTestCase):
    """Limits of a process."""

    def test_files(self) -> None:
        """A low limit, or one below the flag, is reported."""
        cases = (
            (GOOD, Severity.OK),
            (evolve(GOOD, open_files=1024), Severity.WARNING),
            (evolve(GOOD, open_files=100), Severity.ERROR),
            (evolve(GOOD, wanted_connections=65536), Severity.ERROR),
            (evolve(GOOD, wanted_connections=1000), Severity.OK),
        )
        for facts, expected in cases:
            (found,) = judge_files(facts)
            self.assertIs(found.severity, expected, facts)

    def test_memory(self) -> None:
        """The limit must be larger than the objects of all processes."""
        cases = (
            (GOOD, Severity.OK),
            (evolve(GOOD, memory_limit=0), Severity.NOTE),
            (evolve(GOOD, memory_limit=300 << 20), Severity.WARNING),
            (evolve(GOOD, memory_limit=128 << 20), Severity.ERROR),
            (evolve(GOOD, memory_limit=300 << 20, workers=3), Severity.ERROR),
        )
        for facts, expected in cases:
            (found,) = judge_memory(facts)
            self.assertIs(found.severity, expected, facts)

    def test_processors(self) -> None:
        """More processes than processors are a warning, idle processors a note."""
        cases = (
            (GOOD, Severity.OK),
            (evolve(GOOD, processors=8), Severity.NOTE),
            (evolve(GOOD, workers=2), Severity.WARNING),
            (evolve(GOOD, processors=8, workers=7), Severity.OK),
        )
        for facts, expected in cases:
            (found,) = judge_processors(facts)
            self.assertIs(found.severity, expected, facts)

    def test_read(self) -> None:
        """The size of the store has the size of its log."""
        store = Path(self.mktemp())
        store.write_bytes(b"x" * 100)
        store.with_name(f"{store.name}-wal").write_bytes(b"x" * 11)
        facts = read_process(5, 1 << 20, store, 3)
        self.assertEqual((facts.store_size, facts.memory_limit, facts.workers), (111, 1 << 20, 3))
        self.assertGreater(facts.processors, 0)
        self.assertEqual(read_process(0, None, None, 0).store_size, 0)


class VersionTests(SynchronousTestCase):
    """Versions of Python, SQLite and packages."""

    def severity(self, packages: dict[str, tuple[str, str]] = PACKAGES, **changed: object) -> Severity:
        """Return the severity for versions."""
        facts: dict[str, object] = {"python": (3, 11, 4), "sqlite": (3, 40, 1), "implementation": "CPython"}
        (found,) = judge_versions(packages, **{**facts, **changed})  # type: ignore[arg-type] # by name
        return found.severity

    def test_versions(self) -> None:
        """Old and missing packages are errors, another interpreter is a note."""
        self.assertIs(self.severity(), Severity.OK)
        self.assertIs(self.severity(python=(3, 10, 1)), Severity.ERROR)
        self.assertIs(self.severity(sqlite=(3, 31, 1)), Severity.ERROR)
        self.assertIs(self.severity({**PACKAGES, "klein": ("23.1", "24.8")}), Severity.ERROR)
        self.assertIs(self.severity({**PACKAGES, "klein": ("", "24.8")}), Severity.ERROR)
        self.assertIs(self.severity(implementation="pypy"), Severity.NOTE)

    def test_installed(self) -> None:
        """The requirements of kubetwist are installed, in the required versions."""
        found = installed_versions("kubetwist")
        self.assertIn("attrs", found)
        self.assertNotIn("pytest", found)
        (result,) = check_versions()
        self.assertLess(result.severity, Severity.ERROR)
