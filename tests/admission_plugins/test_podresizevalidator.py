"""Tests for L{PodResizeValidator}."""

from __future__ import annotations

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.podresizevalidator import PodResizeValidator
from kubetwist.interfaces import IValidatingAdmission
from tests.admission_plugins.fakes import pod, write
from tests.admission_plugins.podtools import ResizeTestCase


class ResizeTests(ResizeTestCase):
    """Tests for L{PodResizeValidator}."""

    def test_allocatable(self) -> None:
        """A pod cannot request more than the node's allocatable resources."""
        plugin = PodResizeValidator()
        verifyObject(IValidatingAdmission, plugin)
        context = self.node(allocatable={"cpu": "2", "memory": "2Gi"})
        old = self.sized()
        self.validate(plugin, write(self.sized("2", "2Gi"), "pods/resize", "UPDATE", old=old, context=context))
        message = self.error_text(
            plugin, write(self.sized("2500m", "3Gi"), "pods/resize", "UPDATE", old=old, context=context)
        )
        self.assertEqual(
            message,
            "Node didn't have enough allocatable resources: cpu, requested: 2500, allocatable: 2000; "
            "memory, requested: 3221225472, allocatable: 2147483648",
        )

    def test_node(self) -> None:
        """The node must exist and run Linux; a pod without a node is not checked."""
        plugin, old = PodResizeValidator(), self.sized()
        resized = self.sized("1500m")
        self.assertEqual(
            self.error_text(plugin, write(resized, "pods/resize", "UPDATE", old=old)), 'node "n" not found'
        )
        context = self.node("windows", allocatable={"cpu": "9", "memory": "9Gi"})
        self.assertEqual(
            self.error_text(plugin, write(resized, "pods/resize", "UPDATE", old=old, context=context)),
            'pod resize is only supported on linux nodes, node "n" is "windows"',
        )
        self.validate(plugin, write(old, "pods/resize", "UPDATE", old=old))
        self.validate(plugin, write(pod(), "pods/resize", "UPDATE", old=old))
