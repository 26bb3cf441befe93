"""Tests for L{kubetwist.registry.actions}: binding, eviction, tokens."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from zope.interface.verify import verifyObject

from kubetwist.api.options import CreateOptions
from kubetwist.interfaces import ICreator, INamedCreator
from kubetwist.registry.actions import Bindings, PodBinding, PodEviction, TokenRequests
from kubetwist.registry.parts import status_rules
from tests.registry.storetools import StoreTestCase
from tests.resources.server import pod


def binding(name: str = "p", node: str = "n", **meta: Any) -> dict[str, Any]:
    """A Binding."""
    return {"metadata": {"name": name, **meta}, "target": {"kind": "Node", "name": node}}


class BindingTests(StoreTestCase):
    """C{pods/binding}."""

    def setUp(self) -> None:
        """A pod without a node."""
        super().setUp()
        self.pods = self.store("pods")
        self.made(self.pods, pod("p"))
        self.binding = PodBinding(self.pods)
        verifyObject(INamedCreator, self.binding)

    def bind(self, obj: dict[str, Any], name: str = "p", **options: Any) -> Any:
        """The call."""
        return self.binding.create_named(self.scope, name, obj, CreateOptions(**options))

    def test_binds(self) -> None:
        """The pod is put on the node, said to be scheduled, and annotated as the binding is."""
        status = self.successResultOf(self.bind(binding(annotations={"a": "b"})))
        self.assertEqual((status["kind"], status["status"], status["code"]), ("Status", "Success", 201))
        stored = self.stored(self.pods, "p")
        self.assertEqual(stored["spec"]["nodeName"], "n")
        self.assertEqual(stored["metadata"]["annotations"], {"a": "b"})
        (condition,) = stored["status"]["conditions"]
        self.assertEqual((condition["type"], condition["status"]), ("PodScheduled", "True"))

    def test_once(self) -> None:
        """A pod is bound once; it stays where it is."""
        self.successResultOf(self.bind(binding()))
        error = self.refused(self.bind(binding(node="m")))
        self.assertEqual((error.code, error.reason), (409, "Conflict"))
        self.assertIn('pod p is already assigned to node "n"', error.message)
        self.assertEqual(self.stored(self.pods, "p")["spec"]["nodeName"], "n")

    def test_refused(self) -> None:
        """A binding needs a pod that is there and meant, and a node."""
        self.assertEqual(self.refused(self.bind(binding("q"))).code, 400)
        self.assertEqual(self.refused(self.bind(binding("q"), "q")).code, 404)
        self.assertEqual(self.refused(self.bind(binding(node=""))).code, 500)
        self.assertEqual(self.refused(self.bind({"metadata": {"name": "p", "namespace": "other"}})).code, 400)

    def test_gates(self) -> None:
        """A pod with scheduling gates waits."""
        gated = pod("g")
        gated["spec"]["schedulingGates"] = [{"name": "example.org/wait"}]
        self.made(self.pods, gated)
        self.assertEqual(self.refused(self.bind(binding("g"), "g")).code, 409)

    def test_dry_run(self) -> None:
        """A dry run binds nothing."""
        self.successResultOf(self.bind(binding(), dry_run=True))
        self.assertNotIn("nodeName", self.stored(self.pods, "p")["spec"])

    def test_older_path(self) -> None:
        """C{bindings} does the same for the pod that its body names."""
        older = Bindings(self.pods)
        verifyObject(ICreator, older)
        self.successResultOf(older.create(self.scope, binding(), CreateOptions()))
        self.assertEqual(self.stored(self.pods, "p")["spec"]["nodeName"], "n")


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

    def running(self, name: str) -> None:
        """Make a pod that runs."""
        self.made(self.pods, pod(name, labels={"app": "x"}))
        rules = status_rules(self.pods)
        self.changed(self.pods, name, lambda obj: obj["status"].update(phase="Running"), rules=rules)

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

    def test_two_at_once(self) -> None:
        """Two evictions never share one disruption, however they overtake each other."""
        self.budget("b", 1)
        self.running("q")
        self.meddler(self.budgets).before.append(lambda: self.successResultOf(self.evict("q")))
        self.assertEqual(self.refused(self.evict("p")).code, 429)
        self.assertIsNone(self.stored(self.pods, "q"))
        self.assertIsNotNone(self.stored(self.pods, "p"))

    def test_stale_budget(self) -> None:
        """A budget that its controller has not seen yet has the client come again."""
        self.budget("b", 1, observedGeneration=0)
        error = self.refused(self.evict())
        self.assertEqual((error.code, error.retry_after), (429, 10))

    def test_several_budgets(self) -> None:
        """A pod with two budgets can not be evicted."""
        self.budget("b", 1)
        self.budget("c", 1)
        self.assertEqual(self.refused(self.evict()).code, 500)

    def test_other_pods(self) -> None:
        """A budget protects the pods of its own labels and namespace."""
        self.budget("b", 0)
        self.made(self.pods, pod("other", labels={"app": "y"}))
        self.changed(
            self.pods, "other", lambda obj: obj["status"].update(phase="Running"), rules=status_rules(self.pods)
        )
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


class TokenTests(StoreTestCase):
    """C{serviceaccounts/token}."""

    resources = ("serviceaccounts",)

    def test_token(self) -> None:
        """The issuer is asked for a token of the account that is stored."""
        accounts = self.store("serviceaccounts")
        self.made(accounts, {"metadata": {"name": "a", "namespace": "default"}})

        class Issuer:
            async def issue(self, account: Any, obj: Any, options: Any) -> Any:
                return {**obj, "status": {"token": account["metadata"]["name"]}}

        context = SimpleNamespace(token_issuer=Issuer())
        tokens = TokenRequests(accounts, context)
        verifyObject(INamedCreator, tokens)
        made = self.successResultOf(tokens.create_named(self.scope, "a", {"spec": {}}, CreateOptions()))
        self.assertEqual(made["status"], {"token": "a"})
        self.assertEqual(self.refused(tokens.create_named(self.scope, "b", {}, CreateOptions())).code, 404)

    def test_no_issuer(self) -> None:
        """A server without an issuer says that it has none."""
        accounts = self.store("serviceaccounts")
        self.made(accounts, {"metadata": {"name": "a", "namespace": "default"}})
        tokens = TokenRequests(accounts, object())
        self.assertEqual(self.refused(tokens.create_named(self.scope, "a", {}, CreateOptions())).code, 503)
