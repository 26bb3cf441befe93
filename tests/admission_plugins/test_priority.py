"""Tests for L{Priority}."""

from __future__ import annotations

from typing import Any, ClassVar

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.priority import Priority
from kubetwist.api.errors import APIStatusError
from kubetwist.api.resource import JSONObject
from tests.admission_plugins.cluster import cluster
from tests.admission_plugins.fakes import PluginTestCase, pod, write
from tests.admission_plugins.objects import Objects, attributes, call_plugin


class PriorityTests(SynchronousTestCase):
    """Tests for L{Priority}."""

    CLASS: ClassVar[JSONObject] = {"metadata": {"name": "low"}, "value": -5, "preemptionPolicy": "Never"}

    def admit(self, **spec: Any) -> JSONObject:
        """Return the spec of a pod after admission."""
        obj = pod(**spec)
        context = Objects(priorityclasses_low=self.CLASS)
        self.successResultOf(call_plugin(Priority().admit, attributes(obj, context=context)))
        result: JSONObject = obj["spec"]
        return result

    def test_classes(self) -> None:
        """A pod without a class has priority 0, a pod with a class the priority of the class."""
        spec = self.admit()
        self.assertEqual((spec["priority"], spec["preemptionPolicy"]), (0, "PreemptLowerPriority"))
        spec = self.admit(priorityClassName="low")
        self.assertEqual((spec["priority"], spec["preemptionPolicy"]), (-5, "Never"))
        self.assertEqual(self.admit(priorityClassName="system-node-critical")["priority"], 2000001000)

    def test_rejected(self) -> None:
        """An unknown class and a priority that differs from the class are rejected."""
        for spec, text in (
            ({"priorityClassName": "none"}, "no PriorityClass with name none was found"),
            ({"priority": 7}, "the integer value of priority (7) must not be provided in pod spec"),
            ({"preemptionPolicy": "Never"}, "the string value of PreemptionPolicy (Never) must not be provided"),
        ):
            failure = self.failureResultOf(call_plugin(Priority().admit, attributes(pod(**spec))), APIStatusError)
            self.assertEqual(failure.value.code, 403)
            self.assertIn(text, failure.value.message)

    def test_update(self) -> None:
        """An update without the priority keeps it."""
        obj, old = pod(), pod(priority=3, preemptionPolicy="Never")
        self.successResultOf(call_plugin(Priority().admit, attributes(obj, operation="UPDATE", old=old)))
        self.assertEqual((obj["spec"]["priority"], obj["spec"]["preemptionPolicy"]), (3, "Never"))


class DefaultPriorityTests(PluginTestCase):
    """Tests of the default class."""

    def test_default(self) -> None:
        """A pod without a class gets the default class; of several, the one with the lowest value."""
        context = cluster()
        low = {"metadata": {"name": "low"}, "value": 3, "globalDefault": True, "preemptionPolicy": "Never"}
        context.add("scheduling.k8s.io", "priorityclasses", low)
        spec = self.admit_twice(Priority(), write(pod(), context=context))["spec"]
        self.assertEqual((spec["priorityClassName"], spec["priority"], spec["preemptionPolicy"]), ("low", 3, "Never"))

    def test_one_default(self) -> None:
        """A second default class is rejected; the existing one can be changed."""
        context, resource = cluster(), "priorityclasses.scheduling.k8s.io"
        other = {"metadata": {"name": "other"}, "value": 1, "globalDefault": True}
        text = "PriorityClass usual is already marked as default. Only one default can exist"
        self.assertEqual(self.error_text(Priority(), write(other, resource, context=context)), text)
        was = {**other, "globalDefault": False}
        self.assertEqual(self.error_text(Priority(), write(other, resource, "UPDATE", old=was, context=context)), text)
        usual = {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True}
        self.validate(Priority(), write(usual, resource, "UPDATE", old=usual, context=context))
        self.validate(Priority(), write(was, resource, context=context))
        self.validate(Priority(), write(other, resource))
