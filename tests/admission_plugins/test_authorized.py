"""Tests for the plugins that ask the authorizer, and for what may not be in a service."""

from __future__ import annotations

from typing import Any

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.certificateapproval import CertificateApproval
from kubetwist.admission_plugins.certificatesigning import CertificateSigning
from kubetwist.admission_plugins.clustertrustbundleattest import ClusterTrustBundleAttest
from kubetwist.admission_plugins.denyserviceexternalips import DenyServiceExternalIPs
from kubetwist.admission_plugins.ownerreferencespermissionenforcement import OwnerReferencesPermissionEnforcement
from kubetwist.api.resource import JSONObject
from kubetwist.interfaces import IValidatingAdmission
from tests.admission_plugins.fakes import Context, PluginTestCase, Rights, write

SIGNER = "example.com/signer"


def request(signer: str = SIGNER, **status: Any) -> JSONObject:
    """A request for a certificate."""
    return {"metadata": {"name": "csr"}, "spec": {"signerName": signer}, "status": status}


class SignerTests(PluginTestCase):
    """Tests for L{CertificateApproval}, L{CertificateSigning} and L{ClusterTrustBundleAttest}."""

    def test_approval(self) -> None:
        """Whoever approves must be allowed to for the signer, or for all signers of its domain."""
        plugin, resource = CertificateApproval(), "certificatesigningrequests.certificates.k8s.io/approval"
        verifyObject(IValidatingAdmission, plugin)
        for allowed in ("", SIGNER, "example.com/*"):
            rights = Rights({("approve", "signers", allowed)})
            # What an update says the signer is does not matter.
            made = write(request("other.com/x"), resource, "UPDATE", old=request(), context=Context(authorizer=rights))
            if allowed:
                self.validate(plugin, made)
            else:
                why = self.why(plugin, made)
                self.assertEqual(why, f'user not permitted to approve requests with signerName "{SIGNER}"')
            question = rights.asked[0]
            self.assertEqual(
                (question.user.name, question.group, question.version, question.namespace),
                ("alice", "certificates.k8s.io", "*", ""),
            )

    def test_signing(self) -> None:
        """Whoever issues a certificate, or says why not, must be allowed to sign."""
        plugin, resource = CertificateSigning(), "certificatesigningrequests.certificates.k8s.io/status"
        verifyObject(IValidatingAdmission, plugin)
        for status in ({"certificate": "x"}, {"conditions": [{"type": "Failed"}]}):
            for rights in (Rights(), Rights({("sign", "signers", SIGNER)})):
                made = write(request(**status), resource, "UPDATE", old=request(), context=Context(authorizer=rights))
                if rights.allowed:
                    self.validate(plugin, made)
                else:
                    why = self.why(plugin, made)
                    self.assertEqual(why, f'user not permitted to sign requests with signerName "{SIGNER}"')
        unchanged = write(request(), resource, "UPDATE", old=request(), context=Context(authorizer=Rights()))
        self.validate(plugin, unchanged)

    def test_attest(self) -> None:
        """Whoever says whom to trust must be allowed to for the signer; collecting garbage needs no right."""
        plugin, resource = ClusterTrustBundleAttest(), "clustertrustbundles.certificates.k8s.io"
        verifyObject(IValidatingAdmission, plugin)
        context = Context(authorizer=Rights())

        def bundle(signer: str, **more: Any) -> JSONObject:
            meta = {"name": "b", **more.pop("metadata", {})}
            return {"metadata": meta, "spec": {"signerName": signer, **more}}

        why = self.why(plugin, write(bundle(SIGNER), resource, context=context))
        self.assertEqual(why, f'user not permitted to attest for signerName "{SIGNER}"')
        self.validate(plugin, write(bundle(""), resource, context=context))
        collected = bundle(SIGNER, metadata={"ownerReferences": [{"uid": "u"}], "finalizers": ["a/b"]})
        self.validate(plugin, write(collected, resource, "UPDATE", old=bundle(SIGNER), context=context))
        changed = bundle(SIGNER, trustBundle="x")
        self.assertEqual(
            self.refusal(plugin, write(changed, resource, "UPDATE", old=bundle(SIGNER), context=context)).code, 403
        )
        allowed = Context(authorizer=Rights({("attest", "signers", SIGNER)}))
        self.validate(plugin, write(changed, resource, "UPDATE", old=bundle(SIGNER), context=allowed))

    def test_no_authorizer(self) -> None:
        """Where there is no authorizer, all is allowed."""
        resource = "clustertrustbundles.certificates.k8s.io"
        self.validate(ClusterTrustBundleAttest(), write({"metadata": {}, "spec": {"signerName": SIGNER}}, resource))


class OwnerTests(PluginTestCase):
    """Tests for L{OwnerReferencesPermissionEnforcement}."""

    plugin = OwnerReferencesPermissionEnforcement()

    def owned(self, *owners: JSONObject, **more: Any) -> JSONObject:
        """An object with owners."""
        return {"metadata": {"name": "x", "ownerReferences": list(owners)}, **more}

    def owner(self, uid: str = "u", api_version: str = "apps/v1", kind: str = "ReplicaSet", **more: Any) -> JSONObject:
        """An owner."""
        return {"apiVersion": api_version, "kind": kind, "name": "rs", "uid": uid, **more}

    def context(self, *allowed: tuple[str, str, str], reason: str = "") -> Context:
        """A server where some is allowed."""
        kinds = {("apps", "v1", "ReplicaSet"): [("replicasets", True)], ("", "v1", "Node"): [("nodes", False)]}
        return Context(kinds=kinds, authorizer=Rights(set(allowed), reason))

    def test_cve_2025_5187_and_4563(self) -> None:
        """Who has an object go with another one must be allowed to delete it: on update, status included."""
        verifyObject(IValidatingAdmission, self.plugin)
        for resource in ("configmaps", "nodes", "nodes/status"):
            made = write(
                self.owned(self.owner()), resource, "UPDATE", old=self.owned(), context=self.context(reason="no")
            )
            self.assertEqual(
                self.why(self.plugin, made), "cannot set an ownerRef on a resource you can't delete: no, <nil>"
            )
        allowed = self.context(("delete", "configmaps", "x"))
        self.validate(
            self.plugin, write(self.owned(self.owner()), "configmaps", "UPDATE", old=self.owned(), context=allowed)
        )
        question = allowed.authorizer.asked[0]
        self.assertEqual((question.namespace, question.version, question.name), ("ns", "v1", "x"))

    def test_not_asked(self) -> None:
        """Creating, changing nothing about the owners, and the status of pods need no right to delete."""
        context = self.context()
        owned = self.owned(self.owner())
        self.validate(self.plugin, write(owned, "configmaps", context=context))
        self.validate(self.plugin, write(owned, "configmaps", "UPDATE", old=owned, context=context))
        self.validate(self.plugin, write(owned, "pods/status", "UPDATE", old=self.owned(), context=context))
        self.assertEqual(context.authorizer.asked, [])

    def test_blocking(self) -> None:
        """Who has an owner wait for an object must be allowed to hold that owner up."""
        blocking = self.owned(self.owner(blockOwnerDeletion=True))
        context = self.context(reason="no")
        self.assertEqual(
            self.why(self.plugin, write(blocking, "configmaps", context=context)),
            "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: "
            "no, <nil>",
        )
        question = context.authorizer.asked[0]
        self.assertEqual(
            (question.verb, question.group, question.resource, question.subresource, question.namespace, question.name),
            ("update", "apps", "replicasets", "finalizers", "ns", "rs"),
        )
        allowed = self.context(("update", "replicasets/finalizers", "rs"))
        self.validate(self.plugin, write(blocking, "configmaps", context=allowed))
        node = self.owned(self.owner(api_version="v1", kind="Node", blockOwnerDeletion=True))
        context = self.context()
        self.assertEqual(self.refusal(self.plugin, write(node, "configmaps", context=context)).code, 403)
        self.assertEqual(context.authorizer.asked[0].namespace, "")

    def test_blocking_already(self) -> None:
        """Only owners that were not held up before are asked about."""
        old = self.owned(self.owner(blockOwnerDeletion=True), self.owner("v"))
        new = self.owned(self.owner(blockOwnerDeletion=True), self.owner("v", blockOwnerDeletion=True))
        context = self.context(("delete", "configmaps", "x"), ("update", "replicasets/finalizers", "rs"))
        self.validate(self.plugin, write(new, "configmaps", "UPDATE", old=old, context=context))
        self.assertEqual([one.verb for one in context.authorizer.asked], ["delete", "update"])

    def test_unknown_kind(self) -> None:
        """An owner of a kind that is not served, or of no version at all, can not be held up."""
        text = "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {} Kind {}: "
        for api_version, kind, why in (
            ("apps/v9", "ReplicaSet", 'no matches for kind "ReplicaSet" in version "apps/v9"'),
            ("a/b/c", "X", "unexpected GroupVersion string: a/b/c"),
        ):
            owned = self.owned(self.owner(api_version=api_version, kind=kind, blockOwnerDeletion=True))
            found = self.why(self.plugin, write(owned, "configmaps", context=self.context()))
            self.assertEqual(found, text.format(api_version, kind) + why)

    def test_no_metadata(self) -> None:
        """What has no metadata has no owners."""
        self.validate(self.plugin, write({"spec": {}}, "pods/x", context=self.context(), name="x"))


class ExternalIPTests(PluginTestCase):
    """Tests for L{DenyServiceExternalIPs}."""

    def test_cve_2020_8554(self) -> None:
        """No service gets new external IPs; those that are there may stay, or go."""
        plugin = DenyServiceExternalIPs()
        verifyObject(IValidatingAdmission, plugin)

        def service(*addresses: str) -> JSONObject:
            return {"metadata": {"name": "s"}, "spec": {"externalIPs": list(addresses)} if addresses else {}}

        why = self.why(plugin, write(service("1.2.3.4"), "services"))
        self.assertEqual(why, "Use of external IPs is denied by admission control")
        self.validate(plugin, write(service(), "services"))
        old = service("1.2.3.4", "1.2.3.5")
        self.validate(plugin, write(service("1.2.3.5"), "services", "UPDATE", old=old))
        self.validate(plugin, write(service(), "services", "UPDATE", old=old))
        self.assertEqual(self.refusal(plugin, write(service("1.2.3.6"), "services", "UPDATE", old=old)).code, 403)
