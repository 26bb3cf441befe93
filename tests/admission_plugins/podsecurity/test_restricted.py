"""Tests for L{kubetwist.admission_plugins.podsecurity.restricted}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.podsecurity.levels import RESTRICTED
from kubetwist.admission_plugins.podsecurity.restricted import ALLOWED_VOLUMES, RESTRICTED_VOLUMES
from kubetwist.api.resource import JSONObject
from tests.admission_plugins.fakes import every_container
from tests.admission_plugins.podsecurity.checks import hardened, violations


class RestrictedTests(SynchronousTestCase):
    """Tests of each check of restricted."""

    def check(self, pod: JSONObject, text: str, minor: int | None = None) -> None:
        """Assert that a pod has exactly this violation of restricted."""
        self.assertEqual(violations(pod, RESTRICTED, minor), text)

    def test_escalation(self) -> None:
        """From 1.8 on, privilege escalation must be disabled."""
        pod = hardened({"allowPrivilegeEscalation": True})
        text = (
            'allowPrivilegeEscalation != false (containers "i", "c", "e" must set '
            "securityContext.allowPrivilegeEscalation=false)"
        )
        self.check(pod, text)
        self.check(pod, text, 8)
        self.check(pod, "", 7)

    def test_capabilities(self) -> None:
        """
        From 1.22 on, all capabilities must be dropped and only one can be added; the check of baseline is replaced.
        """
        pod = hardened({"capabilities": {"drop": ["CHOWN"], "add": ["NET_BIND_SERVICE", "SYS_TIME"]}})
        three = 'containers "i", "c", "e"'
        self.check(
            pod,
            f'unrestricted capabilities ({three} must set securityContext.capabilities.drop=["ALL"]; '
            f'{three} must not include "SYS_TIME" in securityContext.capabilities.add)',
            22,
        )
        self.check(
            pod,
            f'non-default capabilities ({three} must not include "SYS_TIME" in securityContext.capabilities.add)',
            21,
        )

    def test_volumes(self) -> None:
        """Only some volume types are allowed; unknown types are forbidden."""
        for kind in ALLOWED_VOLUMES:
            self.check(hardened(volumes=[{"name": "v", kind: {}}]), "")
        for kind in RESTRICTED_VOLUMES:
            self.check(
                hardened(volumes=[{"name": "v", kind: {}}]),
                f'restricted volume types (volume "v" uses restricted volume type "{kind}")',
            )
        self.check(
            hardened(volumes=[{"name": "b", "nfs": {}}, {"name": "a", "new": {}}, {"name": "ok", "secret": {}}]),
            'restricted volume types (volumes "b", "a" use restricted volume types "nfs", "unknown")',
        )

    def test_non_root(self) -> None:
        """runAsNonRoot must be true for every container and false for none."""
        pod = hardened(pod_context={"runAsNonRoot": None})
        self.check(
            pod,
            'runAsNonRoot != true (pod or containers "i", "c", "e" must set securityContext.runAsNonRoot=true)',
        )
        self.check(
            hardened({"runAsNonRoot": False}, {"runAsNonRoot": False}),
            'runAsNonRoot != true (pod and containers "i", "c", "e" must not set securityContext.runAsNonRoot=false)',
        )
        self.check(hardened({"runAsNonRoot": True}, {"runAsNonRoot": None}), "")
        pod["spec"]["hostUsers"] = False
        self.check(pod, "", 35)
        self.assertIn("runAsNonRoot", violations(pod, RESTRICTED, 34))

    def test_user(self) -> None:
        """From 1.23 on, runAsUser must not be 0; from 1.35 on it may be 0 in a user namespace."""
        pod = hardened({"runAsUser": 0}, {"runAsUser": 0})
        text = 'runAsUser=0 (pod and containers "i", "c", "e" must not set runAsUser=0)'
        self.check(pod, text)
        self.check(pod, text, 23)
        self.check(pod, "", 22)
        pod["spec"]["hostUsers"] = False
        self.check(pod, "", 35)
        self.check(pod, text, 34)
        self.check(hardened({"runAsUser": 1}), "")

    def test_seccomp(self) -> None:
        """From 1.19 on, a seccomp profile must be set by the pod or each container."""
        pod = hardened(pod_context={"seccompProfile": None})
        text = (
            'seccompProfile (pod or containers "i", "c", "e" must set securityContext.seccompProfile.type to '
            '"RuntimeDefault" or "Localhost")'
        )
        self.check(pod, text)
        self.check(pod, text, 19)
        self.check(pod, "", 18)
        bad = hardened({"seccompProfile": {"type": "Unconfined"}}, {"seccompProfile": {"type": "Unconfined"}})
        self.check(
            bad,
            'seccompProfile (pod and containers "i", "c", "e" must not set securityContext.seccompProfile.type to '
            '"Unconfined")',
        )
        self.check(hardened({"seccompProfile": {"type": "Localhost"}}, {"seccompProfile": None}), "")

    def test_windows(self) -> None:
        """From 1.25 on, checks of Linux features do not apply to Windows pods."""
        pod = every_container(securityContext={"runAsNonRoot": True})
        pod["spec"]["os"] = {"name": "windows"}
        self.check(pod, "", 25)
        self.assertIn("seccompProfile", violations(pod, RESTRICTED, 24))
        pod["spec"]["os"] = {"name": "linux"}
        self.assertIn("seccompProfile", violations(pod, RESTRICTED, 25))
