"""Test cases with authorization configurations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.authorization._configuration import load_configuration

KNOWN = ("ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook")


KUBECONFIG = {
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1/authorize"}}],
    "contexts": [{"name": "x", "context": {"cluster": "c"}}],
    "current-context": "x",
}


class ConfigurationCase(SynchronousTestCase):
    """A test case with a kubeconfig."""

    def setUp(self) -> None:
        """Write the kubeconfig."""
        self.folder = Path(self.mktemp()).resolve()
        self.folder.mkdir()
        self.kubeconfig = self.folder / "kubeconfig"
        self.kubeconfig.write_text(json.dumps(KUBECONFIG))

    def webhook(self, name: str = "hook", **changes: Any) -> dict[str, Any]:
        """Return an authorizer of the type Webhook."""
        webhook: dict[str, Any] = {
            "timeout": "3s",
            "subjectAccessReviewVersion": "v1",
            "matchConditionSubjectAccessReviewVersion": "v1",
            "failurePolicy": "Deny",
            "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": str(self.kubeconfig)},
        }
        webhook.update(changes)
        return {"type": "Webhook", "name": name, "webhook": webhook}

    def document(self, *authorizers: Any) -> bytes:
        """Return the content of a file."""
        config = {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AuthorizationConfiguration",
            "authorizers": list(authorizers),
        }
        return json.dumps(config).encode()

    def rejection(self, *authorizers: Any) -> str:
        """Return the error for a file."""
        return str(self.assertRaises(ValueError, load_configuration, self.document(*authorizers), KNOWN))
