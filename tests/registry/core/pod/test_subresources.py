"""Tests of L{kubetwist.registry.core.pod.subresources}."""

from __future__ import annotations

from tests.registry.core.connectioncase import ConnectionCase
from tests.resources.server import pod


class StreamTests(ConnectionCase):
    """Tests of logs and streams of pods."""

    def test_log(self) -> None:
        """The options of the client are passed to the kubelet."""
        self.running()
        self.node()
        target = self.connect(
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
            self.target_url("pods", "log", "p", follow="false", sinceSeconds="30"),
            "https://10.1.2.3:10250/containerLogs/default/p/main?sinceSeconds=30",
        )

    def test_streams(self) -> None:
        """The kubelet gets the command and the streams with its names of the parameters."""
        self.running()
        self.node(declaredFeatures=["ExtendWebSocketsToKubelet"])
        at = "https://10.1.2.3:10250"
        query = {"command": ["sh", "-c", "a b&c"], "stdin": "true", "stdout": "1", "stderr": "0", "tty": "yes"}
        self.assertEqual(
            self.target_url("pods", "exec", "p", **query),
            f"{at}/exec/default/p/main?command=sh&command=-c&command=a+b%26c&input=1&output=1&tty=1",
        )
        self.assertEqual(self.target_url("pods", "attach", "p", stderr="1"), f"{at}/attach/default/p/main?error=1")
        self.assertEqual(
            self.target_url("pods", "portforward", "p", ports=["80", "443"]),
            f"{at}/portForward/default/p?port=80%2C443",
        )
        target = self.connect("pods", "portforward", "p")
        assert target is not None
        self.assertEqual((target.query, target.features), ("", ("ExtendWebSocketsToKubelet",)))

    def test_containers(self) -> None:
        """The container must exist, and must be named if there are several."""
        another = {"name": "other", "image": "i"}
        self.running(initContainers=[{"name": "init", "image": "i"}])
        self.node()
        self.assertEqual(
            self.connection_error("pods", "log", "p", container="no"), (400, "container no is not valid for pod p")
        )
        self.assertIn("/p/init?", self.target_url("pods", "log", "p", container="init"))
        self.assertIn("/p/main?", self.target_url("pods", "exec", "p"))
        self.running("q", containers=[*pod("q")["spec"]["containers"], another])
        message = "a container name must be specified for pod q, choose one of: [main other]"
        self.assertEqual(self.connection_error("pods", "attach", "q"), (400, message))

    def test_dry_run(self) -> None:
        """Connections cannot be dry runs."""
        self.assertEqual(self.connection_error("pods", "exec", "p", dryRun=""), (400, "dryRun is not supported"))
