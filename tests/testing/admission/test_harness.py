"""Tests for L{kubetwist.testing.admission.AdmissionHarness}."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, ensureDeferred
from twisted.internet.task import Clock, deferLater
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from kubetwist.admission.factory import AdmissionPluginFactory
from kubetwist.admission.plugins import PluginInitError
from kubetwist.api.errors import APIStatusError
from kubetwist.api.options import CreateOptions, DeleteOptions
from kubetwist.api.resource import UserInfo
from kubetwist.interfaces import IMutatingAdmission, IValidatingAdmission
from kubetwist.testing.admission import AdmissionHarness, InvalidMutation
from kubetwist.testing.memory import NoResult

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {"team": "blue"}}}
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: x}]}
"""


@implementer(IMutatingAdmission, IValidatingAdmission)
class Plugin:
    """A plugin that calls functions of the test."""

    name = "Plugin"
    operations: tuple[str, ...] = ("CREATE", "UPDATE", "DELETE", "CONNECT")

    def __init__(self, admit: Any = None, validate: Any = None, **attributes: Any) -> None:
        self._admit, self._validate = admit, validate
        self.seen: list[Any] = []
        self.__dict__.update(attributes)

    def handles(self, operation: str) -> bool:
        """Return whether the operation is handled."""
        return operation in self.operations

    def admit(self, attributes: Any) -> Any:
        """Call the function."""
        self.seen.append(attributes)
        return None if self._admit is None else self._admit(attributes)

    def validate(self, attributes: Any) -> Any:
        """Call the function."""
        return None if self._validate is None else self._validate(attributes)


def refuse(attributes: Any) -> None:
    """Reject a request, with a warning and an audit annotation."""
    attributes.warn("think twice")
    attributes.annotate("example.com/why", "no")
    raise attributes.forbidden("not today")


def label(attributes: Any) -> None:
    """Copy a label of the namespace."""
    namespace = attributes.context.get_decoded("", "namespaces", "", attributes.namespace)
    attributes.object["metadata"].setdefault("labels", {})["team"] = namespace["metadata"]["labels"]["team"]


class OutcomeTests(SynchronousTestCase):
    """The outcomes of plugins that work."""

    def test_denied(self) -> None:
        """A rejection is the outcome, with the status of the response, warnings and audit annotations."""
        outcome = AdmissionHarness(Plugin(validate=refuse)).create(CONFIG_MAP)
        self.assertEqual((outcome.allowed, outcome.denied, outcome.handled), (False, True, True))
        message = 'configmaps "a" is forbidden: not today'
        self.assertEqual((outcome.code, outcome.reason, outcome.message), (403, "Forbidden", message))
        assert outcome.status is not None
        self.assertEqual(outcome.status["details"], {"name": "a", "kind": "configmaps"})
        self.assertEqual(outcome.warnings, ["think twice"])
        self.assertEqual(outcome.audit_annotations, {"example.com/why": "no"})
        self.assertIsNone(outcome.stored)
        self.assertIsNone(outcome.failure)

    def test_mutated(self) -> None:
        """The changes of the plugin are a JSON patch, without the fields that the server sets."""
        harness = AdmissionHarness(Plugin(label), objects=[NAMESPACE])
        outcome = harness.create(CONFIG_MAP)
        self.assertTrue(outcome.allowed)
        self.assertEqual(outcome.patch, [{"op": "add", "path": "/metadata/labels", "value": {"team": "blue"}}])
        assert outcome.object is not None and outcome.stored is not None
        self.assertEqual(outcome.object["metadata"]["labels"], {"team": "blue"})
        self.assertNotIn("uid", outcome.object["metadata"])
        self.assertEqual(outcome.stored, harness.server.get("configmaps", "a", "default"))
        self.assertEqual((outcome.status, outcome.code, outcome.reason, outcome.message), (None, 0, "", ""))

    def test_attributes(self) -> None:
        """Attributes of the request come from the object and the arguments."""
        plugin = Plugin()
        user = UserInfo("bob", groups=("g",))
        outcome = AdmissionHarness(plugin).create(DEPLOYMENT, user=user, namespace="shop", dry_run=True, options=None)
        self.assertTrue(outcome.allowed, outcome)
        (seen,) = plugin.seen
        self.assertEqual(
            (seen.operation, seen.group, seen.version, seen.resource, seen.kind, seen.namespace, seen.name),
            ("CREATE", "apps", "v1", "deployments", "Deployment", "shop", "web"),
        )
        self.assertEqual((seen.user, seen.dry_run), (user, True))
        self.assertEqual(seen.options, {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]})
        self.assertEqual(seen.object["spec"]["strategy"]["type"], "RollingUpdate")

    def test_dry_run(self) -> None:
        """A dry run stores nothing."""
        harness = AdmissionHarness(Plugin())
        self.assertTrue(harness.create(CONFIG_MAP, options=CreateOptions(dry_run=True)).allowed)
        self.assertEqual(harness.server.list("configmaps"), [])

    def test_update(self) -> None:
        """An update has the old object, given or stored before."""
        plugin = Plugin()
        harness = AdmissionHarness(plugin)
        new = {**CONFIG_MAP, "data": {"k": "w"}}
        self.assertTrue(harness.update(new, old=CONFIG_MAP).allowed)
        self.assertTrue(harness.update(CONFIG_MAP).allowed)
        self.assertEqual(
            [(seen.operation, seen.old_object["data"], seen.object["data"]) for seen in plugin.seen],
            [("UPDATE", {"k": "v"}, {"k": "w"}), ("UPDATE", {"k": "w"}, {"k": "v"})],
        )

    def test_delete(self) -> None:
        """A deletion has the old object only, and the options."""
        plugin = Plugin()
        harness = AdmissionHarness(plugin)
        outcome = harness.delete(CONFIG_MAP, options=DeleteOptions(grace_period_seconds=7))
        self.assertTrue(outcome.allowed)
        (seen,) = plugin.seen
        self.assertEqual((seen.operation, seen.object, seen.old_object["data"]), ("DELETE", None, {"k": "v"}))
        self.assertEqual(seen.options["gracePeriodSeconds"], 7)
        self.assertEqual(harness.server.list("configmaps"), [])
        self.assertEqual(outcome.patch, [])

    def test_subresources(self) -> None:
        """Subresources and connections have the kinds that clients send."""
        plugin = Plugin()
        harness = AdmissionHarness(plugin, objects=DEPLOYMENT)
        scale = {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"replicas": 3},
        }
        outcome = harness.review(scale, "UPDATE", resource="deployments.apps", subresource="scale")
        self.assertTrue(outcome.allowed, outcome)
        exec_options = {"apiVersion": "v1", "kind": "PodExecOptions", "command": ["sh"]}
        self.assertTrue(harness.review(exec_options, "CONNECT", subresource="exec", name="p").allowed)
        self.assertEqual(
            [(seen.resource, seen.subresource, seen.kind, seen.name) for seen in plugin.seen],
            [("deployments", "scale", "Scale", "web"), ("pods", "exec", "PodExecOptions", "p")],
        )
        stored = harness.server.get("deployments.apps", "web", "default")
        assert stored is not None
        self.assertEqual(stored["spec"]["replicas"], 3)

    def test_status(self) -> None:
        """An update of the status changes nothing else."""
        harness = AdmissionHarness(Plugin(), objects=DEPLOYMENT)
        stored = harness.server.get("deployments.apps", "web", "default")
        assert stored is not None
        stored["status"] = {"replicas": 1}
        stored["spec"]["replicas"] = 9
        outcome = harness.update(stored, subresource="status")
        assert outcome.stored is not None, outcome
        self.assertEqual((outcome.stored["spec"]["replicas"], outcome.stored["status"]), (1, {"replicas": 1}))

    def test_reviews(self) -> None:
        """Resources without objects pass admission too."""
        plugin = Plugin()
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": "u", "nonResourceAttributes": {"path": "/x", "verb": "get"}},
        }
        outcome = AdmissionHarness(plugin).create(review)
        assert outcome.stored is not None, outcome
        self.assertFalse(outcome.stored["status"]["allowed"])
        self.assertEqual(plugin.seen[0].resource, "subjectaccessreviews")

    def test_custom_resources(self) -> None:
        """Kinds that are not built in are accepted with all fields, or with their definition."""
        plugin = Plugin()
        kite = {
            "apiVersion": "stable.example.com/v1",
            "kind": "Kite",
            "metadata": {"name": "k", "namespace": "default"},
            "spec": {"length": 3},
        }
        self.assertTrue(AdmissionHarness(plugin).create(kite).allowed)
        self.assertEqual((plugin.seen[0].resource, plugin.seen[0].namespace), ("kites", "default"))
        crd = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "drachen.stable.example.com"},
            "spec": {
                "group": "stable.example.com",
                "scope": "Namespaced",
                "names": {"kind": "Kite", "plural": "drachen"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {
                            "openAPIV3Schema": {
                                "type": "object",
                                "properties": {
                                    "spec": {
                                        "type": "object",
                                        "properties": {"length": {"type": "integer", "maximum": 2}},
                                    }
                                },
                            }
                        },
                    }
                ],
            },
        }
        outcome = AdmissionHarness(plugin, objects=[crd]).create(kite)
        self.assertEqual((outcome.allowed, outcome.denied, outcome.code), (False, False, 422))
        self.assertEqual(plugin.seen[-1].resource, "drachen")

    def test_not_handled(self) -> None:
        """A request that the plugin does not handle is allowed, and the outcome shows it."""
        outcome = AdmissionHarness(Plugin(validate=refuse, resources=("pods",))).create(CONFIG_MAP)
        self.assertEqual((outcome.allowed, outcome.handled), (True, False))

    def test_writes_of_plugin(self) -> None:
        """Objects that a plugin creates pass the chain as in the server, and are no part of the outcome."""

        async def admit(attributes: Any) -> None:
            if attributes.resource == "configmaps":
                secret = {"metadata": {"name": "s", "namespace": "default"}}
                await attributes.context.create("", "secrets", "default", secret)
            else:
                attributes.object["metadata"]["labels"] = {"made": "yes"}

        harness = AdmissionHarness(Plugin(admit))
        outcome = harness.create(CONFIG_MAP)
        self.assertEqual((outcome.allowed, outcome.patch), (True, []))
        secret = harness.server.get("secrets", "s", "default")
        assert secret is not None
        self.assertEqual(secret["metadata"]["labels"], {"made": "yes"})

    def test_generated_name(self) -> None:
        """A plugin sees no name before the server generates it."""
        plugin = Plugin()
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}}
        outcome = AdmissionHarness(plugin).create(obj)
        assert outcome.stored is not None and outcome.object is not None
        self.assertNotIn("name", outcome.object["metadata"])
        self.assertTrue(outcome.stored["metadata"]["name"].startswith("a-"))


class FailureTests(SynchronousTestCase):
    """Plugins that do not work."""

    def test_exception(self) -> None:
        """An exception of the plugin is the failure; the client gets an internal error."""

        def admit(attributes: Any) -> None:
            raise KeyError("k")

        outcome = AdmissionHarness(Plugin(admit)).create(CONFIG_MAP)
        self.assertIsInstance(outcome.failure, KeyError)
        self.assertEqual((outcome.allowed, outcome.denied, outcome.code), (False, False, 500))
        self.assertIn('admission plugin "Plugin" failed to complete mutation', outcome.message)

    def test_ignored_exception(self) -> None:
        """With the policy Ignore the request is allowed, and the failure is shown."""

        def admit(attributes: Any) -> None:
            attributes.object["data"] = {}
            raise KeyError("k")

        outcome = AdmissionHarness(Plugin(admit, failure_policy="Ignore")).create(CONFIG_MAP)
        self.assertIsInstance(outcome.failure, KeyError)
        self.assertEqual((outcome.allowed, outcome.patch), (True, []))

    def test_wrong_results(self) -> None:
        """A plugin that returns a value has failed: False is no denial."""

        async def later(attributes: Any) -> bool:
            return False

        async def much_later(attributes: Any) -> bool:
            await deferLater(attributes.context.reactor, 1)
            return False

        for validate in (lambda attributes: False, later, much_later):
            outcome = AdmissionHarness(Plugin(validate=validate)).create(CONFIG_MAP)
            self.assertIsInstance(outcome.failure, TypeError)
            self.assertIn("returned False instead of None", str(outcome.failure))
            self.assertEqual(outcome.code, 500)

    def test_change_in_validate(self) -> None:
        """The object is read-only in validate."""

        def validate(attributes: Any) -> None:
            attributes.object["data"] = {}

        outcome = AdmissionHarness(Plugin(validate=validate)).create(CONFIG_MAP)
        self.assertIsInstance(outcome.failure, TypeError)
        self.assertEqual(outcome.code, 500)

    def test_change_of_old(self) -> None:
        """The old object is read-only."""

        def admit(attributes: Any) -> None:
            attributes.old_object["data"]["k"] = "x"

        outcome = AdmissionHarness(Plugin(admit)).update(CONFIG_MAP, old=CONFIG_MAP)
        self.assertIsInstance(outcome.failure, TypeError)

    def test_replaced_object(self) -> None:
        """An object that the plugin assigns instead of changing it in place has no effect, as in the server."""

        def admit(attributes: Any) -> None:
            attributes.object = {**attributes.object, "data": {}}

        outcome = AdmissionHarness(Plugin(admit)).create(CONFIG_MAP)
        assert outcome.stored is not None
        self.assertEqual((outcome.patch, outcome.stored["data"]), ([], {"k": "v"}))

    def test_wrong_types(self) -> None:
        """A plugin that leaves wrong types, unknown fields or values without a JSON form has failed."""

        def check(change: Any) -> None:
            outcome = AdmissionHarness(Plugin(lambda attributes: attributes.object.update(change))).create(CONFIG_MAP)
            self.assertIsInstance(outcome.failure, InvalidMutation)
            self.assertEqual((outcome.allowed, outcome.denied, outcome.code), (False, False, 500))

        check({"data": {"k": 1}})
        check({"date": {}})
        check({"data": {"k": {1, 2}}})

    def test_invalid_object(self) -> None:
        """An object that the plugin has made invalid is rejected by the server, and not by the plugin."""

        def admit(attributes: Any) -> None:
            attributes.object["data"] = {"not a key": ""}

        outcome = AdmissionHarness(Plugin(admit)).create(CONFIG_MAP)
        self.assertEqual((outcome.allowed, outcome.denied, outcome.code), (False, False, 422))
        self.assertIn("data[not a key]", outcome.message)

    def test_moved_object(self) -> None:
        """A plugin must not move an object to another namespace."""

        def admit(attributes: Any) -> None:
            attributes.object["metadata"]["namespace"] = "kube-system"

        outcome = AdmissionHarness(Plugin(admit)).create(CONFIG_MAP)
        self.assertEqual((outcome.allowed, outcome.code), (False, 400))

    def test_hanging(self) -> None:
        """A plugin that waits forever fails with the timeout of the server, without waiting in the test."""
        harness = AdmissionHarness(Plugin(lambda attributes: Deferred(), timeout=3))
        began = harness.server.clock.seconds()
        outcome = harness.create(CONFIG_MAP)
        self.assertIsInstance(outcome.failure, TimeoutError)
        self.assertIn("in 3s", outcome.message)
        self.assertEqual(harness.server.clock.seconds() - began, 3)

    def test_hanging_without_timeout(self) -> None:
        """A plugin without timeout that waits for something else than the clock is an error of the test."""
        harness = AdmissionHarness(Plugin(lambda attributes: Deferred(), timeout=None))
        self.assertRaises(NoResult, harness.create, CONFIG_MAP)
        # The request was cancelled, and the next one is independent of it.
        harness.plugin.timeout = 1  # type: ignore[attr-defined]
        self.assertRaises(NoResult, harness.create, CONFIG_MAP)

    def test_invalid_requests(self) -> None:
        """A request that does not get to the plugin is an error of the test, and no outcome."""
        harness = AdmissionHarness(Plugin(validate=refuse))
        self.assertRaises(APIStatusError, harness.create, {**CONFIG_MAP, "data": {"k": 1}})
        self.assertRaises(APIStatusError, harness.create, {**CONFIG_MAP, "date": {}})
        self.assertRaises(APIStatusError, harness.update, CONFIG_MAP)
        self.assertRaises(ValueError, harness.create, {"metadata": {"name": "a"}})
        self.assertRaises(ValueError, harness.create, {**CONFIG_MAP, "kind": "ConfigMop"})
        self.assertRaises(ValueError, harness.create, "")
        self.assertRaises(ValueError, harness.review, CONFIG_MAP, "PATCH")
        self.assertRaises(ValueError, harness.review, None)
        self.assertRaises(ValueError, harness.review, CONFIG_MAP, resource="pods.apps")
        self.assertRaises(ValueError, harness.review, CONFIG_MAP, subresource="status")
        self.assertRaises(ValueError, harness.review, CONFIG_MAP, "CONNECT", subresource="exec")
        self.assertRaises(ValueError, harness.review, CONFIG_MAP, "CONNECT", resource="pods", subresource="scale")
        scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}}
        self.assertRaises(ValueError, harness.review, scale, "UPDATE", subresource="scale")


class Configured(Plugin):
    """A plugin with a configuration."""

    name = "Configured"
    configuration: Any

    @classmethod
    def configured(cls, server: Any, configuration: Any) -> Configured:
        """Create the plugin."""
        if configuration == {"bad": True}:
            raise ValueError("bad\nconfiguration")
        return cls(configuration=configuration)


class ConstructionTests(SynchronousTestCase):
    """The plugin that a harness tests."""

    def test_forms(self) -> None:
        """The plugin is an instance, a class, a factory, or the name of an installed plugin."""
        instance = Plugin()
        self.assertIs(AdmissionHarness(instance).plugin, instance)
        self.assertIsInstance(AdmissionHarness(Configured).plugin, Configured)
        place = "tests.testing.admission.test_harness:Configured"
        factory = AdmissionPluginFactory("Configured", place)
        self.assertIsInstance(AdmissionHarness(factory).plugin, Configured)
        self.assertFalse(AdmissionHarness("AlwaysDeny").create(CONFIG_MAP).allowed)
        self.assertRaises(ValueError, AdmissionHarness, "Unknown")

    def test_configurations(self) -> None:
        """The configuration is a value, YAML text, or a file of the flag."""
        path = Path(self.mktemp())
        plugins = [{"name": "Configured", "configuration": {"a": 1}}]
        document = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins}
        path.write_text(json.dumps(document))
        for configuration in ({"a": 1}, "a: 1", path):
            plugin: Any = AdmissionHarness(Configured, configuration).plugin
            self.assertEqual(plugin.configuration, {"a": 1})
        self.assertRaises(ValueError, AdmissionHarness, Configured, "a: 1\na: 2")

    def test_unusable(self) -> None:
        """A plugin with which the server would not start is an error with the text of the server."""
        error = self.assertRaises(PluginInitError, AdmissionHarness, Configured, {"bad": True})
        self.assertEqual(str(error), 'couldn\'t init admission plugin "Configured": bad configuration')

        class NoInterface:
            name = "NoInterface"

        self.assertRaises(PluginInitError, AdmissionHarness, NoInterface)
        factory = AdmissionPluginFactory("Other", "tests.testing.admission.test_harness:Configured")
        error = self.assertRaises(PluginInitError, AdmissionHarness, factory)
        self.assertIn("its name is Configured", str(error))

    def test_asynchronous(self) -> None:
        """A plugin that waits for something else is awaited, with a clock of the test."""
        clock, waiting = Clock(), Deferred[None]()
        harness = AdmissionHarness(Plugin(lambda attributes: waiting), clock=clock)
        reviewed = ensureDeferred(harness.review_async(CONFIG_MAP))
        self.assertNoResult(reviewed)
        waiting.callback(None)
        self.assertTrue(self.successResultOf(reviewed).allowed)

    def test_waiting(self) -> None:
        """The clock advances while a plugin waits for it."""

        async def admit(attributes: Any) -> None:
            await deferLater(attributes.context.reactor, 5)
            attributes.object["data"] = {"waited": "yes"}

        outcome = AdmissionHarness(Plugin(admit)).create(CONFIG_MAP)
        self.assertEqual(
            outcome.patch,
            [
                {"op": "remove", "path": "/data/k"},
                {"op": "add", "path": "/data/waited", "value": "yes"},
            ],
        )
