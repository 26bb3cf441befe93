"""Tests for L{kubetwist.registry.core.pod.subresources}."""

from __future__ import annotations

from tests.registry.core.connectioncase import ConnectionCase
from tests.resources.server import pod


class StreamTests(ConnectionCase):
    """Tests for logs and streams of pods."""

    def test_log(self) -> None:
        """A kubelet is asked for what the client asks for."""
        self.running()
        self.node()
        target = self.leads(
            "pods", "log", "p", follow="true", previous="1", timestamps="", tailLines="5", limitBytes="70",
            sinceTime="2026-01-02T03:04:05+01:00", insecureSkipTLSVerifyBackend="true",
        )  # fmt: skip
        assert target is not None
        self.assertEqual(
            target.query,
            "follow=true&limitBytes=70&previous=true&sinceTime=2026-01-02T02%3A04%3A05Z&tailLines=5&timestamps=true",
        )
        self.assertEqual((target.kubelet, target.insecure), (True, True))
        self.assertEqual(
            self.shown("pods", "log", "p", follow="false", sinceSeconds="30"),
            "https://10.1.2.3:10250/containerLogs/default/p/main?sinceSeconds=30",
        )

    def test_streams(self) -> None:
        """A command, its input and outputs are told to the kubelet by its own names."""
        self.running()
        self.node(declaredFeatures=["ExtendWebSocketsToKubelet"])
        at = "https://10.1.2.3:10250"
        query = {"command": ["sh", "-c", "a b&c"], "stdin": "true", "stdout": "1", "stderr": "0", "tty": "yes"}
        self.assertEqual(
            self.shown("pods", "exec", "p", **query),
            f"{at}/exec/default/p/main?command=sh&command=-c&command=a+b%26c&input=1&output=1&tty=1",
        )
        self.assertEqual(self.shown("pods", "attach", "p", stderr="1"), f"{at}/attach/default/p/main?error=1")
        self.assertEqual(
            self.shown("pods", "portforward", "p", ports=["80", "443"]), f"{at}/portForward/default/p?port=80%2C443"
        )
        target = self.leads("pods", "portforward", "p")
        assert target is not None
        self.assertEqual((target.query, target.features), ("", ("ExtendWebSocketsToKubelet",)))

    def test_containers(self) -> None:
        """A container is one that is there, and has to be named where there are several."""
        another = {"name": "other", "image": "i"}
        self.running(initContainers=[{"name": "init", "image": "i"}])
        self.node()
        self.assertEqual(self.why("pods", "log", "p", container="no"), (400, "container no is not valid for pod p"))
        self.assertIn("/p/init?", self.shown("pods", "log", "p", container="init"))
        self.assertIn("/p/main?", self.shown("pods", "exec", "p"))
        self.running("q", containers=[*pod("q")["spec"]["containers"], another])
        told = "a container name must be specified for pod q, choose one of: [main other]"
        self.assertEqual(self.why("pods", "attach", "q"), (400, told))

    def test_dry_run(self) -> None:
        """Connections can not be tried."""
        self.assertEqual(self.why("pods", "exec", "p", dryRun=""), (400, "dryRun is not supported"))
