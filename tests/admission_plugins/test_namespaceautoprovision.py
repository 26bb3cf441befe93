"""Tests for L{NamespaceAutoProvision}."""

from __future__ import annotations

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.namespaceautoprovision import NamespaceAutoProvision
from kubetwist.admission_plugins.namespacelifecycle import NamespaceLifecycle
from kubetwist.api.errors import APIStatusError
from kubetwist.api.options import CreateOptions
from kubetwist.api.resource import GroupResource
from kubetwist.interfaces import IMutatingAdmission
from tests.admission_plugins.fakes import Context, PluginTestCase, pod, write
from tests.registry.storetools import StoreTestCase


class AutoProvisionTests(PluginTestCase):
    """Tests for L{NamespaceAutoProvision}."""

    plugin = NamespaceAutoProvision()

    def test_created(self) -> None:
        """The namespace of a new object is created once."""
        verifyObject(IMutatingAdmission, self.plugin)
        context = Context()
        self.admit_twice(self.plugin, write(pod(), context=context))
        self.assertEqual(context.created, [{"metadata": {"name": "ns"}}])

    def test_not_created(self) -> None:
        """A dry run creates no namespace; namespaces and cluster-scoped objects need none."""
        context = Context()
        self.admit(self.plugin, write(pod(), context=context, dry_run=True))
        self.admit(self.plugin, write({"metadata": {"name": "n"}}, "nodes", namespace="", context=context))
        self.admit(self.plugin, write({"metadata": {"name": "a"}}, "namespaces", context=context))
        self.assertEqual(context.created, [])

    def test_failure(self) -> None:
        """An existing namespace is not an error; the text of other errors is in the rejection."""
        for error, message in (
            (APIStatusError.already_exists(GroupResource("", "namespaces"), "ns"), ""),
            (APIStatusError.bad_request("so not"), "so not"),
        ):

            class Failing(Context):
                async def create(self, *arguments: object) -> None:
                    raise error  # noqa: B023 - called in this round

            request = write(pod(), context=Failing())
            if message:
                self.assertEqual(self.error_text(self.plugin, request, admitting=True), message)
            else:
                self.admit(self.plugin, request)


class StoredTests(StoreTestCase):
    """Tests of the plugin in front of real stores."""

    def test_created(self) -> None:
        """The namespace is created by the server with all plugins."""
        self.server.admit(NamespaceAutoProvision(), NamespaceLifecycle())
        scope = self.scope.within("fresh")
        store = self.store("configmaps")
        self.successResultOf(store.create(scope, {"metadata": {"name": "a"}}, CreateOptions()))
        namespace = self.stores.get_copy("", "namespaces", "", "fresh")
        assert namespace is not None
        self.assertEqual(namespace["status"]["phase"], "Active")
        self.assertEqual(namespace["spec"]["finalizers"], ["kubernetes"])
