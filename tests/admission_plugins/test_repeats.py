"""Tests of plugins that are called twice for one write."""

from __future__ import annotations

from typing import Any

import orjson

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.defaultingressclass import DefaultIngressClass
from kubetwist.admission_plugins.defaultstorageclass import DefaultStorageClass
from kubetwist.admission_plugins.defaulttolerationseconds import DefaultTolerationSeconds
from kubetwist.admission_plugins.limitranger import LimitRanger
from kubetwist.admission_plugins.namespacelifecycle import NamespaceLifecycle
from kubetwist.admission_plugins.podtopologylabels import PodTopologyLabels
from kubetwist.admission_plugins.priority import Priority
from kubetwist.admission_plugins.runtimeclass import RuntimeClass
from kubetwist.admission_plugins.serviceaccount import ServiceAccount
from kubetwist.admission_plugins.storageobjectinuseprotection import StorageObjectInUseProtection
from kubetwist.admission_plugins.taintnodesbycondition import TaintNodesByCondition
from kubetwist.api.resource import JSONObject
from kubetwist.interfaces import IMutatingAdmission, IValidatingAdmission
from tests.admission_plugins.cluster import cluster
from tests.admission_plugins.fakes import PluginTestCase, every_container, pod, write
from tests.admission_plugins.objects import ACCOUNT, Objects, attributes, call_plugin


class TwiceTests(PluginTestCase):
    """Tests of mutating plugins that are called twice, as for a reinvocation."""

    def test_pods(self) -> None:
        """The second call for a pod changes nothing."""
        for plugin in (
            NamespaceLifecycle(),
            LimitRanger(),
            ServiceAccount(),
            Priority(),
            DefaultTolerationSeconds(),
            RuntimeClass(),
            PodTopologyLabels(),
        ):
            obj = every_container()
            obj["spec"].update(runtimeClassName="box", nodeName="n")
            before = obj["spec"].copy(), obj["metadata"].copy()
            after = self.admit_twice(plugin, write(obj, context=cluster()))
            if plugin.name != "NamespaceLifecycle":
                self.assertNotEqual((after["spec"], after["metadata"]), before, plugin.name)

    def test_other_resources(self) -> None:
        """The second call for objects of other resources changes nothing."""
        plugins: list[tuple[Any, str]] = [
            (TaintNodesByCondition(), "nodes"),
            (StorageObjectInUseProtection(), "persistentvolumes"),
            (StorageObjectInUseProtection(), "persistentvolumeclaims"),
            (StorageObjectInUseProtection(), "volumeattributesclasses.storage.k8s.io"),
            (DefaultStorageClass(), "persistentvolumeclaims"),
            (DefaultIngressClass(), "ingresses.networking.k8s.io"),
            (PodTopologyLabels(), "pods/binding"),
        ]
        for plugin, resource in plugins:
            obj: JSONObject = {"metadata": {"name": "x"}, "spec": {}, "target": {"name": "n"}}
            after = self.admit_twice(plugin, write(obj, resource, context=cluster()))
            self.assertNotEqual(after, {"metadata": {"name": "x"}, "spec": {}, "target": {"name": "n"}}, plugin.name)

    def test_shared(self) -> None:
        """What a plugin puts into a pod is the pod's own: the next plugin can change it."""
        context = cluster()
        obj = pod(runtimeClassName="box")
        self.admit(RuntimeClass(), write(obj, context=context))
        obj["spec"]["tolerations"][0]["effect"] = "NoSchedule"
        obj["spec"]["nodeSelector"]["c"] = "d"
        obj["spec"]["overhead"]["memory"] = "1"
        result = context.objects["node.k8s.io", "runtimeclasses", "", "box"]
        self.assertEqual(result["scheduling"]["tolerations"], [{"key": "box", "operator": "Exists"}])


class PluginTests(SynchronousTestCase):
    """Tests of all plugins."""

    def test_provided(self) -> None:
        """Every plugin provides the interfaces that it declares."""
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
        """The second call of a plugin changes nothing."""
        context = Objects(serviceaccounts_default=ACCOUNT)
        for plugin in (ServiceAccount(), DefaultTolerationSeconds(), Priority()):
            obj = pod()
            self.successResultOf(call_plugin(plugin.admit, attributes(obj, context=context)))
            once = orjson.dumps(obj)
            self.successResultOf(call_plugin(plugin.admit, attributes(obj, context=context)))
            self.assertEqual(orjson.dumps(obj), once)
