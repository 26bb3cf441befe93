"""Tests of L{kubetwist.registry.generic.capabilities}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.interfaces import (
    ICategoriesProvider,
    IResetFieldsProvider,
    IScoper,
    IShortNamesProvider,
    ISingularNameProvider,
    IStorageVersionProvider,
    ITableConvertor,
)
from kubetwist.registry.generic.capabilities import UnopenedResource
from kubetwist.registry.generic.fieldmanager.resetfields import EXCEPT_SPEC, EXCEPT_STATUS
from kubetwist.registry.generic.parts import StatusStore
from tests.resources.server import Server

STATED = (IScoper, ISingularNameProvider, IShortNamesProvider, ICategoriesProvider, IStorageVersionProvider)


class CapabilitiesTests(SynchronousTestCase):
    """What stores state about their resource."""

    def test_interfaces(self) -> None:
        """A store, and the description of a resource whose store is not needed yet, state the same."""
        store = Server("deployments").stores.get("apps", "deployments")
        unopened = UnopenedResource(store.info)
        for interface in STATED:
            verifyObject(interface, store)
            verifyObject(interface, unopened)
            for name in interface:
                self.assertEqual(getattr(store, name), getattr(unopened, name))
        self.assertEqual(store.storage_version, ("apps", "v1", "Deployment"))

    def test_parts(self) -> None:
        """A store and its status have Tables and reset fields; the status does not name the resource."""
        store = Server("services").stores.get("", "services")
        status = StatusStore(store)
        for one in (store, status):
            verifyObject(ITableConvertor, one)
            verifyObject(IResetFieldsProvider, one)
        self.assertEqual(store.reset_fields, {"v1": EXCEPT_STATUS})
        self.assertEqual(status.reset_fields, {"v1": EXCEPT_SPEC})
        self.assertEqual([interface for interface in STATED if interface.providedBy(status)], [])
