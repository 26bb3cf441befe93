"""Tests for the plugins that concern groups of pods: L{PodGroupProtection} and others."""

from __future__ import annotations

from typing import Any

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.jobvalidation import JobValidation
from kubetwist.admission_plugins.nodedeclaredfeaturevalidator import NodeDeclaredFeatureValidator
from kubetwist.admission_plugins.podgroupprotection import PodGroupProtection
from kubetwist.admission_plugins.podgroupworkloadexists import PodGroupWorkloadExists
from kubetwist.admission_plugins.podresizevalidator import PodResizeValidator
from kubetwist.api.resource import JSONObject
from kubetwist.interfaces import IMutatingAdmission, IValidatingAdmission
from tests.admission_plugins.fakes import Context, PluginTestCase, pod, write

GROUP = "scheduling.k8s.io"
PODGROUPS = f"podgroups.{GROUP}"


def server(resource: str, name: str, *, going: bool = False, uid: str = "", **spec: Any) -> Context:
    """A server with one object."""
    meta: JSONObject = {"name": name, "namespace": "ns"}
    if going:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if uid:
        meta["ownerReferences"] = [{"uid": "other"}, {"uid": uid, "controller": True}]
    context = Context()
    context.add(GROUP, resource, {"metadata": meta, "spec": spec})
    return context


class ProtectionTests(PluginTestCase):
    """Tests for L{PodGroupProtection}."""

    plugin = PodGroupProtection()

    def test_finalizer(self) -> None:
        """A new group waits for its pods when it is deleted."""
        verifyObject(IMutatingAdmission, self.plugin)
        verifyObject(IValidatingAdmission, self.plugin)
        for resource, finalizer in (
            ("podgroups", "scheduling.k8s.io/podgroup-protection"),
            ("compositepodgroups", "scheduling.k8s.io/compositepodgroup-protection"),
        ):
            made = write({"metadata": {"name": "g", "finalizers": ["a/b"]}, "spec": {}}, f"{resource}.{GROUP}")
            self.assertEqual(self.admit_twice(self.plugin, made)["metadata"]["finalizers"], ["a/b", finalizer])
        self.assertNotIn("finalizers", self.admit(self.plugin, write(pod()))["metadata"])

    def test_going(self) -> None:
        """Nothing new comes into a group that is deleted; one that is not there is nobody's business here."""
        member = pod(schedulingGroup={"podGroupName": "g"})
        why = self.why(self.plugin, write(member, context=server("podgroups", "g", going=True)))
        self.assertEqual(why, 'cannot create Pod referencing PodGroup "g" because it is being deleted')
        self.validate(self.plugin, write(member, context=server("podgroups", "g")))
        self.validate(self.plugin, write(member))
        self.validate(self.plugin, write(pod()))
        part = {"metadata": {"name": "p"}, "spec": {"parentCompositePodGroupName": "g"}}
        context = server("compositepodgroups", "g", going=True)
        for resource, kind in (("podgroups", "PodGroup"), ("compositepodgroups", "CompositePodGroup")):
            self.assertEqual(
                self.why(self.plugin, write(part, f"{resource}.{GROUP}", context=context)),
                f'cannot create {kind} referencing CompositePodGroup "g" because it is being deleted',
            )


class ReleaseTests(PluginTestCase):
    """Plugins that not every release has."""

    def test_releases(self) -> None:
        """A plugin does nothing where the release that the server stands for does not have it."""
        for plugin, operation, active in (
            (PodResizeValidator, "UPDATE", ("1.36", "1.37")),
            (NodeDeclaredFeatureValidator, "UPDATE", ("1.36", "1.37")),
            (JobValidation, "UPDATE", ("1.36",)),
        ):
            for release in ("1.30", "1.36", "1.37"):
                made = plugin.configured(Context(release=release), None)
                self.assertEqual(made.handles(operation), release in active, (plugin, release))

    def test_closed_groups(self) -> None:
        """That nothing new comes into a group that is deleted is from 1.37 on."""
        member = pod(schedulingGroup={"podGroupName": "g"})
        made = write(member, context=server("podgroups", "g", going=True))
        self.validate(PodGroupProtection.configured(Context(release="1.36"), None), made)
        self.why(PodGroupProtection.configured(Context(release="1.37"), None), made)


class WorkloadTests(PluginTestCase):
    """Tests for L{PodGroupWorkloadExists}."""

    plugin = PodGroupWorkloadExists()

    def test_workload(self) -> None:
        """A group of a workload needs it there, not on its way out, and with the template."""
        verifyObject(IValidatingAdmission, self.plugin)
        reference = {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}}
        group = {"metadata": {"name": "g"}, "spec": {"podGroupTemplateRef": reference}}
        for context, why in (
            (Context(), 'Workload "w" not found'),
            (server("workloads", "w", going=True), 'Workload "w" is being deleted'),
            (
                server("workloads", "w", podGroupTemplates=[{"name": "u"}]),
                'PodGroupTemplate "t" not found in Workload "w"',
            ),
        ):
            self.assertEqual(
                self.why(self.plugin, write(group, PODGROUPS, context=context)), f"PodGroup rejected: {why}"
            )
        self.validate(
            self.plugin, write(group, PODGROUPS, context=server("workloads", "w", podGroupTemplates=[{"name": "t"}]))
        )

    def test_alone(self) -> None:
        """A group of no workload needs none."""
        self.validate(self.plugin, write({"metadata": {"name": "g"}, "spec": {}}, PODGROUPS))


class JobTests(PluginTestCase):
    """Tests for L{JobValidation}."""

    plugin = JobValidation()

    def job(self, parallelism: int, group: str = "") -> JSONObject:
        """A job."""
        spec = {"schedulingGroup": {"podGroupName": group}} if group else {}
        return {
            "metadata": {"name": "j", "uid": "u"},
            "spec": {"parallelism": parallelism, "template": {"spec": spec}},
        }

    def test_gang(self) -> None:
        """A job whose pods are scheduled all or none keeps their number, whoever made their group."""
        verifyObject(IValidatingAdmission, self.plugin)
        gang = {"schedulingPolicy": {"gang": {"minCount": 2}}}
        for group, owner in (("g", ""), ("", "u")):
            context = server("podgroups", "g", uid=owner, **gang)
            made = write(self.job(3, group), "jobs.batch", "UPDATE", old=self.job(2, group), context=context)
            self.assertEqual(
                self.why(self.plugin, made),
                'cannot change parallelism for a Job referencing gang-scheduled PodGroup "g"',
            )
            same = write(self.job(2, group), "jobs.batch", "UPDATE", old=self.job(2, group), context=context)
            self.validate(self.plugin, same)

    def test_free(self) -> None:
        """Others can change it: those without a group, with one that is no gang, or of another job."""
        for context in (
            Context(),
            server("podgroups", "g", uid="u", schedulingPolicy={"basic": {}}),
            server("podgroups", "g", uid="v", schedulingPolicy={"gang": {}}),
        ):
            for group in ("", "gone"):
                made = write(self.job(3, group), "jobs.batch", "UPDATE", old=self.job(2, group), context=context)
                self.validate(self.plugin, made)
