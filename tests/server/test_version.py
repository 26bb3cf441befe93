"""Tests of L{kubetwist.server.version}."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import FeatureGates
from kubetwist.server.version import git_version, version_document


class VersionTests(SynchronousTestCase):
    """L{version_document}."""

    def test_document(self) -> None:
        """The document has the reference's format."""
        document: dict[str, Any] = json.loads(json.dumps(version_document(FeatureGates())))
        self.assertEqual(document["gitVersion"], "v1.36.2")
        self.assertEqual((document["major"], document["minor"]), ("1", "36"))
        self.assertEqual((document["emulationMinor"], document["minCompatibilityMinor"]), ("36", "35"))
        self.assertEqual(git_version("1.30"), "v1.30.0")

    def test_release(self) -> None:
        """The document names the compared patch release, and since 1.33 the versions of emulation."""
        self.assertEqual(git_version("1.33"), "v1.33.13")
        self.assertEqual(version_document(FeatureGates((1, 33)))["minCompatibilityMinor"], "32")
        self.assertNotIn("emulationMinor", version_document(FeatureGates((1, 32))))

    def test_emulation(self) -> None:
        """The emulated version and the minimum compatibility version are named."""
        document = version_document(FeatureGates((1, 36), emulated=(1, 35), minimum=(1, 34)))
        self.assertEqual(
            [document[name] for name in ("minor", "emulationMinor", "minCompatibilityMinor")], ["36", "35", "34"]
        )
