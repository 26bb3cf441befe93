"""Tests for L{OwnerReferencesPermissionEnforcement}."""

from __future__ import annotations

from typing import Any

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.ownerreferencespermissionenforcement import OwnerReferencesPermissionEnforcement
from kubetwist.api.resource import JSONObject
from kubetwist.interfaces import IValidatingAdmission
from tests.admission_plugins.fakes import Context, PluginTestCase, Rights, write


class OwnerTests(PluginTestCase):
    """Tests for L{OwnerReferencesPermissionEnforcement}."""

    plugin = OwnerReferencesPermissionEnforcement()

    def owned(self, *owners: JSONObject, **fields: Any) -> JSONObject:
        """Return an object with owners."""
        return {"metadata": {"name": "x", "ownerReferences": list(owners)}, **fields}

    def owner(
        self, uid: str = "u", api_version: str = "apps/v1", kind: str = "ReplicaSet", **fields: Any
    ) -> JSONObject:
        """Return an owner reference."""
        return {"apiVersion": api_version, "kind": kind, "name": "rs", "uid": uid, **fields}

    def context(self, *allowed: tuple[str, str, str], reason: str = "") -> Context:
        """Return a server with an authorizer that allows some requests."""
        kinds = {("apps", "v1", "ReplicaSet"): [("replicasets", True)], ("", "v1", "Node"): [("nodes", False)]}
        return Context(kinds=kinds, authorizer=Rights(set(allowed), reason))

    def test_cve_2025_5187_and_4563(self) -> None:
        """Changing owner references requires permission to delete the object, also in updates of the status."""
        verifyObject(IValidatingAdmission, self.plugin)
        for resource in ("configmaps", "nodes", "nodes/status"):
            request = write(
                self.owned(self.owner()), resource, "UPDATE", old=self.owned(), context=self.context(reason="no")
            )
            self.assertEqual(
                self.error_text(self.plugin, request),
                "cannot set an ownerRef on a resource you can't delete: no, <nil>",
            )
        allowed = self.context(("delete", "configmaps", "x"))
        self.validate(
            self.plugin, write(self.owned(self.owner()), "configmaps", "UPDATE", old=self.owned(), context=allowed)
        )
        attributes = allowed.authorizer.requests[0]
        self.assertEqual((attributes.namespace, attributes.version, attributes.name), ("ns", "v1", "x"))

    def test_not_required(self) -> None:
        """Creates, updates without changed owners, and the status of pods do not require permission to delete."""
        context = self.context()
        owned = self.owned(self.owner())
        self.validate(self.plugin, write(owned, "configmaps", context=context))
        self.validate(self.plugin, write(owned, "configmaps", "UPDATE", old=owned, context=context))
        self.validate(self.plugin, write(owned, "pods/status", "UPDATE", old=self.owned(), context=context))
        self.assertEqual(context.authorizer.requests, [])

    def test_blocking(self) -> None:
        """blockOwnerDeletion requires permission to update the finalizers of the owner."""
        blocking = self.owned(self.owner(blockOwnerDeletion=True))
        context = self.context(reason="no")
        self.assertEqual(
            self.error_text(self.plugin, write(blocking, "configmaps", context=context)),
            "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: "
            "no, <nil>",
        )
        attributes = context.authorizer.requests[0]
        self.assertEqual(
            (
                attributes.verb,
                attributes.group,
                attributes.resource,
                attributes.subresource,
                attributes.namespace,
                attributes.name,
            ),
            ("update", "apps", "replicasets", "finalizers", "ns", "rs"),
        )
        allowed = self.context(("update", "replicasets/finalizers", "rs"))
        self.validate(self.plugin, write(blocking, "configmaps", context=allowed))
        node = self.owned(self.owner(api_version="v1", kind="Node", blockOwnerDeletion=True))
        context = self.context()
        self.assertEqual(self.rejection(self.plugin, write(node, "configmaps", context=context)).code, 403)
        self.assertEqual(context.authorizer.requests[0].namespace, "")

    def test_existing_blocking(self) -> None:
        """Only owners that were not blocked before are checked."""
        old = self.owned(self.owner(blockOwnerDeletion=True), self.owner("v"))
        new = self.owned(self.owner(blockOwnerDeletion=True), self.owner("v", blockOwnerDeletion=True))
        context = self.context(("delete", "configmaps", "x"), ("update", "replicasets/finalizers", "rs"))
        self.validate(self.plugin, write(new, "configmaps", "UPDATE", old=old, context=context))
        self.assertEqual([one.verb for one in context.authorizer.requests], ["delete", "update"])

    def test_unknown_kind(self) -> None:
        """An owner of an unknown kind or invalid version cannot be blocked."""
        text = "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {} Kind {}: "
        for api_version, kind, message in (
            ("apps/v9", "ReplicaSet", 'no matches for kind "ReplicaSet" in version "apps/v9"'),
            ("a/b/c", "X", "unexpected GroupVersion string: a/b/c"),
        ):
            owned = self.owned(self.owner(api_version=api_version, kind=kind, blockOwnerDeletion=True))
            result = self.error_text(self.plugin, write(owned, "configmaps", context=self.context()))
            self.assertEqual(result, text.format(api_version, kind) + message)

    def test_no_metadata(self) -> None:
        """An object without metadata has no owners."""
        self.validate(self.plugin, write({"spec": {}}, "pods/x", context=self.context(), name="x"))
