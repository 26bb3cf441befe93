"""Tests for L{PodGroupProtection}."""

from __future__ import annotations

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.podgroupprotection import PodGroupProtection
from kubetwist.interfaces import IMutatingAdmission, IValidatingAdmission
from tests.admission_plugins.fakes import Context, PluginTestCase, pod, write
from tests.admission_plugins.podgroups import GROUP, server


class ProtectionTests(PluginTestCase):
    """Tests for L{PodGroupProtection}."""

    plugin = PodGroupProtection()

    def test_finalizer(self) -> None:
        """A new group has a finalizer."""
        verifyObject(IMutatingAdmission, self.plugin)
        verifyObject(IValidatingAdmission, self.plugin)
        for resource, finalizer in (
            ("podgroups", "scheduling.k8s.io/podgroup-protection"),
            ("compositepodgroups", "scheduling.k8s.io/compositepodgroup-protection"),
        ):
            request = write({"metadata": {"name": "g", "finalizers": ["a/b"]}, "spec": {}}, f"{resource}.{GROUP}")
            self.assertEqual(self.admit_twice(self.plugin, request)["metadata"]["finalizers"], ["a/b", finalizer])
        self.assertNotIn("finalizers", self.admit(self.plugin, write(pod()))["metadata"])

    def test_deleted_parent(self) -> None:
        """New members of a deleted group are rejected; a missing group is not checked."""
        member = pod(schedulingGroup={"podGroupName": "g"})
        message = self.error_text(self.plugin, write(member, context=server("podgroups", "g", going=True)))
        self.assertEqual(message, 'cannot create Pod referencing PodGroup "g" because it is being deleted')
        self.validate(self.plugin, write(member, context=server("podgroups", "g")))
        self.validate(self.plugin, write(member))
        self.validate(self.plugin, write(pod()))
        part = {"metadata": {"name": "p"}, "spec": {"parentCompositePodGroupName": "g"}}
        context = server("compositepodgroups", "g", going=True)
        for resource, kind in (("podgroups", "PodGroup"), ("compositepodgroups", "CompositePodGroup")):
            self.assertEqual(
                self.error_text(self.plugin, write(part, f"{resource}.{GROUP}", context=context)),
                f'cannot create {kind} referencing CompositePodGroup "g" because it is being deleted',
            )


class ReleaseTests(PluginTestCase):
    """Tests for L{PodGroupProtection} in other releases."""

    def test_deleted_parent_by_release(self) -> None:
        """New members of a deleted group are rejected from 1.37 on."""
        member = pod(schedulingGroup={"podGroupName": "g"})
        request = write(member, context=server("podgroups", "g", going=True))
        self.validate(PodGroupProtection.configured(Context(release="1.36"), None), request)
        self.error_text(PodGroupProtection.configured(Context(release="1.37"), None), request)
