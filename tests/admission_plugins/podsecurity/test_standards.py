"""Tests for L{kubetwist.admission_plugins.podsecurity.standards}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.podsecurity.levels import BASELINE, PRIVILEGED, RESTRICTED, LevelVersion
from kubetwist.admission_plugins.podsecurity.standards import (
    BASELINE_CHECKS,
    RESTRICTED_CHECKS,
    CheckRegistry,
    forbidden_reasons,
)
from tests.admission_plugins.fakes import every_container
from tests.admission_plugins.podsecurity.checks import NEWEST, STANDARDS, hardened, violations


class LevelTests(SynchronousTestCase):
    """Tests for L{CheckRegistry}."""

    def test_nothing_wrong(self) -> None:
        """A hardened pod is allowed in every version; a pod without security fields is allowed by baseline."""
        for minor in range(NEWEST + 1):
            self.assertEqual(violations(hardened(), RESTRICTED, minor), "")
            self.assertEqual(violations(every_container(), BASELINE, minor), "")

    def test_bare(self) -> None:
        """The violations of a pod without security fields are sorted by check ID, each with all containers."""
        three = 'containers "i", "c", "e"'
        self.assertEqual(
            violations(every_container()),
            f"allowPrivilegeEscalation != false ({three} must set securityContext.allowPrivilegeEscalation=false), "
            f'unrestricted capabilities ({three} must set securityContext.capabilities.drop=["ALL"]), '
            f"runAsNonRoot != true (pod or {three} must set securityContext.runAsNonRoot=true), "
            f"seccompProfile (pod or {three} must set securityContext.seccompProfile.type to "
            '"RuntimeDefault" or "Localhost")',
        )

    def test_privileged(self) -> None:
        """The level privileged allows everything."""
        pod = every_container(securityContext={"privileged": True})
        self.assertEqual(violations(pod, PRIVILEGED), "")

    def test_order(self) -> None:
        """Checks are sorted as in the reference: by ID, the checks of baseline first."""
        for checks in (BASELINE_CHECKS, RESTRICTED_CHECKS):
            names = [check.name for check in checks]
            self.assertEqual(names, sorted(names))

    def test_user_namespaces(self) -> None:
        """With the gate of earlier releases, pods in a user namespace pass the checks of users in all versions."""
        pod = hardened()
        pod["spec"]["hostUsers"] = False
        for container in pod["spec"]["containers"]:
            container.setdefault("securityContext", {}).update(runAsNonRoot=False, runAsUser=0, procMount="Unmasked")
        for relaxed, count in ((True, 0), (False, 3)):
            standards = CheckRegistry(33, relaxed=relaxed)
            self.assertEqual(len(standards.evaluate_pod(LevelVersion(RESTRICTED, 30), {}, pod["spec"])), count)
        del pod["spec"]["hostUsers"]
        self.assertEqual(
            len(CheckRegistry(33, relaxed=True).evaluate_pod(LevelVersion(RESTRICTED, 30), {}, pod["spec"])), 3
        )

    def test_versions(self) -> None:
        """The latest and later versions are the version of the release."""
        old = CheckRegistry(33)
        pod = every_container(livenessProbe={"httpGet": {"host": "10.0.0.1", "port": 1}})
        for minor in (None, 34, 99):
            self.assertEqual(old.evaluate_pod(LevelVersion(BASELINE, minor), {}, pod["spec"]), [])
            self.assertIn("probe or lifecycle host", violations(pod, BASELINE, minor))
        self.assertEqual(violations(pod, BASELINE, 33), "")

    def test_reasons(self) -> None:
        """The short message has only the reasons."""
        result = STANDARDS.evaluate_pod(LevelVersion(RESTRICTED), {}, every_container(hostNetwork=True)["spec"])
        self.assertEqual(
            forbidden_reasons(result),
            "allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile",
        )

    @given(minor=st.integers(0, NEWEST), fields=st.dictionaries(st.sampled_from(("hostPID", "hostIPC")), st.booleans()))
    def test_restricted_is_stricter(self, minor: int, fields: dict[str, bool]) -> None:
        """Pods that baseline forbids are forbidden by restricted, in every version."""
        pod = hardened({"privileged": True, "procMount": "Unmasked"}, **fields)
        below = set(violations(pod, BASELINE, minor).split(", "))
        self.assertTrue(below <= set(violations(pod, RESTRICTED, minor).split(", ")))
