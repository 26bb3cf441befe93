"""Tests for L{PodGroupWorkloadExists}."""

from __future__ import annotations

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.podgroupworkloadexists import PodGroupWorkloadExists
from kubetwist.interfaces import IValidatingAdmission
from tests.admission_plugins.fakes import Context, PluginTestCase, write
from tests.admission_plugins.podgroups import GROUP, server

PODGROUPS = f"podgroups.{GROUP}"


class WorkloadTests(PluginTestCase):
    """Tests for L{PodGroupWorkloadExists}."""

    plugin = PodGroupWorkloadExists()

    def test_workload(self) -> None:
        """The Workload of a PodGroup must exist, must not be deleted, and must have the template."""
        verifyObject(IValidatingAdmission, self.plugin)
        reference = {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}}
        group = {"metadata": {"name": "g"}, "spec": {"podGroupTemplateRef": reference}}
        for context, message in (
            (Context(), 'Workload "w" not found'),
            (server("workloads", "w", going=True), 'Workload "w" is being deleted'),
            (
                server("workloads", "w", podGroupTemplates=[{"name": "u"}]),
                'PodGroupTemplate "t" not found in Workload "w"',
            ),
        ):
            self.assertEqual(
                self.error_text(self.plugin, write(group, PODGROUPS, context=context)),
                f"PodGroup rejected: {message}",
            )
        self.validate(
            self.plugin, write(group, PODGROUPS, context=server("workloads", "w", podGroupTemplates=[{"name": "t"}]))
        )

    def test_no_workload(self) -> None:
        """A PodGroup without a Workload is admitted."""
        self.validate(self.plugin, write({"metadata": {"name": "g"}, "spec": {}}, PODGROUPS))
