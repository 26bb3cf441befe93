"""Tests of L{kubetwist.registry.core.pod.eviction}."""

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
    """Tests of C{pods/eviction}."""

    resources = ("pods", "poddisruptionbudgets")

    def setUp(self) -> None:
        """Create a running pod."""
        super().setUp()
        self.pods, self.budgets = self.store("pods"), self.store("poddisruptionbudgets", "policy")
        self.eviction = PodEviction(self.pods, self.budgets)
        verifyObject(INamedCreator, self.eviction)
        self.running("p")

    def running(self, name: str, app: str = "x", conditions: Any = READY) -> None:
        """Create a running pod, which is ready unless C{conditions} differ."""
        self.made(self.pods, pod(name, labels={"app": app}))
        status = {"phase": "Running", "conditions": list(conditions)}
        self.changed(self.pods, name, lambda obj: obj["status"].update(status), rules=status_rules(self.pods))

    def budget(self, name: str, allowed: int, **status: Any) -> None:
        """Create a budget with a number of allowed disruptions."""
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
        """Evict a pod."""
        return self.eviction.create_named(
            self.scope, name, obj or {"metadata": {"name": name}}, CreateOptions(**options)
        )

    def test_no_budget(self) -> None:
        """A pod without a budget is deleted."""
        status = self.successResultOf(self.evict())
        self.assertEqual(status["code"], 201)
        self.assertIsNone(self.stored(self.pods, "p"))

    def test_decrement(self) -> None:
        """An eviction decrements the allowed disruptions, and adds the pod to the disrupted pods."""
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
        """The server owns the changed fields of the budget."""
        self.budget("b", 1)
        owned: list[Any] = []
        self.patch(self.budgets, "update_managed_fields", lambda live, new, *names: owned.append((live, new, *names)))
        self.successResultOf(self.evict())
        ((live, new, *names),) = owned
        self.assertEqual(names, ["status", "kube-apiserver"])
        self.assertEqual((live["status"]["disruptionsAllowed"], new["status"]["disruptionsAllowed"]), (1, 0))

    def test_two_at_once(self) -> None:
        """Concurrent evictions never use the same disruption."""
        self.budget("b", 1)
        self.running("q")
        self.racing_backend(self.budgets).before.append(lambda: self.successResultOf(self.evict("q")))
        self.assertEqual(self.refused(self.evict("p")).code, 429)
        self.assertIsNone(self.stored(self.pods, "q"))
        self.assertIsNotNone(self.stored(self.pods, "p"))

    def test_stale_budget(self) -> None:
        """With a budget that its controller has not processed yet, the client is asked to retry."""
        self.budget("b", 1, observedGeneration=0)
        error = self.refused(self.evict())
        self.assertEqual((error.code, error.retry_after), (429, 10))

    def test_denial_reason(self) -> None:
        """A rejection contains the counts of the budget, or the message of its controller."""
        few = "The disruption budget b needs 1 healthy pods and has 1 currently"
        refused = "The disruption budget b does not allow evicting pods currently"
        false = {"type": "DisruptionAllowed", "status": "False"}
        for healthy, condition, reason in (
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
            self.assertEqual(error.details["causes"][0]["message"], reason)

    def test_options(self) -> None:
        """The eviction names the pod; dry-run options of the body and the request must match."""
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
        """The budget is decremented before the preconditions are checked."""
        self.budget("b", 1)
        other = {"metadata": {"name": "p"}, "deleteOptions": {"preconditions": {"uid": "other"}}}
        self.assertEqual(self.refused(self.evict(obj=other)).code, 409)
        self.assertEqual(list(self.stored(self.budgets, "b")["status"]["disruptedPods"]), ["p"])

    def test_not_ready(self) -> None:
        """The eviction of an unhealthy pod does not decrement the budget if enough pods are healthy."""
        self.budget("b", 0)
        self.running("q", conditions=())
        self.successResultOf(self.evict("q"))
        self.assertEqual(self.refused(self.evict("p")).code, 429)

    def test_condition(self) -> None:
        """The last state of an evicted pod has the condition DisruptionTarget."""
        events: list[Any] = []

        class Sink:
            def send(self, event_type: str, record: Any, event: Any) -> None:
                events.append((event_type, record.item))

        self.pods.cache.watch("", sink=Sink())  # type: ignore[arg-type]
        self.successResultOf(self.evict())
        self.assertEqual(events[-1][0], "DELETED")
        self.assertIn(b'"EvictionByEvictionAPI"', events[-1][1])

    def test_several_budgets(self) -> None:
        """A pod with two budgets cannot be evicted."""
        self.budget("b", 1)
        self.budget("c", 1)
        self.assertEqual(self.refused(self.evict()).code, 500)

    def test_other_pods(self) -> None:
        """A budget applies to pods with its labels in its namespace."""
        self.budget("b", 0)
        self.running("other", "y")
        self.successResultOf(self.evict("other"))

    def test_terminated_and_pending_pods(self) -> None:
        """Terminated and pending pods are evicted regardless of budgets."""
        self.budget("b", 0)
        self.made(self.pods, pod("pending", labels={"app": "x"}))
        self.successResultOf(self.evict("pending"))

    def test_dry_run(self) -> None:
        """A dry run, in the query or the body, neither decrements nor deletes."""
        self.budget("b", 1)
        self.successResultOf(self.evict(dry_run=True))
        self.successResultOf(self.evict(obj={"metadata": {"name": "p"}, "deleteOptions": {"dryRun": ["All"]}}))
        self.assertIsNotNone(self.stored(self.pods, "p"))
        self.assertEqual(self.stored(self.budgets, "b")["status"]["disruptionsAllowed"], 1)

    def test_missing(self) -> None:
        """Evicting a missing pod is a 404, another name in the body a 400."""
        self.assertEqual(self.refused(self.evict("none")).code, 404)
        self.assertEqual(self.refused(self.evict("p", {"metadata": {"name": "q"}})).code, 400)

    def test_without_budgets(self) -> None:
        """A server without the policy group evicts pods."""
        self.eviction = PodEviction(self.pods, None)
        self.successResultOf(self.evict())
        self.assertIsNone(self.stored(self.pods, "p"))
