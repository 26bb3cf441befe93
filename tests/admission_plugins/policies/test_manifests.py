"""Tests for L{kubetwist.admission_plugins.policies.manifests}."""

from __future__ import annotations

from pathlib import Path

from kubetwist.admission_plugins.pluginconfig import InvalidConfiguration
from kubetwist.admission_plugins.policies.plugins import ValidatingAdmissionPolicy
from tests.admission_plugins.policies.policycase import GROUP, MAPS, PolicyTestCase

#: A policy that denies every ConfigMap, and its binding.
MANIFESTS = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: deny.static.k8s.io}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
  validations:
  - {expression: "false", message: by file}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: deny-b.static.k8s.io}
spec: {policyName: deny.static.k8s.io, validationActions: [Deny]}
"""


class ManifestTests(PolicyTestCase):
    """Tests of policies from manifest files."""

    def configured(self, **files: str) -> None:
        """Restart the server with a directory of manifests."""
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        for name, text in files.items():
            (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
        configuration = {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyConfiguration",
            "staticManifestsDir": str(folder),
        }
        self.server.admit(ValidatingAdmissionPolicy.configured(self.server.registry.context, configuration))

    def bad(self, **files: str) -> str:
        """Return the error for a directory."""
        return str(self.assertRaises(InvalidConfiguration, self.configured, **files))

    def test_active_without_api(self) -> None:
        """A policy of a file applies without an object in the API, and the API cannot remove it."""
        self.configured(both=MANIFESTS)
        _, _, message = self.request_error("POST", MAPS, {"metadata": {"name": "a"}})
        self.assertIn("'deny.static.k8s.io' with binding 'deny-b.static.k8s.io' denied request: by file", message)
        path = f"{GROUP}/validatingadmissionpolicies/deny.static.k8s.io"
        self.assertEqual(self.client.ask("DELETE", path)[0], 404)
        self.policy(name="deny.static.k8s.io", validations=[{"expression": "true"}], binding=None)
        self.send_request("DELETE", path)
        self.request_error("POST", MAPS, {"metadata": {"name": "a"}})

    def test_invalid(self) -> None:
        """Invalid manifests stop the server with the file and the reason."""
        self.assertIn(
            'must have a name ending with ".static.k8s.io"', self.bad(a=MANIFESTS.replace("deny.static", "deny"))
        )
        self.assertIn("duplicate name", self.bad(a=MANIFESTS, b=MANIFESTS))
        self.assertIn("which does not exist in the manifest directory", self.bad(a=MANIFESTS.partition("---")[2]))
        self.assertIn("unsupported resource type ConfigMap", self.bad(a="apiVersion: v1\nkind: ConfigMap\n"))
        self.assertIn("unknown field", self.bad(a=MANIFESTS.replace("validations:", "validation:")))
        self.assertIn("compilation failed", self.bad(a=MANIFESTS.replace('"false"', '"false &&"')))
        self.assertIn("error loading", self.bad(a="a: [1\n"))
