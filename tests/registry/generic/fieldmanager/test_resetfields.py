"""Tests of L{kubetwist.registry.generic.fieldmanager.resetfields}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.fieldmanager.resetfields import (
    EXCEPT_STATUS,
    default_reset_fields_filter,
    reset_fields_filter,
)
from kubetwist.schema.merge.fieldset import field_set_from_paths
from tests.registry.generic.fieldmanager.objects import (
    INFOS,
)


class AllowedFieldsTests(SynchronousTestCase):
    """Tests of L{kubetwist.registry.generic.fieldmanager.resetfields}."""

    def test_usual(self) -> None:
        """Clients of the main resource own everything except a status with a subresource."""
        self.assertEqual(reset_fields_filter(INFOS["nodes"], ""), EXCEPT_STATUS)
        fields = field_set_from_paths([("f:spec",), ("f:status",), ("f:metadata", "f:labels")])
        self.assertEqual(reset_fields_filter(INFOS["configmaps"], "")(fields), fields)
        self.assertEqual(default_reset_fields_filter(True, "status")(fields), {"f:status": {}})

    def test_special(self) -> None:
        """Clients own no status and spec of CertificateSigningRequests, and everything in a resize of a pod."""
        fields = field_set_from_paths(
            [("f:spec", "f:containers", 'k:{"name":"a"}', name) for name in ("f:image", "f:resources")]
        )
        self.assertEqual(reset_fields_filter(INFOS["pods"], "resize")(fields), fields)
        self.assertEqual(reset_fields_filter(INFOS["certificatesigningrequests"], "")(fields), {})
        labels = field_set_from_paths([("f:status",), ("f:metadata", "f:labels")])
        for resource in ("servicecidrs", "resourceclaims"):
            self.assertEqual(reset_fields_filter(INFOS[resource], "status")(labels), {"f:status": {}})
