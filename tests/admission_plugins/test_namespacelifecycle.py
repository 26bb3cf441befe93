"""Tests for L{NamespaceLifecycle}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.namespacelifecycle import NamespaceLifecycle
from kubetwist.api.errors import APIStatusError
from tests.admission_plugins.fakes import Context, PluginTestCase, pod, write
from tests.admission_plugins.objects import Objects, ask, attributes


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


class ReviewTests(PluginTestCase):
    """Tests for L{NamespaceLifecycle} where somebody only asks."""

    def test_reviews(self) -> None:
        """Whoever asks what somebody may do in a namespace does not learn whether there is one."""
        review = write({"metadata": {}}, "localsubjectaccessreviews.authorization.k8s.io")
        self.admit(NamespaceLifecycle(), review)
        self.assertEqual(self.refusal(NamespaceLifecycle(), write(pod()), admitting=True).code, 404)

    def test_generated_name(self) -> None:
        """A refusal names what an object's name begins with while it has none."""
        context = Context()
        context.add("", "namespaces", {"metadata": {"name": "ns", "deletionTimestamp": "2026-01-01T00:00:00Z"}})
        obj = {"metadata": {"generateName": "x-"}}
        error = self.refusal(NamespaceLifecycle(), write(obj, "configmaps", context=context, name=""), admitting=True)
        self.assertTrue(error.message.startswith('configmaps "x-" is forbidden: unable to create new content in'))
