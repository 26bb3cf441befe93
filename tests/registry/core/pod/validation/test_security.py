"""Tests of L{kubetwist.registry.core.pod.validation.security}, through the strategy of pods."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.privileges import unprivileged
from kubetwist.registry.strategies import strategy_for
from tests.registry.pods import (
    APP_ARMOR_C,
    CONTAINER,
    SECCOMP,
    SECCOMP_C,
    VOLUMES,
    in_container,
    pod,
    problems,
)


class SecurityTests(SynchronousTestCase):
    """Tests of security contexts and deprecated annotations."""

    def test_order(self) -> None:
        """Errors of seccomp profiles are first."""
        found = in_container(
            securityContext={"seccompProfile": {}, "allowPrivilegeEscalation": False, "privileged": True}
        )
        self.assertEqual(
            [one.partition(":")[0] for one in found], ["securityContext.seccompProfile.type", "securityContext"]
        )

    def test_windows(self) -> None:
        """Windows user names and credentials are validated."""

        def with_options(**options: Any) -> list[str]:
            found = problems(securityContext={"windowsOptions": options})
            self.assertEqual(
                in_container(securityContext={"windowsOptions": options}),
                [one.removeprefix("spec.") for one in found],
            )
            return [one.removeprefix("spec.securityContext.windowsOptions.") for one in found]

        for name in ("user", "NET\\user", "a.example.com\\user"):
            self.assertEqual(with_options(runAsUserName=name), [])
        for name, wrong in (
            ("", " cannot be an empty string"),
            ("a\x07", " cannot contain control characters"),
            ("a\\b\\c", " cannot contain more than one backslash"),
            ("*\\b", "'s Domain doesn't match the NetBios nor the DNS format"),
            ("a\\", "'s User cannot be empty"),
            ("a" * 105, "'s User length must not be longer than 104 characters"),
            (". .", "'s User cannot contain only periods or spaces"),
            ("a*", "'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"),
        ):
            self.assertEqual(
                [one.rpartition(": runAsUserName")[2] for one in with_options(runAsUserName=name)], [wrong]
            )
        self.assertEqual(
            [one.partition(":")[0] for one in with_options(gmsaCredentialSpecName="A", gmsaCredentialSpec="")],
            ["gmsaCredentialSpecName", "gmsaCredentialSpec"],
        )
        self.assertEqual(
            with_options(gmsaCredentialSpec="a" * 65537)[0].rpartition(": ")[2],
            "gmsaCredentialSpec size must be under 64 KiB",
        )

    def test_selinux_changes(self) -> None:
        """The SELinux change policy must be Recursive, unless the stored pod has another."""
        mounted = {"seLinuxChangePolicy": "MountOption"}
        self.assertEqual(
            problems(securityContext=mounted),
            [
                'spec.securityContext.seLinuxChangePolicy: Unsupported value: "MountOption": '
                'supported values: "Recursive"'
            ],
        )
        before = pod(securityContext=mounted)
        self.assertEqual(strategy_for("", "Pod").validate_update(before, before), [])

    def test_seccomp_annotations(self) -> None:
        """Deprecated seccomp annotations must be valid, and match the fields."""
        self.assertEqual(
            problems({SECCOMP_C: "localhost/../a", SECCOMP: "odd"}),
            [
                f'metadata.annotations.{SECCOMP}: Invalid value: "odd": must be a valid seccomp profile',
                f"metadata.annotations.{SECCOMP_C}: Invalid value: \"../a\": must not contain '..'",
            ],
        )
        local = {"type": "Localhost", "localhostProfile": "a"}
        spec = {
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{**CONTAINER, "securityContext": {"seccompProfile": local}}],
        }
        self.assertEqual(problems({SECCOMP: "docker/default", SECCOMP_C: "localhost/a"}, **spec), [])
        text = "Forbidden: seccomp {} in annotation and field must match"
        self.assertEqual(
            problems({SECCOMP: "unconfined", SECCOMP_C: "localhost/b"}, **spec),
            [
                f"spec.securityContext.seccompProfile.type: {text.format('type')}",
                f"spec.containers[0].securityContext.seccompProfile.localhostProfile: {text.format('profile')}",
            ],
        )

    def test_app_armor_annotations(self) -> None:
        """Deprecated AppArmor annotations must match the fields of the container or the pod."""
        spec = {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}
        self.assertEqual(problems({APP_ARMOR_C: "unconfined"}, **spec), [])
        containers = [{**CONTAINER, "securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}}}]
        self.assertEqual(
            problems({APP_ARMOR_C: "unconfined"}, containers=containers),
            [
                "spec.containers[0].securityContext.appArmorProfile.type: "
                "Forbidden: apparmor type in annotation and field must match"
            ],
        )

    def test_host_process(self) -> None:
        """Host process containers must be privileged."""
        obj = pod(hostNetwork=True, securityContext={"windowsOptions": {"hostProcess": True}})
        self.assertEqual(
            [str(one) for one in unprivileged(strategy_for("", "Pod").validate, obj)],
            ["spec: Forbidden: hostProcess containers are disallowed by cluster policy"],
        )

    def test_windows_pods(self) -> None:
        """Fields that are false are forbidden for Windows pods, empty lists are not."""
        found = problems(os={"name": "windows"}, shareProcessNamespace=False, securityContext={"sysctls": []})
        self.assertEqual(found, ["spec.shareProcessNamespace: Forbidden: cannot be set for a windows pod"])
        self.assertEqual(problems(os={}), ["spec.os.name: Required value"])

    def test_user_namespaces(self) -> None:
        """A pod with a user namespace cannot have volume devices."""
        container = {**CONTAINER, "volumeDevices": [{"name": "p", "devicePath": "/d"}]}
        spec: dict[str, Any] = {"hostUsers": False, "containers": [container], "volumes": VOLUMES}
        self.assertEqual(problems(**spec), ["spec.containers[0].volumeDevices: Forbidden: when `hostUsers` is false"])
        self.assertEqual(strategy_for("", "Pod").validate_update(pod(**spec), pod(**spec)), [])
