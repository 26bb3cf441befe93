"""Tests of plugins that depend on the release."""

from __future__ import annotations

from kubetwist.admission_plugins.jobvalidation import JobValidation
from kubetwist.admission_plugins.nodedeclaredfeaturevalidator import NodeDeclaredFeatureValidator
from kubetwist.admission_plugins.podresizevalidator import PodResizeValidator
from tests.admission_plugins.fakes import Context, PluginTestCase


class ReleaseTests(PluginTestCase):
    """Tests of plugins that depend on the release."""

    def test_releases(self) -> None:
        """A plugin is inactive in releases without it."""
        for plugin, operation, active in (
            (PodResizeValidator, "UPDATE", ("1.36", "1.37")),
            (NodeDeclaredFeatureValidator, "UPDATE", ("1.36", "1.37")),
            (JobValidation, "UPDATE", ("1.36",)),
        ):
            for release in ("1.30", "1.36", "1.37"):
                request = plugin.configured(Context(release=release), None)
                self.assertEqual(request.handles(operation), release in active, (plugin, release))
