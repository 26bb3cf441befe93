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

    def test_made(self) -> None:
        """A namespace is made when something is created in it, and only once."""
        verifyObject(IMutatingAdmission, self.plugin)
        context = Context()
        self.admit_twice(self.plugin, write(pod(), context=context))
        self.assertEqual(context.created, [{"metadata": {"name": "ns"}}])

    def test_not_made(self) -> None:
        """A dry run makes nothing, and namespaces and what is in none need none."""
        context = Context()
        self.admit(self.plugin, write(pod(), context=context, dry_run=True))
        self.admit(self.plugin, write({"metadata": {"name": "n"}}, "nodes", namespace="", context=context))
        self.admit(self.plugin, write({"metadata": {"name": "a"}}, "namespaces", context=context))
        self.assertEqual(context.created, [])

    def test_fails(self) -> None:
        """That somebody else was faster is no failure; anything else is the reason for a refusal."""
        for error, why in (
            (APIStatusError.already_exists(GroupResource("", "namespaces"), "ns"), ""),
            (APIStatusError.bad_request("so not"), "so not"),
        ):

            class Failing(Context):
                async def create(self, *arguments: object) -> None:
                    raise error  # noqa: B023 - called in this round

            made = write(pod(), context=Failing())
            if why:
                self.assertEqual(self.why(self.plugin, made, admitting=True), why)
            else:
                self.admit(self.plugin, made)


class StoredTests(StoreTestCase):
    """L{NamespaceAutoProvision} in front of real stores."""

    def test_created(self) -> None:
        """The namespace is a real one, made by the server itself through all its plugins."""
        self.server.admit(NamespaceAutoProvision(), NamespaceLifecycle())
        scope = self.scope.within("fresh")
        store = self.store("configmaps")
        self.successResultOf(store.create(scope, {"metadata": {"name": "a"}}, CreateOptions()))
        namespace = self.stores.get_copy("", "namespaces", "", "fresh")
        assert namespace is not None
        self.assertEqual(namespace["status"]["phase"], "Active")
        self.assertEqual(namespace["spec"]["finalizers"], ["kubernetes"])
