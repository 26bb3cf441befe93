"""Tests for L{kubetwist.admission_plugins.authorization}."""

from __future__ import annotations

from kubetwist.admission_plugins.clustertrustbundleattest import ClusterTrustBundleAttest
from tests.admission_plugins.fakes import PluginTestCase, write
from tests.admission_plugins.signers import SIGNER


class AuthorizingTests(PluginTestCase):
    """Tests for L{kubetwist.admission_plugins.authorization}."""

    def test_no_authorizer(self) -> None:
        """Without an authorizer everything is allowed."""
        resource = "clustertrustbundles.certificates.k8s.io"
        self.validate(ClusterTrustBundleAttest(), write({"metadata": {}, "spec": {"signerName": SIGNER}}, resource))
