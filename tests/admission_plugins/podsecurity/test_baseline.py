"""Tests for L{kubetwist.admission_plugins.podsecurity.baseline}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.podsecurity.levels import BASELINE, RESTRICTED
from kubetwist.api.resource import JSONObject
from tests.admission_plugins.fakes import every_container
from tests.admission_plugins.podsecurity.checks import HARDENED_POD, NEWEST, violations


class BaselineTests(SynchronousTestCase):
    """
    Tests of each check of baseline: on containers of every kind, in each version, with the texts of the reference.
    """

    def check(self, pod: JSONObject, text: str, minor: int | None = None) -> None:
        """Assert that a pod has exactly this violation of baseline."""
        self.assertEqual(violations(pod, BASELINE, minor), text)

    def every(self, text: str, minor: int | None = None, **context: Any) -> None:
        """Assert that containers of every kind have the violation, each alone and all together."""
        listed = 'containers "i", "c", "e"'
        pod = every_container(securityContext=context)
        self.check(pod, text.format(who=listed, s=""), minor)
        for kind, name in (("initContainers", "i"), ("containers", "c"), ("ephemeralContainers", "e")):
            alone = every_container()
            alone["spec"][kind][0]["securityContext"] = context
            self.check(alone, text.format(who=f'container "{name}"', s="s"), minor)

    def test_apparmor(self) -> None:
        """AppArmor cannot be disabled, in fields or annotations."""
        reason = "forbidden AppArmor profile ({who} must not set AppArmor profile type to {what})"
        self.every(reason.replace("{what}", '"Unconfined"'), appArmorProfile={"type": "Unconfined"})
        pod = every_container()
        pod["spec"]["securityContext"] = {"appArmorProfile": {"type": "Unconfined"}}
        pod["spec"]["containers"][0]["securityContext"] = {"appArmorProfile": {"type": "Other"}}
        key = "container.apparmor.security.beta.kubernetes.io"
        pod["metadata"]["annotations"] = {f"{key}/c": "unconfined", f"{key}/i": "runtime/default", f"{key}/e": ""}
        self.check(
            pod,
            'forbidden AppArmor profiles (pod and container "c" and annotation must not set AppArmor profile type to '
            f'"Other", "Unconfined", "{key}/c="unconfined"")',
        )
        for kind in ("RuntimeDefault", "Localhost"):
            self.check(every_container(securityContext={"appArmorProfile": {"type": kind}}), "")

    def test_capabilities(self) -> None:
        """Only the default capabilities can be added."""
        self.every(
            'non-default capabilities ({who} must not include "NET_ADMIN", "SYS_TIME" in '
            "securityContext.capabilities.add)",
            capabilities={"add": ["SYS_TIME", "CHOWN", "NET_ADMIN"]},
        )

    def test_host_namespaces(self) -> None:
        """A pod cannot share a namespace of the node."""
        pod = every_container()
        pod["spec"].update(hostIPC=True, hostNetwork=True, hostPID=True)
        self.check(pod, "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)")

    def test_host_path(self) -> None:
        """A pod cannot mount directories of the node."""
        pod = every_container()
        pod["spec"]["volumes"] = [{"name": "a", "hostPath": {"path": "/"}}, {"name": "b", "emptyDir": {}}]
        self.check(pod, 'hostPath volumes (volume "a")')
        pod["spec"]["volumes"].append({"name": "z", "hostPath": {"path": "/"}})
        self.check(pod, 'hostPath volumes (volumes "a", "z")')

    def test_host_ports(self) -> None:
        """A pod cannot use host ports; the ports in the message are sorted as text."""
        pod = every_container(ports=[{"containerPort": 80, "hostPort": 9090}, {"hostPort": 80}, {"containerPort": 1}])
        self.check(pod, 'hostPort (containers "i", "c", "e" use hostPorts 80, 9090)')
        alone = every_container()
        alone["spec"]["containers"][0]["ports"] = [{"hostPort": 8080}]
        self.check(alone, 'hostPort (container "c" uses hostPort 8080)')

    def test_host_probes(self) -> None:
        """From 1.34 on, probes and hooks cannot set a host."""
        for field in ("livenessProbe", "readinessProbe", "startupProbe"):
            for kind in ("httpGet", "tcpSocket"):
                pod = every_container(**{field: {kind: {"host": "b", "port": 1}}})
                text = 'probe or lifecycle host (containers "c", "e", "i" use probe or lifecycle host "b")'
                self.check(pod, text)
                self.check(pod, text, 34)
                self.check(pod, "", 33)
        alone = every_container()
        hooks = {"postStart": {"httpGet": {"host": "x"}}, "preStop": {"tcpSocket": {"host": "a"}}}
        alone["spec"]["initContainers"][0]["lifecycle"] = hooks
        self.check(alone, 'probe or lifecycle host (container "i" uses probe or lifecycle hosts "a", "x")')

    def test_privileged(self) -> None:
        """No container can be privileged."""
        self.every("privileged ({who} must not set securityContext.privileged=true)", privileged=True)
        self.check(every_container(securityContext={"privileged": False}), "")

    def test_proc_mount(self) -> None:
        """From 1.35 on, pods in a user namespace can unmask C{/proc}."""
        text = 'procMount ({who} must not set securityContext.procMount to "Unmasked")'
        for minor in (0, 34, 35, None):
            self.every(text, minor, procMount="Unmasked")
        pod = every_container(securityContext={"procMount": "Unmasked"})
        pod["spec"]["hostUsers"] = False
        self.check(pod, "", 35)
        self.check(pod, text.format(who='containers "i", "c", "e"'), 34)
        pod["spec"]["securityContext"] = HARDENED_POD
        self.assertIn("procMount (", violations(pod, RESTRICTED, 35))
        self.assertEqual(violations(pod, RESTRICTED, 35).count("procMount ("), 1)

    def test_selinux(self) -> None:
        """SELinux types are restricted, and user and role cannot be set."""
        self.every(
            'seLinuxOptions ({who} set forbidden securityContext.seLinuxOptions: type "spc_t"; user may not be set; '
            "role may not be set)",
            seLinuxOptions={"type": "spc_t", "user": "u", "role": "r"},
        )
        engine = every_container(securityContext={"seLinuxOptions": {"type": "container_engine_t"}})
        self.check(engine, "", 31)
        self.assertIn('type "container_engine_t"', violations(engine, BASELINE, 30))
        pod = every_container()
        pod["spec"]["securityContext"] = {"seLinuxOptions": {"user": "u", "type": "container_t", "level": "s0"}}
        self.check(pod, "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: user may not be set)")

    def test_seccomp(self) -> None:
        """Seccomp cannot be disabled, by annotations before 1.19 and by fields since."""
        self.every(
            'seccompProfile ({who} must not set securityContext.seccompProfile.type to "Unconfined")',
            19,
            seccompProfile={"type": "Unconfined"},
        )
        self.check(every_container(securityContext={"seccompProfile": {"type": "Unconfined"}}), "", 18)
        pod = every_container()
        pod["metadata"]["annotations"] = {
            "seccomp.security.alpha.kubernetes.io/pod": "unconfined",
            "container.seccomp.security.alpha.kubernetes.io/e": "unconfined",
            "container.seccomp.security.alpha.kubernetes.io/c": "localhost/x",
            "container.seccomp.security.alpha.kubernetes.io/gone": "unconfined",
        }
        self.check(
            pod,
            "seccompProfile (forbidden annotations "
            'container.seccomp.security.alpha.kubernetes.io/e="unconfined", '
            'seccomp.security.alpha.kubernetes.io/pod="unconfined")',
            18,
        )
        self.check(pod, "", 19)

    def test_sysctls(self) -> None:
        """Later versions allow more sysctls; forbidden ones are listed in their order."""
        versions = {
            "net.ipv4.tcp_syncookies": 0,
            "net.ipv4.ip_local_reserved_ports": 27,
            "net.ipv4.tcp_fin_timeout": 29,
            "net.ipv4.tcp_wmem": 32,
            "net.ipv4.tcp_notsent_lowat": 37,
        }
        pod = every_container()
        pod["spec"]["securityContext"] = {"sysctls": [{"name": name, "value": "1"} for name in versions]}
        for minor in range(NEWEST + 1):
            unsafe = [name for name, first in versions.items() if minor < first]
            self.check(pod, f"forbidden sysctls ({', '.join(unsafe)})" if unsafe else "", minor)

    def test_host_process(self) -> None:
        """Windows HostProcess pods are forbidden."""
        self.every(
            "hostProcess ({who} must not set securityContext.windowsOptions.hostProcess=true)",
            windowsOptions={"hostProcess": True},
        )
        pod = every_container(securityContext={"windowsOptions": {"hostProcess": True}})
        pod["spec"]["securityContext"] = {"windowsOptions": {"hostProcess": True}}
        self.assertIn('hostProcess (pod and containers "i", "c", "e" must not', violations(pod, BASELINE))
