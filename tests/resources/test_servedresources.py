"""Tests for L{kubetwist.resources.servedresources}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersion
from kubetwist.resources.servedresources import MergedServedResources, Priority, ServedResources

from .fakeservedresources import APPS, CORE, DEPLOYMENTS, PODS, SCALE, custom, served_resources

LAMPS = GroupVersion("lamps.example.com", "v1")


class ServedResourcesTests(SynchronousTestCase):
    """L{ServedResources}."""

    def test_order_of_resources(self) -> None:
        """
        Resources are sorted by name, with their subresources after them, regardless of the order of their addition.
        """
        groups = served_resources()
        self.assertEqual([one.name for one in groups.resources(APPS)], ["deployments", "deployments/scale"])
        self.assertEqual(
            [one.name for one in groups.resources(CORE)],
            ["namespaces", "pods", "pods/exec", "pods/log", "pods/proxy"],
        )

    def test_order_as_given(self) -> None:
        """A version that is set as a whole keeps its order."""
        groups = ServedResources()
        groups.set_group_version(APPS, [SCALE, DEPLOYMENTS])
        self.assertEqual([one.name for one in groups.resources(APPS)], ["deployments/scale", "deployments"])

    def test_add_again(self) -> None:
        """A resource that is added again replaces the previous one."""
        groups = served_resources()
        groups.add(DEPLOYMENTS)
        self.assertEqual(len(groups.resources(APPS)), 2)

    def test_order_of_groups(self) -> None:
        """Built-in groups and versions are sorted by their priorities; all further ones follow by name."""
        groups = served_resources()
        for group in ("b.example.com", "a.example.com"):
            for version in ("v1alpha1", "v1", "v2beta1", "odd"):
                groups.add(custom(group, version))
        self.assertEqual(
            [str(one) for one in groups.group_versions()],
            [
                "v1",
                "apps/v1",
                "autoscaling/v2",
                "autoscaling/v1",
                *(f"a.example.com/{version}" for version in ("v1", "v2beta1", "v1alpha1", "odd")),
                *(f"b.example.com/{version}" for version in ("v1", "v2beta1", "v1alpha1", "odd")),
            ],
        )
        self.assertEqual(groups.versions("autoscaling"), ["v2", "v1"])
        self.assertEqual(groups.versions("nowhere"), [])

    def test_priority_of_group(self) -> None:
        """The priority of a group that is not built in can be set."""
        groups = served_resources()
        groups.set_group_version(LAMPS, [custom(*LAMPS)], Priority(17900, 1))
        self.assertEqual([one.group for one in groups.group_versions()][:3], ["", "lamps.example.com", "apps"])

    def test_remove(self) -> None:
        """A removed version is not listed, and removing a missing version changes nothing."""
        groups = served_resources()
        groups.remove_group_version(APPS)
        self.assertEqual((groups.versions("apps"), list(groups.resources(APPS))), ([], []))
        generation = groups.generation
        groups.remove_group_version(APPS)
        self.assertEqual(groups.generation, generation)

    def test_listeners(self) -> None:
        """Listeners are called after every change until they unsubscribe."""
        groups = served_resources()
        heard: list[int] = []
        stop = groups.subscribe(lambda: heard.append(groups.generation))
        groups.add(custom(*LAMPS))
        groups.remove_group_version(LAMPS)
        stop()
        groups.add(custom(*LAMPS))
        self.assertEqual(len(set(heard)), 2)


class MergedGroupsTests(SynchronousTestCase):
    """L{MergedServedResources}."""

    def test_merged(self) -> None:
        """The groups of all servers are merged in one order; of duplicate versions the first is used."""
        front, back = ServedResources(), served_resources()
        front.set_group_version(LAMPS, [custom(*LAMPS)], Priority(17900, 1))
        front.set_group_version(CORE, [PODS])
        merged = MergedServedResources([front, back])
        self.assertEqual([one.group for one in merged.group_versions()][:3], ["", "lamps.example.com", "apps"])
        self.assertEqual([one.name for one in merged.resources(CORE)], ["pods"])
        self.assertEqual([one.name for one in merged.resources(APPS)], ["deployments", "deployments/scale"])
        self.assertEqual(merged.versions("autoscaling"), ["v2", "v1"])

    def test_generation(self) -> None:
        """A change of any server changes the generation."""
        front, back = ServedResources(), served_resources()
        merged = MergedServedResources([front, back])
        before = merged.generation
        back.remove_group_version(APPS)
        self.assertNotEqual(merged.generation, before)
