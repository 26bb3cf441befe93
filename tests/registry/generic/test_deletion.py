"""Tests of L{kubetwist.registry.generic.deletion}."""

from datetime import UTC, datetime

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.api.options import DeleteOptions
from kubetwist.api.resource import GroupKind
from kubetwist.registry.generic import deletion
from kubetwist.registry.generic.strategy import Strategy

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Graceful(Strategy):
    """A strategy with a default grace period of 30 seconds."""

    def grace_period(self, obj, options):
        """Return the requested grace period, or 30 seconds."""
        return 30 if options.grace_period_seconds is None else options.grace_period_seconds


class BeginGraceTests(SynchronousTestCase):
    """Tests of L{deletion.before_delete}."""

    def test_kinds_without_grace(self) -> None:
        """Kinds without a grace period are not modified."""
        obj = {"metadata": {"name": "a"}}
        self.assertEqual(deletion.before_delete(Strategy(), obj, DeleteOptions(), NOW), (False, False, None))
        self.assertEqual(obj, {"metadata": {"name": "a"}})

    def test_first_deletion(self) -> None:
        """The first DELETE sets the deletion timestamp, and increments the generation."""
        obj = {"metadata": {"name": "a", "generation": 4}}
        self.assertEqual(deletion.before_delete(Graceful(), obj, DeleteOptions(), NOW), (True, False, 30))
        self.assertEqual(
            obj["metadata"],
            {
                "name": "a",
                "generation": 5,
                "deletionTimestamp": "2026-01-02T03:04:35Z",
                "deletionGracePeriodSeconds": 30,
            },
        )

    def ending(self):
        """Return an object that is deleted half a minute after L{NOW}."""
        meta = {"name": "a", "deletionTimestamp": "2026-01-02T03:04:35Z", "deletionGracePeriodSeconds": 30}
        return {"metadata": meta}

    def test_grace_only_shrinks(self) -> None:
        """A later DELETE cannot extend the grace period."""
        for options in (
            DeleteOptions(),
            DeleteOptions(grace_period_seconds=30),
            DeleteOptions(grace_period_seconds=60),
        ):
            obj = self.ending()
            self.assertEqual(deletion.before_delete(Graceful(), obj, options, NOW), (False, True, None))
            self.assertEqual(obj, self.ending())

    def test_grace_shrinks(self) -> None:
        """A later DELETE can shorten the grace period, which starts at the first DELETE."""
        obj = self.ending()
        options = DeleteOptions(grace_period_seconds=10)
        self.assertEqual(deletion.before_delete(Graceful(), obj, options, NOW), (True, False, 10))
        self.assertEqual(obj["metadata"]["deletionTimestamp"], "2026-01-02T03:04:15Z")

    def test_negative_grace_is_one_second(self) -> None:
        """A negative grace period is one second."""
        obj = self.ending()
        options = DeleteOptions(grace_period_seconds=-5)
        self.assertEqual(deletion.before_delete(Graceful(), obj, options, NOW), (True, False, 1))


class PropagationTests(SynchronousTestCase):
    """Tests of L{deletion.deletion_finalizers_for_garbage_collection}."""

    def wanted(self, present, **options):
        """Return the finalizers after a DELETE."""
        return deletion.deletion_finalizers_for_garbage_collection(
            Strategy(), {"finalizers": present}, DeleteOptions(**options)
        )

    def test_policies(self) -> None:
        """The policies Orphan and Foreground have a finalizer; Background has none."""
        self.assertEqual(self.wanted([], propagation_policy="Orphan"), ["orphan"])
        self.assertEqual(self.wanted([], propagation_policy="Foreground"), ["foregroundDeletion"])
        self.assertIsNone(self.wanted([], propagation_policy="Background"))
        self.assertEqual(self.wanted([], orphan_dependents=True), ["orphan"])

    def test_a_policy_replaces_another(self) -> None:
        """The finalizer of an earlier policy is replaced; other finalizers stay."""
        self.assertEqual(self.wanted(["a/b", "orphan"], propagation_policy="Foreground"), ["a/b", "foregroundDeletion"])
        self.assertEqual(self.wanted(["a/b", "orphan"], propagation_policy="Background"), ["a/b"])

    def test_without_policy(self) -> None:
        """Without a policy, an existing finalizer stays."""
        self.assertIsNone(self.wanted(["orphan"]))
        self.assertIsNone(self.wanted(["foregroundDeletion"]))

    def test_default_of_the_kind(self) -> None:
        """Some kinds orphan their dependents by default."""
        strategy = Strategy()
        strategy.default_garbage_collection = "orphan"
        self.assertEqual(deletion.deletion_finalizers_for_garbage_collection(strategy, {}, DeleteOptions()), ["orphan"])


class PreconditionTests(SynchronousTestCase):
    """Tests of L{deletion.check_preconditions}."""

    def test_other_uid(self) -> None:
        """A DELETE with another uid is rejected."""
        error = self.assertRaises(
            APIStatusError,
            deletion.check_preconditions,
            DeleteOptions(precondition_uid="1"),
            {"uid": "2", "resourceVersion": "7"},
            GroupKind("", "Secret"),
            "s",
        )
        self.assertEqual((error.code, error.details), (409, {"name": "s", "kind": "Secret"}))

    def test_met(self) -> None:
        """A DELETE whose preconditions are met is accepted."""
        options = DeleteOptions(precondition_uid="2", precondition_resource_version="7")
        meta = {"uid": "2", "resourceVersion": "7"}
        self.assertIsNone(deletion.check_preconditions(options, meta, GroupKind("", "Secret"), "s"))


class EndTests(SynchronousTestCase):
    """Tests of L{deletion.should_delete_during_update}."""

    def test_last_finalizer(self) -> None:
        """An update that removes the last finalizer of a deleted object removes the object."""
        old = {"metadata": {"deletionTimestamp": "2026-01-02T03:04:05Z", "finalizers": ["a/b"]}}
        self.assertTrue(deletion.should_delete_during_update({"metadata": {}}, old))
        self.assertFalse(deletion.should_delete_during_update({"metadata": {"finalizers": ["a/c"]}}, old))
        self.assertFalse(deletion.should_delete_during_update({"metadata": {}}, {"metadata": {"finalizers": ["a/b"]}}))

    def test_remaining_grace_period(self) -> None:
        """An update does not remove an object during its grace period."""
        meta = {"deletionTimestamp": "2026-01-02T03:04:05Z", "deletionGracePeriodSeconds": 30}
        self.assertFalse(deletion.should_delete_during_update({"metadata": {}}, {"metadata": meta}))
