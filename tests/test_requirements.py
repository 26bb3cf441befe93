"""Tests of the requirements in pyproject.toml: lower bounds, and the constraints files that are tested in CI."""

from __future__ import annotations

import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from twisted.trial.unittest import SynchronousTestCase

from tests.checkout import CHECKOUT

#: The extras that users install.
EXTRAS = ("etcd", "kms", "tracing")


def requirements() -> list[Requirement]:
    """Return the run-time requirements and the requirements of the extras."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
    texts = [*project["dependencies"]]
    for extra in EXTRAS:
        texts += project["optional-dependencies"][extra]
    return [Requirement(text) for text in texts]


def constraints(name: str) -> dict[str, str]:
    """Return the version of each package in a constraints file."""
    versions = {}
    for line in (CHECKOUT / name).read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            package, _, version = line.partition("==")
            versions[canonicalize_name(package)] = version
    return versions


class RequirementsTests(SynchronousTestCase):
    """The requirements of the package."""

    def test_lower_bounds(self) -> None:
        """Each run-time requirement has a lower bound, and the file that CI installs lists exactly these bounds."""
        bounds = {}
        for requirement in requirements():
            bounds[canonicalize_name(requirement.name)] = [
                specifier.version for specifier in requirement.specifier if specifier.operator == ">="
            ]
        self.assertEqual(bounds, {name: [version] for name, version in constraints(".ci/lowest.txt").items()})

    def test_constraints(self) -> None:
        """constraints.txt has a version of each run-time requirement, within its bounds."""
        versions = constraints("constraints.txt")
        for requirement in requirements():
            version = versions.get(canonicalize_name(requirement.name))
            self.assertTrue(version and requirement.specifier.contains(version), f"{requirement}: {version}")
