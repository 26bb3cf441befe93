"""Tests of L{kubetwist.registry.core.pod.binding}."""

from __future__ import annotations

from typing import Any

from zope.interface.verify import verifyObject

from kubetwist.api.options import CreateOptions, UpdateOptions
from kubetwist.interfaces import ICreator, INamedCreator
from kubetwist.registry.core.pod.binding import Bindings, PodBinding
from kubetwist.registry.generic.updates import UpdateRules
from tests.registry.gatetools import features
from tests.registry.storetools import StoreTestCase
from tests.resources.server import all_kinds, pod


def binding(name: str = "p", node: str = "n", **meta: Any) -> dict[str, Any]:
    """Return a Binding."""
    return {"metadata": {"name": name, **meta}, "target": {"kind": "Node", "name": node}}


class BindingTests(StoreTestCase):
    """Tests of C{pods/binding}."""

    def setUp(self) -> None:
        """Create a pod without a node."""
        super().setUp()
        self.pods = self.store("pods")
        self.made(self.pods, pod("p"))
        self.binding = PodBinding(self.pods)
        verifyObject(INamedCreator, self.binding)

    def bind(self, obj: dict[str, Any], name: str = "p", **options: Any) -> Any:
        """Bind a pod."""
        return self.binding.create_named(self.scope, name, obj, CreateOptions(**options))

    def test_binds(self) -> None:
        """Binding sets the node, the condition PodScheduled, and the annotations of the binding."""
        status = self.successResultOf(self.bind(binding(annotations={"a": "b"})))
        self.assertEqual((status["kind"], status["status"], status["code"]), ("Status", "Success", 201))
        stored = self.stored(self.pods, "p")
        self.assertEqual(stored["spec"]["nodeName"], "n")
        self.assertEqual(stored["metadata"]["annotations"], {"a": "b"})
        (condition,) = stored["status"]["conditions"]
        self.assertEqual((condition["type"], condition["status"]), ("PodScheduled", "True"))

    def test_labels(self) -> None:
        """Labels and annotations of the binding replace those of the pod; the nomination is removed."""
        first = {**pod("l"), "metadata": {"name": "l", "labels": {"a": "old", "b": "old"}, "annotations": {"a": "old"}}}
        self.made(self.pods, first)
        obj = binding("l", labels={"a": "new"}, annotations={"a": "new"})
        self.successResultOf(self.bind(obj, "l"))
        meta = self.stored(self.pods, "l")["metadata"]
        self.assertEqual(meta["labels"], {"a": "new", "b": "old"})
        self.assertEqual(meta["annotations"], {"a": "new"})

    def test_feature_gates(self) -> None:
        """Labels are copied and the nomination is removed if the gates are enabled."""
        for enabled in (True, False):
            name = f"gates-{str(enabled).lower()}"
            self.made(self.pods, pod(name))
            gates = {"PodTopologyLabelsAdmission": enabled, "ClearingNominatedNodeNameAfterBinding": enabled}
            self.pods.context.features = features((1, 36), **gates)

            def nominate(obj: dict[str, Any] | None) -> dict[str, Any]:
                assert obj is not None
                obj["status"]["nominatedNodeName"] = "m"
                return obj

            rules = UpdateRules("status", lambda obj, old: None, lambda obj, old: ())
            self.successResultOf(self.pods.update(self.scope, name, nominate, UpdateOptions(), rules, patching=True))
            self.binding = PodBinding(self.pods)
            self.successResultOf(self.bind(binding(name, labels={"a": "b"}), name))
            stored = self.stored(self.pods, name)
            self.assertEqual("a" in (stored["metadata"].get("labels") or {}), enabled)
            self.assertEqual("nominatedNodeName" not in stored["status"], enabled)

    def test_preconditions(self) -> None:
        """The uid and the resourceVersion of a binding must be those of the pod."""
        meta = self.stored(self.pods, "p")["metadata"]
        version = self.pods.cache.get("default/p").revision
        for wrong, precondition in (({"uid": "x"}, "UID"), ({"resourceVersion": "1"}, "ResourceVersion")):
            error = self.refused(self.bind(binding(**wrong)))
            self.assertEqual((error.code, error.details), (409, {"name": "p", "kind": "pods"}))
            self.assertIn(
                f"Precondition failed: {precondition} in precondition: {next(iter(wrong.values()))}", error.message
            )
        right = binding(uid=meta["uid"], resourceVersion=str(version))
        self.successResultOf(self.bind(right))

    def test_conditions(self) -> None:
        """The condition PodScheduled is set at its position, and the nomination is removed."""
        record = self.pods.cache.get("default/p")
        scheduled = {"type": "PodScheduled", "status": "False", "lastTransitionTime": "2020-01-01T00:00:00Z"}
        other = {"type": "Ready", "status": "False"}
        status = {"nominatedNodeName": "m", "conditions": [scheduled, other]}

        def change(obj: Any) -> Any:
            return {**obj, "status": status}

        rules = UpdateRules("status", lambda obj, old: None, lambda obj, old: ())
        assert record is not None
        self.successResultOf(self.pods.update(self.scope, "p", change, UpdateOptions(), rules, patching=True))
        self.successResultOf(self.bind(binding()))
        status = self.stored(self.pods, "p")["status"]
        self.assertNotIn("nominatedNodeName", status)
        self.assertEqual([one["type"] for one in status["conditions"]], ["PodScheduled", "Ready"])
        self.assertEqual(status["conditions"][0]["status"], "True")
        self.assertNotEqual(status["conditions"][0]["lastTransitionTime"], "2020-01-01T00:00:00Z")

    def test_once(self) -> None:
        """A bound pod cannot be bound again."""
        self.successResultOf(self.bind(binding()))
        error = self.refused(self.bind(binding(node="m")))
        self.assertEqual((error.code, error.reason), (409, "Conflict"))
        self.assertIn('pod p is already assigned to node "n"', error.message)
        self.assertEqual(self.stored(self.pods, "p")["spec"]["nodeName"], "n")

    def test_refused(self) -> None:
        """A binding of a missing pod, with another uid, or without a node is rejected."""
        self.assertEqual(self.refused(self.bind(binding("q"))).code, 400)
        self.assertEqual(self.refused(self.bind(binding("q"), "q")).code, 404)
        self.assertEqual(self.refused(self.bind(binding(node=""))).code, 500)
        self.assertEqual(self.refused(self.bind({"metadata": {"name": "p", "namespace": "other"}})).code, 400)

    def test_gates(self) -> None:
        """A pod with scheduling gates cannot be bound."""
        gated = pod("g")
        gated["spec"]["schedulingGates"] = [{"name": "example.org/wait"}]
        self.made(self.pods, gated)
        self.assertEqual(self.refused(self.bind(binding("g"), "g")).code, 409)

    def test_dry_run(self) -> None:
        """A dry run binds nothing."""
        self.successResultOf(self.bind(binding(), dry_run=True))
        self.assertNotIn("nodeName", self.stored(self.pods, "p")["spec"])

    def test_older_path(self) -> None:
        """C{bindings} binds the pod in the body."""
        older = Bindings(next(one for one in all_kinds() if one.resource == "bindings"), self.pods)
        verifyObject(ICreator, older)
        self.successResultOf(older.create(self.scope, binding(), CreateOptions()))
        self.assertEqual(self.stored(self.pods, "p")["spec"]["nodeName"], "n")
        nameless = self.refused(older.create(self.scope, {"metadata": {"namespace": "default"}}, CreateOptions()))
        self.assertEqual((nameless.code, nameless.message), (400, "Name parameter required."))

    def test_admission_before_existence(self) -> None:
        """A binding of a missing pod is validated and admitted before the pod is looked up."""
        self.assertEqual(self.refused(self.bind(binding("q", node=""), "q")).message, "target.name: Required value")
