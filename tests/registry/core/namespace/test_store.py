"""Tests of L{kubetwist.registry.core.namespace.store}."""

from __future__ import annotations

from typing import Any

from zope.interface.verify import verifyObject

from kubetwist.api.options import DeleteOptions, UpdateOptions
from kubetwist.api.requestscope import RequestScope
from kubetwist.interfaces import IPatcher, IUpdater
from kubetwist.registry.core.namespace.store import finalize_rules
from kubetwist.registry.generic.parts import SubresourceUpdater
from tests.registry.storetools import StoreTestCase


class NamespaceTests(StoreTestCase):
    """Tests of the deletion of namespaces in two steps."""

    def setUp(self) -> None:
        """Create a namespace."""
        super().setUp()
        self.namespaces = self.store("namespaces")
        self.scope = RequestScope()
        self.first = self.made(self.namespaces, {"metadata": {"name": "n"}})

    def terminating(self) -> Any:
        """Return the namespace after a DELETE."""
        marked, gone = self.delete(self.namespaces, "n")
        self.assertFalse(gone)
        return marked

    def test_born_active(self) -> None:
        """A new namespace has the phase Active and the finalizer kubernetes."""
        self.assertEqual(self.first["status"], {"phase": "Active"})
        self.assertEqual(self.first["spec"], {"finalizers": ["kubernetes"]})

    def test_delete(self) -> None:
        """A deleted namespace is terminating; a second DELETE changes nothing."""
        marked = self.terminating()
        self.assertEqual(marked["status"]["phase"], "Terminating")
        self.assertIn("deletionTimestamp", marked["metadata"])
        self.assertEqual(self.terminating(), marked)

    def test_finalize(self) -> None:
        """The namespace is removed when C{finalize} removes its last finalizer."""
        self.terminating()
        part = SubresourceUpdater(self.namespaces, "finalize", finalize_rules)
        verifyObject(IUpdater, part)
        self.assertFalse(IPatcher.providedBy(part))
        events = self.events(self.namespaces)
        done = self.stored(self.namespaces, "n", "")
        done["spec"] = {}
        self.successResultOf(part.update(self.scope, "n", lambda old: done, UpdateOptions()))
        self.assertIsNone(self.stored(self.namespaces, "n", ""))
        self.assertEqual(events, [("DELETED", "n")])

    def test_finalizers_of_metadata(self) -> None:
        """A finalizer in the metadata prevents the removal of a finalized namespace."""
        self.changed(self.namespaces, "n", lambda obj: obj["metadata"].update(finalizers=["example.org/wait"]))
        self.terminating()
        part = SubresourceUpdater(self.namespaces, "finalize", finalize_rules)
        done = self.stored(self.namespaces, "n", "")
        done["spec"] = {}
        self.successResultOf(part.update(self.scope, "n", lambda old: done, UpdateOptions()))
        self.assertIsNotNone(self.stored(self.namespaces, "n", ""))
        self.changed(self.namespaces, "n", lambda obj: obj["metadata"].pop("finalizers"))
        self.assertIsNone(self.stored(self.namespaces, "n", ""))

    def test_held_by_its_spec(self) -> None:
        """C{spec.finalizers} prevent the removal when the last finalizer of the metadata is removed."""
        self.changed(self.namespaces, "n", lambda obj: obj["metadata"].update(finalizers=["example.org/wait"]))
        self.terminating()
        self.changed(self.namespaces, "n", lambda obj: obj["metadata"].pop("finalizers"))
        self.assertIsNotNone(self.stored(self.namespaces, "n", ""))

    def test_preconditions(self) -> None:
        """A DELETE with another uid is a conflict."""
        error = self.refused(self.namespaces.delete(self.scope, "n", DeleteOptions(precondition_uid="other")))
        self.assertEqual(error.code, 409)
        self.assertIn("Precondition failed: UID in precondition: other, UID in object meta: ", error.message)
        self.assertTrue(error.message.startswith('Operation cannot be fulfilled on namespaces "n": '), error.message)
        options = DeleteOptions(precondition_resource_version="x")
        error = self.refused(self.namespaces.delete(self.scope, "n", options))
        self.assertIn("ResourceVersion in precondition: x, ResourceVersion in object meta: ", error.message)
