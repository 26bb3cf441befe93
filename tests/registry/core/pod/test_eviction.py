"""Tests for L{kubetwist.registry.core.pod.eviction}."""

from __future__ import annotations

from typing import Any

from zope.interface.verify import verifyObject

from kubetwist.api.errors import APIStatusError
from kubetwist.api.options import CreateOptions
from kubetwist.interfaces import INamedCreator
from kubetwist.registry.core.pod.eviction import PodEviction, check_and_decrement
from kubetwist.registry.generic.parts import status_rules
from tests.registry.storetools import StoreTestCase
from tests.resources.server import pod

READY = [{"type": "Ready", "status": "True"}]


class EvictionTests(StoreTestCase):
    """C{pods/eviction}."""

    resources = ("pods", "poddisruptionbudgets")

    def setUp(self) -> None:
        """A running pod."""
        super().setUp()
        self.pods, self.budgets = self.store("pods"), self.store("poddisruptionbudgets", "policy")
        self.eviction = PodEviction(self.pods, self.budgets)
        verifyObject(INamedCreator, self.eviction)
        self.running("p")

    def running(self, name: str, app: str = "x", conditions: Any = READY) -> None:
        """Make a pod that runs, and is ready unless C{conditions} do not say so."""
        self.made(self.pods, pod(name, labels={"app": app}))
        status = {"phase": "Running", "conditions": list(conditions)}
        self.changed(self.pods, name, lambda obj: obj["status"].update(status), rules=status_rules(self.pods))

    def budget(self, name: str, allowed: int, **status: Any) -> None:
        """Make a budget that leaves so many disruptions."""
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
        self.made(self.budgets, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
        whole = {
            "disruptionsAllowed": allowed,
            "desiredHealthy": 1,
            "currentHealthy": 1 + allowed,
            "expectedPods": 2,
            "observedGeneration": 1,
            **status,
        }
        self.changed(self.budgets, name, lambda obj: obj.update(status=whole), rules=status_rules(self.budgets))

    def evict(self, name: str = "p", obj: Any = None, **options: Any) -> Any:
        """The call."""
        return self.eviction.create_named(
            self.scope, name, obj or {"metadata": {"name": name}}, CreateOptions(**options)
        )

    def test_no_budget(self) -> None:
        """A pod that no budget protects is deleted."""
        status = self.successResultOf(self.evict())
        self.assertEqual(status["code"], 201)
        self.assertIsNone(self.stored(self.pods, "p"))

    def test_spends(self) -> None:
        """An eviction takes one disruption from the budget, and notes the pod in it."""
        self.budget("b", 1)
        self.successResultOf(self.evict())
        status = self.stored(self.budgets, "b")["status"]
        self.assertEqual(status["disruptionsAllowed"], 0)
        self.assertEqual(list(status["disruptedPods"]), ["p"])
        self.running("q")
        error = self.refused(self.evict("q"))
        self.assertEqual((error.code, error.reason), (429, "TooManyRequests"))
        self.assertEqual(error.message, "Cannot evict pod as it would violate the pod's disruption budget.")
        self.assertIsNotNone(self.stored(self.pods, "q"))

    def test_owner(self) -> None:
        """It is the server that writes this."""
        self.budget("b", 1)
        owned: list[Any] = []
        self.patch(self.budgets, "update_managed_fields", lambda live, new, *who: owned.append((live, new, *who)))
        self.successResultOf(self.evict())
        ((live, new, *who),) = owned
        self.assertEqual(who, ["status", "kube-apiserver"])
        self.assertEqual((live["status"]["disruptionsAllowed"], new["status"]["disruptionsAllowed"]), (1, 0))

    def test_two_at_once(self) -> None:
        """Two evictions never share one disruption, however they overtake each other."""
        self.budget("b", 1)
        self.running("q")
        self.racing_backend(self.budgets).before.append(lambda: self.successResultOf(self.evict("q")))
        self.assertEqual(self.refused(self.evict("p")).code, 429)
        self.assertIsNone(self.stored(self.pods, "q"))
        self.assertIsNotNone(self.stored(self.pods, "p"))

    def test_stale_budget(self) -> None:
        """A budget that its controller has not seen yet has the client come again."""
        self.budget("b", 1, observedGeneration=0)
        error = self.refused(self.evict())
        self.assertEqual((error.code, error.retry_after), (429, 10))

    def test_why_not(self) -> None:
        """Who is refused is told what the budget counts, or else what its controller says of it."""
        few = "The disruption budget b needs 1 healthy pods and has 1 currently"
        refused = "The disruption budget b does not allow evicting pods currently"
        false = {"type": "DisruptionAllowed", "status": "False"}
        for healthy, condition, why in (
            (1, {}, few),
            (1, {**false, "reason": "R", "message": "m"}, few),
            (2, {}, refused),
            (2, {**false, "reason": "R", "message": "m"}, f"{refused} (R): m"),
            (1, {**false, "reason": "SyncFailed", "message": "m"}, f"{refused} because it failed sync: m"),
        ):
            status = {"desiredHealthy": 1, "currentHealthy": healthy, "conditions": [condition]}
            budget: dict[str, Any] = {"metadata": {"name": "b"}, "status": status}
            error = self.assertRaises(APIStatusError, check_and_decrement, budget, "p")
            assert error.details is not None
            self.assertEqual(error.details["causes"][0]["message"], why)

    def test_options(self) -> None:
        """The eviction names its pod; its options say the same about dry runs as the request does, if anything."""
        self.assertEqual(self.refused(self.evict(obj={"metadata": {}})).code, 400)
        mixed = {"metadata": {"name": "p"}, "deleteOptions": {"dryRun": ["Some"]}}
        error = self.refused(self.evict(obj=mixed, dry_run=True))
        text = "Non-matching dry-run options in request and content: [All] and [Some]"
        self.assertEqual((error.code, error.message), (500, text))
        self.assertEqual(self.refused(self.evict(obj=mixed)).code, 422)
        unreadable = {"ignoreStoreReadErrorWithClusterBreakingPotential": True}
        error = self.refused(self.evict(obj={"metadata": {"name": "p"}, "deleteOptions": unreadable}))
        self.assertIn("can not be set for pod eviction, try after removing the option", error.message)

    def test_another_pod(self) -> None:
        """A budget is spent before it is looked whether the pod is the one that was meant."""
        self.budget("b", 1)
        other = {"metadata": {"name": "p"}, "deleteOptions": {"preconditions": {"uid": "other"}}}
        self.assertEqual(self.refused(self.evict(obj=other)).code, 409)
        self.assertEqual(list(self.stored(self.budgets, "b")["status"]["disruptedPods"]), ["p"])

    def test_not_ready(self) -> None:
        """A pod that is not ready costs nothing as long as enough others are healthy."""
        self.budget("b", 0)
        self.running("q", conditions=())
        self.successResultOf(self.evict("q"))
        self.assertEqual(self.refused(self.evict("p")).code, 429)

    def test_tells_why(self) -> None:
        """The last state of an evicted pod says why it ends."""
        events: list[Any] = []

        class Sink:
            def send(self, event_type: str, record: Any, event: Any) -> None:
                events.append((event_type, record.item))

        self.pods.cache.watch("", sink=Sink())  # type: ignore[arg-type]
        self.successResultOf(self.evict())
        self.assertEqual(events[-1][0], "DELETED")
        self.assertIn(b'"EvictionByEvictionAPI"', events[-1][1])

    def test_several_budgets(self) -> None:
        """A pod with two budgets can not be evicted."""
        self.budget("b", 1)
        self.budget("c", 1)
        self.assertEqual(self.refused(self.evict()).code, 500)

    def test_other_pods(self) -> None:
        """A budget protects the pods of its own labels and namespace."""
        self.budget("b", 0)
        self.running("other", "y")
        self.successResultOf(self.evict("other"))

    def test_pods_that_disrupt_nothing(self) -> None:
        """Budgets do not hold pods that have ended or not begun."""
        self.budget("b", 0)
        self.made(self.pods, pod("pending", labels={"app": "x"}))
        self.successResultOf(self.evict("pending"))

    def test_dry_run(self) -> None:
        """A dry run spends and deletes nothing, in the query as in the body."""
        self.budget("b", 1)
        self.successResultOf(self.evict(dry_run=True))
        self.successResultOf(self.evict(obj={"metadata": {"name": "p"}, "deleteOptions": {"dryRun": ["All"]}}))
        self.assertIsNotNone(self.stored(self.pods, "p"))
        self.assertEqual(self.stored(self.budgets, "b")["status"]["disruptionsAllowed"], 1)

    def test_missing(self) -> None:
        """Evicting what is not there is a 404, and another name in the body a 400."""
        self.assertEqual(self.refused(self.evict("none")).code, 404)
        self.assertEqual(self.refused(self.evict("p", {"metadata": {"name": "q"}})).code, 400)

    def test_without_budgets(self) -> None:
        """A server on which policies are switched off evicts all the same."""
        self.eviction = PodEviction(self.pods, None)
        self.successResultOf(self.evict())
        self.assertIsNone(self.stored(self.pods, "p"))
