"""Tests for the built-in plugins of L{kubetwist.admission_plugins}."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import orjson

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.admission.attributes import AdmissionAttributes
from kubetwist.admission_plugins.defaulttolerationseconds import DefaultTolerationSeconds
from kubetwist.admission_plugins.namespacelifecycle import NamespaceLifecycle
from kubetwist.admission_plugins.priority import Priority
from kubetwist.admission_plugins.serviceaccount import MOUNT_PATH, ServiceAccount
from kubetwist.admission_plugins.storageobjectinuseprotection import StorageObjectInUseProtection
from kubetwist.admission_plugins.taintnodesbycondition import TaintNodesByCondition
from kubetwist.api.errors import APIStatusError
from kubetwist.api.frozen import frozen
from kubetwist.api.resource import JSONObject, UserInfo
from kubetwist.interfaces import IMutatingAdmission, IValidatingAdmission
from tests.admission_plugins.fakes import Context


class Objects(Context):
    """What plugins look up: a dictionary by resource and name."""

    def __init__(self, **found: JSONObject) -> None:
        super().__init__()
        self._found = found

    def view(self, group: str, resource: str, namespace: str, name: str) -> JSONObject | None:
        """See L{Context.view}."""
        found = self._found.get(f"{resource}_{name}".replace("-", "_"))
        return None if found is None else frozen(found)


async def ask(method: Callable[[AdmissionAttributes], Any], attributes: AdmissionAttributes) -> None:
    """Ask a plugin, whether it is asynchronous or not."""
    answer = method(attributes)
    if answer is not None:
        await answer


def attributes(
    obj: JSONObject | None,
    resource: str = "pods",
    operation: str = "CREATE",
    context: Objects | None = None,
    name: str = "x",
    namespace: str = "ns",
    old: JSONObject | None = None,
) -> AdmissionAttributes:
    """One write."""
    return AdmissionAttributes(
        operation, "", "v1", resource, "", "", namespace, name, obj, old, UserInfo("u"), False, context or Objects()
    )


def pod(**spec: Any) -> JSONObject:
    """A pod of one container."""
    return {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


ACCOUNT: JSONObject = {"metadata": {"name": "default"}}


class PluginTests(SynchronousTestCase):
    """What all have in common."""

    def test_provided(self) -> None:
        """Every plugin provides what it declares."""
        for plugin in (
            ServiceAccount(),
            DefaultTolerationSeconds(),
            Priority(),
            TaintNodesByCondition(),
            StorageObjectInUseProtection(),
            NamespaceLifecycle(),
        ):
            verifyObject(IMutatingAdmission, plugin)
        for plugin in (ServiceAccount(), Priority()):
            verifyObject(IValidatingAdmission, plugin)

    def test_twice(self) -> None:
        """What a plugin has changed once, it does not change again."""
        context = Objects(serviceaccounts_default=ACCOUNT)
        for plugin in (ServiceAccount(), DefaultTolerationSeconds(), Priority()):
            obj = pod()
            self.successResultOf(ask(plugin.admit, attributes(obj, context=context)))
            once = orjson.dumps(obj)
            self.successResultOf(ask(plugin.admit, attributes(obj, context=context)))
            self.assertEqual(orjson.dumps(obj), once)


class ServiceAccountTests(SynchronousTestCase):
    """Tests for L{ServiceAccount}."""

    def admit(self, obj: JSONObject, **account: Any) -> JSONObject:
        """Admit a pod where there is one account."""
        context = Objects(serviceaccounts_default={**ACCOUNT, **account})
        self.successResultOf(ask(ServiceAccount().admit, attributes(obj, context=context)))
        spec: JSONObject = obj["spec"]
        return spec

    def test_default(self) -> None:
        """A pod that names no account gets the namespace's default one, and a volume with its token."""
        spec = self.admit(pod())
        self.assertEqual((spec["serviceAccountName"], spec["serviceAccount"]), ("default", "default"))
        volume = spec["volumes"][0]
        self.assertTrue(volume["name"].startswith("kube-api-access-"))
        self.assertEqual(
            spec["containers"][0]["volumeMounts"],
            [{"name": volume["name"], "readOnly": True, "mountPath": MOUNT_PATH}],
        )
        kinds = [next(iter(source)) for source in volume["projected"]["sources"]]
        self.assertEqual(kinds, ["serviceAccountToken", "configMap", "downwardAPI"])

    def test_no_token(self) -> None:
        """A pod, and else its account, can do without the token."""
        self.assertNotIn("volumes", self.admit(pod(automountServiceAccountToken=False)))
        self.assertNotIn("volumes", self.admit(pod(), automountServiceAccountToken=False))
        wanting = pod(automountServiceAccountToken=True)
        self.assertIn("volumes", self.admit(wanting, automountServiceAccountToken=False))

    def test_own_mount(self) -> None:
        """A container that has something else there keeps it."""
        mount = {"name": "mine", "mountPath": MOUNT_PATH}
        spec = self.admit(pod(containers=[{"name": "c", "volumeMounts": [mount]}], volumes=[{"name": "mine"}]))
        self.assertEqual(spec["containers"][0]["volumeMounts"], [mount])
        self.assertEqual(spec["volumes"], [{"name": "mine"}])

    def test_pull_secrets(self) -> None:
        """The account's pull secrets are the pod's, unless it has its own."""
        secrets = [{"name": "reg"}]
        self.assertEqual(self.admit(pod(), imagePullSecrets=secrets)["imagePullSecrets"], secrets)
        own = self.admit(pod(imagePullSecrets=[{"name": "mine"}]), imagePullSecrets=secrets)
        self.assertEqual(own["imagePullSecrets"], [{"name": "mine"}])

    def test_missing(self) -> None:
        """A pod of an account that is not there is refused."""
        failure = self.failureResultOf(
            ask(ServiceAccount().admit, attributes(pod(serviceAccountName="ghost"))), APIStatusError
        )
        self.assertEqual(
            (failure.value.code, failure.value.message),
            (
                403,
                'pods "x" is forbidden: error looking up service account ns/ghost: serviceaccount "ghost" not found',
            ),
        )

    def test_mirror_pod(self) -> None:
        """What a kubelet runs by itself has no account."""
        obj = pod(serviceAccountName="default")
        obj["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
        failure = self.failureResultOf(ask(ServiceAccount().admit, attributes(obj)), APIStatusError)
        self.assertIn("a mirror pod may not reference service accounts", failure.value.message)

    def test_enforced_secrets(self) -> None:
        """An account may restrict its pods to its own secrets, in volumes, variables and whole environments."""
        account = {
            "metadata": {"name": "default", "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}},
            "secrets": [{"name": "ok"}],
        }
        for spec in (
            {"volumes": [{"name": "v", "secret": {"secretName": "other"}}]},
            {"containers": [{"name": "c", "envFrom": [{"secretRef": {"name": "other"}}]}]},
            {"containers": [{"name": "c", "env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "other"}}}]}]},
            {"imagePullSecrets": [{"name": "other"}]},
        ):
            context = Objects(serviceaccounts_default=account)
            admitted = ask(ServiceAccount().admit, attributes(pod(**spec), context=context))
            failure = self.failureResultOf(admitted, APIStatusError)
            self.assertIn("is not allowed because service account default does not reference", failure.value.message)


class TolerationTests(SynchronousTestCase):
    """Tests for L{DefaultTolerationSeconds}."""

    def admit(self, **spec: Any) -> list[Any]:
        """The tolerations of a pod after admission."""
        obj = pod(**spec)
        self.successResultOf(ask(DefaultTolerationSeconds().admit, attributes(obj)))
        found: list[Any] = obj["spec"].get("tolerations", [])
        return found

    def test_added(self) -> None:
        """A pod stays for five minutes on a node that fails."""
        keys = [(one["key"], one["tolerationSeconds"]) for one in self.admit()]
        self.assertEqual(keys, [("node.kubernetes.io/not-ready", 300), ("node.kubernetes.io/unreachable", 300)])

    def test_own(self) -> None:
        """What the pod says itself stands; one that tolerates everything gets nothing."""
        own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
        self.assertEqual(len(self.admit(tolerations=[own])), 2)
        everything = [{"operator": "Exists"}]
        self.assertEqual(self.admit(tolerations=everything), everything)


class PriorityTests(SynchronousTestCase):
    """Tests for L{Priority}."""

    CLASS: ClassVar[JSONObject] = {"metadata": {"name": "low"}, "value": -5, "preemptionPolicy": "Never"}

    def admit(self, **spec: Any) -> JSONObject:
        """A pod's spec after admission."""
        obj = pod(**spec)
        context = Objects(priorityclasses_low=self.CLASS)
        self.successResultOf(ask(Priority().admit, attributes(obj, context=context)))
        found: JSONObject = obj["spec"]
        return found

    def test_classes(self) -> None:
        """A pod without a class has priority 0, others that of their class."""
        spec = self.admit()
        self.assertEqual((spec["priority"], spec["preemptionPolicy"]), (0, "PreemptLowerPriority"))
        spec = self.admit(priorityClassName="low")
        self.assertEqual((spec["priority"], spec["preemptionPolicy"]), (-5, "Never"))
        self.assertEqual(self.admit(priorityClassName="system-node-critical")["priority"], 2000001000)

    def test_refused(self) -> None:
        """A class that is not there, or a number of the client's own, is refused."""
        for spec, text in (
            ({"priorityClassName": "none"}, "no PriorityClass with name none was found"),
            ({"priority": 7}, "the integer value of priority (7) must not be provided in pod spec"),
            ({"preemptionPolicy": "Never"}, "the string value of PreemptionPolicy (Never) must not be provided"),
        ):
            failure = self.failureResultOf(ask(Priority().admit, attributes(pod(**spec))), APIStatusError)
            self.assertEqual(failure.value.code, 403)
            self.assertIn(text, failure.value.message)

    def test_update(self) -> None:
        """A PUT that leaves the priority out keeps it."""
        obj, old = pod(), pod(priority=3, preemptionPolicy="Never")
        self.successResultOf(ask(Priority().admit, attributes(obj, operation="UPDATE", old=old)))
        self.assertEqual((obj["spec"]["priority"], obj["spec"]["preemptionPolicy"]), (3, "Never"))


class NamespaceLifecycleTests(SynchronousTestCase):
    """Tests for L{NamespaceLifecycle}."""

    def test_there(self) -> None:
        """Objects are created in namespaces that are there."""
        context = Objects(namespaces_ns={"metadata": {}})
        self.successResultOf(ask(NamespaceLifecycle().admit, attributes(pod(), context=context)))

    def test_missing(self) -> None:
        """Nothing is created in a namespace that is not there."""
        failure = self.failureResultOf(ask(NamespaceLifecycle().admit, attributes(pod())), APIStatusError)
        self.assertEqual((failure.value.code, failure.value.message), (404, 'namespaces "ns" not found'))

    def test_terminating(self) -> None:
        """Nothing is created in a namespace that goes; the cause tells clients to give up."""
        context = Objects(namespaces_ns={"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
        failure = self.failureResultOf(
            ask(NamespaceLifecycle().admit, attributes(pod(), context=context)), APIStatusError
        )
        self.assertEqual(failure.value.code, 403)
        assert failure.value.details is not None
        self.assertEqual(failure.value.details["causes"][0]["reason"], "NamespaceTerminating")

    def test_immortal(self) -> None:
        """The cluster's own namespaces can not be deleted, others can."""
        plugin = NamespaceLifecycle()
        self.successResultOf(ask(plugin.admit, attributes(None, "namespaces", "DELETE", name="mine")))
        for name in ("default", "kube-system", "kube-public"):
            failure = self.failureResultOf(
                ask(plugin.admit, attributes(None, "namespaces", "DELETE", name=name)), APIStatusError
            )
            self.assertIn("this namespace may not be deleted", failure.value.message)


class SmallPluginTests(SynchronousTestCase):
    """Tests for L{TaintNodesByCondition} and L{StorageObjectInUseProtection}."""

    def test_taint(self) -> None:
        """A new node takes no pods before it is found ready, and is told once."""
        node: JSONObject = {"metadata": {"name": "n"}}
        for _ in range(2):
            self.successResultOf(ask(TaintNodesByCondition().admit, attributes(node, "nodes")))
        self.assertEqual(node["spec"]["taints"], [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}])

    def test_protection(self) -> None:
        """Volumes and claims wait for their users when they are deleted."""
        for resource, finalizer in (
            ("persistentvolumes", "kubernetes.io/pv-protection"),
            ("persistentvolumeclaims", "kubernetes.io/pvc-protection"),
        ):
            obj: JSONObject = {"metadata": {}}
            self.successResultOf(ask(StorageObjectInUseProtection().admit, attributes(obj, resource)))
            self.assertEqual(obj["metadata"]["finalizers"], [finalizer])
