"""Tests for the pages of F{docs}: the names in them exist."""

from __future__ import annotations

import ast
import csv
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click

from twisted.trial.unittest import SkipTest, SynchronousTestCase

import kubetwist
from kubetwist.api.featuregates import FeatureGates
from kubetwist.cli import (
    backup,
    doctor,
    migrate,
    plugin,
    restore,
)
from kubetwist.cli.compatflags import limited_flags
from kubetwist.cli.flagtable import FLAGS
from kubetwist.cli.main import COMMANDS, load_command
from kubetwist.extension._options import ExtensionOptions
from kubetwist.server import diagnosis

TESTS = Path(__file__).parent
DOCS = Path(os.environ.get("KUBETWIST_TEST_DOCS") or TESTS.parent / "docs")

FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*[a-z0-9])(?![\w-])")
#: Flags of other programs that pages mention.
OTHERS = """
all-namespaces as bump-revision cluster clusterrole containers current dry-run enable-grpc-gateway endpoints
failures for from-literal help human-readable image include-crds inodes insecure-skip-tls-verify-backend
kubetwist-context kubetwist-kubeconfig kubetwist-load kubetwist-record list mark-compacted name namespace path
previous raw reactor replicas role selector server-side serviceaccount use-env user write-out
end-overlap overlap retire within
build enable format from-file now read-only set tmpfs
csv etcd haproxy hours ignore-daemonsets max-errors max-growth max-p99 plot server steady unix-socket
"""


def page(name: str) -> str:
    """Return the text of a page."""
    if not DOCS.is_dir():
        raise SkipTest("the pages are not here: KUBETWIST_TEST_DOCS names their folder")
    return (DOCS / name).read_text("utf-8")


@cache
def names_of_tests(path: Path) -> frozenset[str]:
    """Return the names of the test functions in a module."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    tree = ast.parse(path.read_text("utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, functions) and node.name[:4] == "test")


def option_names(command: click.Command) -> Iterator[str]:
    """Yield the names of the options of a command and of the commands below it, without dashes."""
    for parameter in command.params:
        yield from (name.removeprefix("--") for name in parameter.opts if name.startswith("--"))
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            yield from option_names(inner)


class PageTests(SynchronousTestCase):
    """Names in pages."""

    def test_security(self) -> None:
        """Every rule on the page about security names existing tests."""
        rows = [line for line in page("security.md").splitlines() if line.startswith("|")]
        rules = [row for row in rows if not row.startswith(("| weakness", "| attack", "|---"))]
        self.assertGreater(len(rules), 20)
        for rule in rules:
            tests = re.findall(r"`tests/([a-z0-9_/]+\.py)::(test_\w+)`", rule)
            self.assertTrue(tests, rule)
            self.assertEqual(len(tests), rule.count("::"), rule)
            for path, name in tests:
                self.assertIn(name, names_of_tests(TESTS / path), path)

    def test_packages(self) -> None:
        """The table of packages is complete."""
        table = page("contributing/architecture.md").partition("## Packages")[2].partition("##")[0]
        for path in Path(kubetwist.__file__).parent.glob("*/__init__.py"):
            self.assertRegex(table, rf"`(kubetwist/)?{path.parent.name}/`")

    def test_gates(self) -> None:
        """The table of feature gates has each gate of 1.31 to 1.37, with its readers and its effect."""
        self.assertIn("<!-- feature gates -->", page("feature-gates.md"))
        notes = list(csv.DictReader(page("featuregates.csv").splitlines()))
        names = [note["gate"] for note in notes]
        existing = {name for minor in range(31, 38) for name, _ in FeatureGates((1, minor)).existing()}
        self.assertEqual(names, sorted(existing - {"AllAlpha", "AllBeta"}))
        components = {"API server", "controllers", "scheduler", "kubelet", "kube-proxy", "clients", "all components"}
        for note in notes:
            self.assertLessEqual(set(note["readers"].split(", ")), components, note)
            self.assertRegex(note["effect"], r"\A[A-Za-z].*\.\Z")

    def test_flags(self) -> None:
        """Flags in pages exist."""
        known = {flag.name for flag in FLAGS}
        for options in (
            backup.Options,
            doctor.Options,
            restore.Options,
            migrate.Options,
            plugin.Options,
            ExtensionOptions,
        ):
            known |= {flag.name for flag in options.flags}
        known |= {name for command in COMMANDS.values() for name in option_names(load_command(command))}
        named: set[str] = set()
        for path in DOCS.glob("*.md"):
            named |= set(FLAG.findall(page(path.name)))
        self.assertLessEqual(named - known, set(OTHERS.split()))

    def test_runbooks(self) -> None:
        """Each alert has a runbook with all parts and commands, and each runbook an alert."""
        alerts: dict[str, None] = {}
        for path in (TESTS.parent / "deploy" / "prometheus").glob("*.rules.yaml"):
            alerts |= dict.fromkeys(re.findall(r"^ +- alert: (\w+)$", path.read_text("utf-8"), re.MULTILINE))
        if not alerts:
            raise SkipTest("the rules are not here")
        sections = re.split(r"^## ", page("runbooks.md"), flags=re.MULTILINE)[1:]
        self.assertEqual(sorted(one.partition("\n")[0] for one in sections), sorted(alerts))
        for section in sections:
            for part in ("**Meaning.** ", "**Impact.** ", "**Remedy.** ", "```sh\n"):
                self.assertIn(part, section)

    def test_doctor(self) -> None:
        """The page of the diagnosis lists the identifiers of all findings."""
        listed = set(re.findall(r"`([a-z][a-z-]+(?:/[a-z-]+)?)`", page("doctor.md").partition("## Checks")[2]))
        literals = set()
        for path in Path(diagnosis.__file__).parent.glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    literals.add(node.value)
        areas = "flags|weak|versions|plugins|limits|clock|data-directory|disk|store|etcd|server"
        identifiers = {one for one in literals if re.fullmatch(rf"({areas})/[a-z-]+|weak|versions|plugins", one)}
        self.assertEqual({one for one in listed if not one.startswith("certificates/")}, identifiers)

    def test_limited_flags(self) -> None:
        """The page of flags lists each flag that does less than in kube-apiserver, with what it does and a reason."""
        rows = re.findall(
            r"^\| `--([a-z0-9-]+)` \| (refused|some values|partly|no effect) \| (.{8,}) \|$",
            page("flags.md").partition("## Flags that do less")[2].partition("\n## ")[0],
            re.MULTILINE,
        )
        limited = limited_flags(FLAGS)
        self.assertEqual(
            [(name, support) for name, support, _ in rows],
            [(name, limited[name].support.value) for name in sorted(limited)],
        )
