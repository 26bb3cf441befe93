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
    @ivar versions: The forms of the rule, each with the minor version it came in.
    @ivar override_check_id: The rule of C{baseline} that is not looked at where this one is.
    """

    name: str
    versions: tuple[tuple[int, PodCheck], ...]
    override_check_id: str = ""

    def at(self, minor: int) -> PodCheck | None:
        """Return the form of the rule in a version; L{None} before there was one."""
        results = None
        for first, form in self.versions:
            if first <= minor:
                results = form
        return results


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


class CheckRegistry:
    """
    The levels as one release knows them.

    @param newest: The minor version of the release, for which later ones and the latest are taken.
    """

    def __init__(self, newest: int) -> None:
        self.newest = newest
        self._known: dict[tuple[bool, int], list[PodCheck]] = {}

    def checks(self, level_version: LevelVersion) -> Sequence[PodCheck]:
        """Return the checks of a level and version, in the order of their messages."""
        if level_version.level == PRIVILEGED:
            return ()
        minor = self.newest if level_version.minor is None else min(level_version.minor, self.newest)
        key = level_version.level == BASELINE, minor
        results = self._known.get(key)
        if results is None:
            results = self._known[key] = _checks(*key)
        return results

    def evaluate_pod(
        self, level_version: LevelVersion, annotations: Mapping[str, str], spec: JSONObject
    ) -> list[CheckResult]:
        """Return all violations of a level by a pod."""
        results = [check(annotations, spec) for check in self.checks(level_version)]
        return [one for one in results if one is not None]


def _checks(only_baseline: bool, minor: int) -> list[PodCheck]:
    stricter = [] if only_baseline else [check for check in RESTRICTED_CHECKS if check.at(minor)]
    replaced = {check.override_check_id for check in stricter}
    chosen = [check for check in BASELINE_CHECKS if check.name not in replaced] + stricter
    return [form for check in chosen if (form := check.at(minor)) is not None]


def forbidden_reasons(evaluate_pod: Sequence[CheckResult]) -> str:
    """Return the reasons why a pod, or any pod with the same violations, is rejected."""
    return ", ".join(finding.reason for finding in evaluate_pod)


def forbidden_details(evaluate_pod: Sequence[CheckResult]) -> str:
    """Return the violations of a pod in detail."""
    return ", ".join(map(str, evaluate_pod))
