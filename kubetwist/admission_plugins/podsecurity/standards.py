"""The registry of checks: the checks of each level and version of the Pod Security Standards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from attrs import frozen

from ...api.resource import JSONObject
from . import baseline, restricted
from .checkresult import (
    CheckResult,
    PodCheck,
)
from .levels import BASELINE, PRIVILEGED, LevelVersion


@frozen
class Check:
    """
    A check with its versions.

    @ivar name: The ID of the check; messages are sorted by it.
    @ivar versions: The versions of the check, each with the first minor version that it applies to.
    @ivar override_check_id: The ID of the C{baseline} check that this check replaces; C{""} for none.
    """

    name: str
    versions: tuple[tuple[int, PodCheck], ...]
    override_check_id: str = ""

    def for_version(self, minor: int) -> PodCheck | None:
        """Return the check for a minor version; L{None} for versions before the first one."""
        selected = None
        for first, check in self.versions:
            if first <= minor:
                selected = check
        return selected


BASELINE_CHECKS: Final = (
    Check("appArmorProfile", ((0, baseline.apparmor_profile),)),
    Check("capabilities_baseline", ((0, baseline.capabilities),)),
    Check("hostNamespaces", ((0, baseline.host_namespaces),)),
    Check("hostPathVolumes", ((0, baseline.host_path_volumes),)),
    Check("hostPorts", ((0, baseline.host_ports),)),
    Check("hostProbesAndHostLifecycle", ((34, baseline.host_probes),)),
    Check("privileged", ((0, baseline.privileged),)),
    Check("procMount", ((0, baseline.proc_mount), (35, baseline.proc_mount_35))),
    Check("seLinuxOptions", ((0, baseline.selinux_options), (31, baseline.selinux_options_31))),
    Check("seccompProfile_baseline", ((0, baseline.seccomp_annotations), (19, baseline.seccomp_profile))),
    Check(
        "sysctls",
        (
            (0, baseline.sysctls),
            (27, baseline.sysctls_27),
            (29, baseline.sysctls_29),
            (32, baseline.sysctls_32),
            (37, baseline.sysctls_37),
        ),
    ),
    Check("windowsHostProcess", ((0, baseline.windows_host_process),)),
)
RESTRICTED_CHECKS: Final = (
    Check(
        "allowPrivilegeEscalation",
        ((8, restricted.privilege_escalation), (25, restricted.unless_windows(restricted.privilege_escalation))),
    ),
    Check(
        "capabilities_restricted",
        ((22, restricted.capabilities), (25, restricted.unless_windows(restricted.capabilities))),
        "capabilities_baseline",
    ),
    Check("procMount_restricted", ((35, baseline.proc_mount),), "procMount"),
    Check("restrictedVolumes", ((0, restricted.volumes),), "hostPathVolumes"),
    Check(
        "runAsNonRoot",
        ((0, restricted.run_as_non_root), (35, restricted.unless_user_namespace(restricted.run_as_non_root))),
    ),
    Check(
        "runAsUser",
        ((23, restricted.run_as_user), (35, restricted.unless_user_namespace(restricted.run_as_user))),
    ),
    Check(
        "seccompProfile_restricted",
        ((19, restricted.seccomp_profile), (25, restricted.unless_windows(restricted.seccomp_profile))),
        "seccompProfile_baseline",
    ),
)

#: The checks that pods in a user namespace can pass.
RELAXED: Final = ("procMount", "runAsNonRoot", "runAsUser")


class CheckRegistry:
    """
    The checks of each level and version, as one release has them (C{policy.checkRegistry}).

    @ivar newest: The minor version of the release, which also stands for C{latest} and for later versions.
    """

    def __init__(self, newest: int, *, relaxed: bool = False) -> None:
        """
        @param newest: The minor version of the release.
        @param relaxed: Whether pods in a user namespace pass L{RELAXED} in all versions, as before 1.35 with the
            feature gate C{UserNamespacesPodSecurityStandards}.
        """
        self.newest = newest
        self._relaxed = relaxed
        self._cache: dict[tuple[bool, int], list[PodCheck]] = {}

    def checks(self, level_version: LevelVersion) -> Sequence[PodCheck]:
        """Return the checks of a level and version, in the order of their messages."""
        if level_version.level == PRIVILEGED:
            return ()
        minor = self.newest if level_version.minor is None else min(level_version.minor, self.newest)
        key = level_version.level == BASELINE, minor
        checks = self._cache.get(key)
        if checks is None:
            checks = self._cache[key] = _checks(*key, relaxed=self._relaxed)
        return checks

    def evaluate_pod(
        self, level_version: LevelVersion, annotations: Mapping[str, str], spec: JSONObject
    ) -> list[CheckResult]:
        """Return all violations of a level by a pod."""
        results = [check(annotations, spec) for check in self.checks(level_version)]
        return [one for one in results if one is not None]


def _checks(only_baseline: bool, minor: int, *, relaxed: bool) -> list[PodCheck]:
    restricted_checks = [] if only_baseline else [check for check in RESTRICTED_CHECKS if check.for_version(minor)]
    overridden = {check.override_check_id for check in restricted_checks}
    selected = [check for check in BASELINE_CHECKS if check.name not in overridden] + restricted_checks
    return [
        restricted.unless_user_namespace(versioned) if relaxed and check.name in RELAXED else versioned
        for check in selected
        if (versioned := check.for_version(minor)) is not None
    ]


def forbidden_reasons(results: Sequence[CheckResult]) -> str:
    """Return the reasons of the violations, which are the same for all pods with these violations."""
    return ", ".join(result.reason for result in results)


def forbidden_details(results: Sequence[CheckResult]) -> str:
    """Return the violations of a pod in detail."""
    return ", ".join(map(str, results))
