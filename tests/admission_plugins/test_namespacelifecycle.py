"""Tests for L{NamespaceLifecycle}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.namespacelifecycle import NamespaceLifecycle
from kubetwist.api.errors import APIStatusError
from tests.admission_plugins.fakes import Context, PluginTestCase, pod, write
from tests.admission_plugins.objects import Objects, attributes, call_plugin


class NamespaceLifecycleTests(SynchronousTestCase):
    """Tests for L{NamespaceLifecycle}."""

    def test_existing(self) -> None:
        """Objects are created in existing namespaces."""
        context = Objects(namespaces_ns={"metadata": {}})
        self.successResultOf(call_plugin(NamespaceLifecycle().admit, attributes(pod(), context=context)))

    def test_missing(self) -> None:
        """A create in a missing namespace is rejected."""
        failure = self.failureResultOf(call_plugin(NamespaceLifecycle().admit, attributes(pod())), APIStatusError)
        self.assertEqual((failure.value.code, failure.value.message), (404, 'namespaces "ns" not found'))

    def test_terminating(self) -> None:
        """A create in a terminating namespace is rejected with a cause that stops retries."""
        context = Objects(namespaces_ns={"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
        failure = self.failureResultOf(
            call_plugin(NamespaceLifecycle().admit, attributes(pod(), context=context)), APIStatusError
        )
        self.assertEqual(failure.value.code, 403)
        assert failure.value.details is not None
        self.assertEqual(failure.value.details["causes"][0]["reason"], "NamespaceTerminating")

    def test_immortal(self) -> None:
        """System namespaces cannot be deleted, other namespaces can."""
        plugin = NamespaceLifecycle()
        self.successResultOf(call_plugin(plugin.admit, attributes(None, "namespaces", "DELETE", name="mine")))
        for name in ("default", "kube-system", "kube-public"):
            failure = self.failureResultOf(
                call_plugin(plugin.admit, attributes(None, "namespaces", "DELETE", name=name)), APIStatusError
            )
            self.assertIn("this namespace may not be deleted", failure.value.message)


class ReviewTests(PluginTestCase):
    """Tests of reviews and generated names."""

    def test_reviews(self) -> None:
        """A LocalSubjectAccessReview does not reveal whether a namespace exists."""
        review = write({"metadata": {}}, "localsubjectaccessreviews.authorization.k8s.io")
        self.admit(NamespaceLifecycle(), review)
        self.assertEqual(self.rejection(NamespaceLifecycle(), write(pod()), admitting=True).code, 404)

    def test_generated_name(self) -> None:
        """The rejection of an object with generateName has that prefix as name."""
        context = Context()
        context.add("", "namespaces", {"metadata": {"name": "ns", "deletionTimestamp": "2026-01-01T00:00:00Z"}})
        obj = {"metadata": {"generateName": "x-"}}
        error = self.rejection(NamespaceLifecycle(), write(obj, "configmaps", context=context, name=""), admitting=True)
        self.assertTrue(error.message.startswith('configmaps "x-" is forbidden: unable to create new content in'))
