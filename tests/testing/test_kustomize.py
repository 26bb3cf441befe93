"""Tests for L{kubetwist.testing._kustomize}, with programs that the tests write."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.testing import _kustomize
from kubetwist.testing.manifests import LoadError, Manifest, read_sources

#: Prints an object whose name is the arguments.
PRINTS = "#!/bin/sh\necho \"{apiVersion: v1, kind: ConfigMap, metadata: {name: '$*'}}\"\n"


class BuildTests(SynchronousTestCase):
    """Kustomize directories."""

    def setUp(self) -> None:
        """Create a Kustomize directory, and an empty directory as the path of programs."""
        self.folder = Path(self.mktemp()).absolute()
        for name in ("programs", "app"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "app" / "kustomization.yaml").write_text("resources: [a.yaml]\n")
        (self.folder / "app" / "a.yaml").write_text("this is not read")
        self.patch(os, "environ", {**os.environ, "PATH": f"{self.folder / 'programs'}"})
        self.app = str(self.folder / "app")

    def install(self, name: str, script: str) -> None:
        """Put a program on the path."""
        program = self.folder / "programs" / name
        program.write_text(script)
        program.chmod(0o755)

    def read(self, path: str) -> str:
        """Return the name of the only object."""
        (manifest,) = read_sources(path)
        assert isinstance(manifest, Manifest)
        self.assertIn("kustomize build", manifest.where)
        name: str = manifest.obj["metadata"]["name"]
        return name

    def test_programs(self) -> None:
        """A folder with a kustomization is built by kubectl, or by kustomize if that is on the path."""
        self.install("kubectl", PRINTS)
        self.assertEqual(self.read(self.app), f"kustomize {self.app}")
        self.install("kustomize", PRINTS)
        self.assertEqual(self.read(self.app), f"build {self.app}")
        self.assertEqual(self.read(f"{self.app}/kustomization.yaml"), f"build {self.app}")

    def test_missing(self) -> None:
        """Without these programs the error names them."""
        with self.assertRaisesRegex(LoadError, "app is a Kustomize directory, and neither kustomize nor kubectl is on"):
            read_sources(self.app)

    def test_failing(self) -> None:
        """The error of a failed build has the output of the program; a build has a timeout."""
        self.install("kustomize", "#!/bin/sh\necho no such resource >&2\nexit 3\n")
        with self.assertRaisesRegex(LoadError, "kustomize build .*app: no such resource"):
            read_sources(self.app)
        self.install("kustomize", "#!/bin/sh\nexit 3\n")
        with self.assertRaisesRegex(LoadError, "kustomize build .*app: exit code 3"):
            read_sources(self.app)
        self.install("kustomize", "#!/bin/sh\nexec /bin/sleep 600\n")
        self.patch(_kustomize, "BUILD_TIMEOUT", 0.05)
        with self.assertRaisesRegex(LoadError, "timeout"):
            read_sources(self.app)
