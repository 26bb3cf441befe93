"""Tests for L{kubetwist.resources.servedresources}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersion
from kubetwist.resources.servedresources import MergedServedResources, Priority, ServedResources

from .installedfake import APPS, CORE, DEPLOYMENTS, PODS, SCALE, custom, installed

LAMPS = GroupVersion("lamps.example.com", "v1")


class ServedResourcesTests(SynchronousTestCase):
    """Tests for L{ServedResources}."""

    def test_order_of_resources(self) -> None:
        """Resources are listed by name, with their subresources behind them, however they came."""
        groups = installed()
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
        """A resource that is added again takes the place of the one before."""
        groups = installed()
        groups.add(DEPLOYMENTS)
        self.assertEqual(len(groups.resources(APPS)), 2)

    def test_order_of_groups(self) -> None:
        """Built-in groups come by their priority, and their versions by theirs; others follow by name."""
        groups = installed()
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

    def test_priority_of_its_own(self) -> None:
        """Whoever brings a group can say where it stands."""
        groups = installed()
        groups.set_group_version(LAMPS, [custom(*LAMPS)], Priority(17900, 1))
        self.assertEqual([one.group for one in groups.group_versions()][:3], ["", "lamps.example.com", "apps"])

    def test_remove(self) -> None:
        """What is removed is gone, and removing what is not there changes nothing."""
        groups = installed()
        groups.remove_group_version(APPS)
        self.assertEqual((groups.versions("apps"), list(groups.resources(APPS))), ([], []))
        generation = groups.generation
        groups.remove_group_version(APPS)
        self.assertEqual(groups.generation, generation)

    def test_listeners(self) -> None:
        """Listeners hear of every change until they have had enough."""
        groups = installed()
        heard: list[int] = []
        stop = groups.subscribe(lambda: heard.append(groups.generation))
        groups.add(custom(*LAMPS))
        groups.remove_group_version(LAMPS)
        stop()
        groups.add(custom(*LAMPS))
        self.assertEqual(len(set(heard)), 2)


class MergedGroupsTests(SynchronousTestCase):
    """Tests for L{MergedServedResources}."""

    def test_merged(self) -> None:
        """The groups of all servers are shown, in one order; of what two have the first is shown."""
        front, back = ServedResources(), installed()
        front.set_group_version(LAMPS, [custom(*LAMPS)], Priority(17900, 1))
        front.set_group_version(CORE, [PODS])
        merged = MergedServedResources([front, back])
        self.assertEqual([one.group for one in merged.group_versions()][:3], ["", "lamps.example.com", "apps"])
        self.assertEqual([one.name for one in merged.resources(CORE)], ["pods"])
        self.assertEqual([one.name for one in merged.resources(APPS)], ["deployments", "deployments/scale"])
        self.assertEqual(merged.versions("autoscaling"), ["v2", "v1"])

    def test_generation(self) -> None:
        """A change in any server is a change of the whole."""
        front, back = ServedResources(), installed()
        merged = MergedServedResources([front, back])
        before = merged.generation
        back.remove_group_version(APPS)
        self.assertNotEqual(merged.generation, before)
