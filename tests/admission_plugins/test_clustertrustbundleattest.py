"""Tests for L{ClusterTrustBundleAttest}."""

from __future__ import annotations

from typing import Any

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.clustertrustbundleattest import ClusterTrustBundleAttest
from kubetwist.api.resource import JSONObject
from kubetwist.interfaces import IValidatingAdmission
from tests.admission_plugins.fakes import Context, PluginTestCase, Rights, write
from tests.admission_plugins.signers import SIGNER


class ClusterTrustBundleAttestTests(PluginTestCase):
    """Tests for L{ClusterTrustBundleAttest}."""

    def test_attest(self) -> None:
        """Changing the bundle requires permission for the signer; changing only metadata does not."""
        plugin, resource = ClusterTrustBundleAttest(), "clustertrustbundles.certificates.k8s.io"
        verifyObject(IValidatingAdmission, plugin)
        context = Context(authorizer=Rights())

        def bundle(signer: str, **fields: Any) -> JSONObject:
            meta = {"name": "b", **fields.pop("metadata", {})}
            return {"metadata": meta, "spec": {"signerName": signer, **fields}}

        message = self.error_text(plugin, write(bundle(SIGNER), resource, context=context))
        self.assertEqual(message, f'user not permitted to attest for signerName "{SIGNER}"')
        self.validate(plugin, write(bundle(""), resource, context=context))
        collected = bundle(SIGNER, metadata={"ownerReferences": [{"uid": "u"}], "finalizers": ["a/b"]})
        self.validate(plugin, write(collected, resource, "UPDATE", old=bundle(SIGNER), context=context))
        changed = bundle(SIGNER, trustBundle="x")
        self.assertEqual(
            self.rejection(plugin, write(changed, resource, "UPDATE", old=bundle(SIGNER), context=context)).code, 403
        )
        allowed = Context(authorizer=Rights({("attest", "signers", SIGNER)}))
        self.validate(plugin, write(changed, resource, "UPDATE", old=bundle(SIGNER), context=allowed))
