"""Tests for L{kubetwist.cli.plugintemplate}."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from kubetwist.cli.plugintemplate import (
    KINDS,
    MAX_NAME_LENGTH,
    TemplateError,
    check_name,
    render_package,
    write_package,
)


def run(folder: Path, *arguments: str) -> str:
    """Run Python in a folder, and return its output; fail with it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]), "PIP_NO_INDEX": "1"}
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    if done.returncode:
        raise AssertionError(done.stdout + done.stderr)
    return done.stdout + done.stderr


class NameTests(SynchronousTestCase):
    """L{check_name}."""

    def test_packages(self) -> None:
        """The package has the name of the project in lower case, with underscores."""
        for name, package in (("team-labels", "team_labels"), ("Team.Labels", "team_labels"), ("a", "a"), ("a1", "a1")):
            self.assertEqual(check_name(name), package)

    def test_refused(self) -> None:
        """Names that are no names of projects or packages, or would hide a package, are refused."""
        for name in ("", "-a", "a/b", "../a", "a b", "a\n", "1a", "class", "json", "kubetwist", "ä", "a" * 41, "a-"):
            self.assertRaises(TemplateError, check_name, name)

    @given(st.text("aB1.-_/ \n", max_size=6))
    def test_any(self, name: str) -> None:
        """A name is refused, or gives an identifier."""
        try:
            self.assertTrue(check_name(name).isidentifier())
        except TemplateError as error:
            self.assertNotIn("\n", str(error))


class PackageTests(SynchronousTestCase):
    """L{render_package} and L{write_package}."""

    def test_rendered(self) -> None:
        """Each package has a drop-in module with its plugins, and tests; modules compile, and have no long lines."""
        package = "abcdefghij_klmnopqrst_uvwxyzabcd_efghijk"
        self.assertEqual(len(package), MAX_NAME_LENGTH)
        for kinds in (*((kind,) for kind in KINDS), tuple(KINDS)):
            rendered = render_package(package, kinds)
            self.assertIn(f"twisted/plugins/{package}_plugins.py", rendered)
            for kind in kinds:
                self.assertIn(f"{package}/{kind}.py", rendered)
                self.assertIn(f"{package}/test/test_{kind}.py", rendered)
            for path, text in rendered.items():
                if path.endswith(".py"):
                    compile(text, path, "exec")
                self.assertNotIn("$", text, path)
                self.assertTrue(text.endswith("\n") and not text.endswith("\n\n"), path)
                if path.endswith(".py"):
                    self.assertEqual([line for line in text.split("\n") if len(line) > 120], [])

    def test_refused(self) -> None:
        """Unknown kinds are refused, and so are no kinds at all."""
        for kinds in ((), ("admission", "scheduler")):
            error = self.assertRaises(TemplateError, render_package, "a", kinds)
            self.assertIn("unknown kind", str(error))

    def test_existing(self) -> None:
        """Nothing is written to a folder that exists, or below one that does not exist."""
        folder = Path(self.mktemp())
        folder.mkdir()
        error = self.assertRaises(TemplateError, write_package, "a", ["admission"], folder)
        self.assertEqual(str(error), f"{folder} exists: nothing was written")
        self.assertEqual(list(folder.iterdir()), [])
        error = self.assertRaises(TemplateError, write_package, "a", ["admission"], folder / "x" / "y")
        self.assertIn("No such file or directory", str(error))

    def test_packages_work(self) -> None:
        """The tests of a package of every kind pass, and Twisted finds its plugins."""
        folder = Path(self.mktemp()).resolve()
        written = write_package("team-labels", list(KINDS), folder)
        self.assertEqual(sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()), written)
        self.assertIn("PASSED", run(folder, "-m", "twisted.trial", "team_labels"))
        found = run(
            folder,
            "-c",
            "from twisted.plugin import getPlugins\n"
            "from kubetwist.interfaces import IAuthorizerFactory, IConversionPlugin, IControllerFactory\n"
            "for interface in (IAuthorizerFactory, IConversionPlugin, IControllerFactory):\n"
            "    print(*[one.name for one in getPlugins(interface)])",
        )
        for name in ("TeamLabels", "team-labels", "team-labels-controller"):
            self.assertIn(name, found.split())

    def test_wheel(self) -> None:
        """The wheel of a package contains the modules and the drop-in module."""
        if find_spec("setuptools") is None or find_spec("pip") is None:
            raise SkipTest("setuptools or pip is not installed")
        folder = Path(self.mktemp()).resolve()
        write_package("team-labels", ["admission"], folder)
        options = ("--no-deps", "--no-build-isolation", "--quiet", "--disable-pip-version-check", "--wheel-dir=dist")
        run(folder, "-m", "pip", "wheel", *options, ".")
        (wheel,) = (folder / "dist").glob("*.whl")
        with ZipFile(wheel) as archive:
            names = archive.namelist()
        for path in (
            "twisted/plugins/team_labels_plugins.py",
            "team_labels/admission.py",
            "team_labels/test/__init__.py",
        ):
            self.assertIn(path, names)
