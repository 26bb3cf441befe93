"""Tests for L{kubetwist.cli.flagtypes}."""

from __future__ import annotations

from twisted.python.usage import UsageError

from kubetwist.cli.flagtypes import format_duration

from .commandlines import CommandLineTestCase, parsed


class FlagTypeTests(CommandLineTestCase):
    """Parsing of arguments."""

    def test_both_forms(self) -> None:
        """A value follows an equals sign, or is the next argument."""
        for arguments in (["--secure-port=1234"], ["--secure-port", "1234"], ["--secure_port=1234"]):
            self.assertEqual(parsed(*arguments)["secure-port"], 1234)

    def test_repeated(self) -> None:
        """The last value of a repeated flag wins."""
        self.assertEqual(parsed("--secure-port=1", "--secure-port=2")["secure-port"], 2)

    def test_switches(self) -> None:
        """A switch has no value or a value after an equals sign, never the next argument."""
        for arguments, expected in (
            (["--allow-privileged"], True),
            (["--allow-privileged=true"], True),
            (["--allow-privileged=false"], False),
            (["--allow-privileged=F"], False),
            ([], False),
            (["--allow-privileged", "--secure-port=1"], True),
        ):
            self.assertIs(parsed(*arguments)["allow-privileged"], expected, arguments)
        self.assert_rejected('unexpected argument "true"', "--allow-privileged", "true")

    def test_lists(self) -> None:
        """Lists are separated by commas, and merged if the flag is repeated."""
        options = parsed("--authorization-mode=Node,RBAC", "--authorization-mode=Webhook")
        self.assertEqual(options["authorization-mode"], ("Node", "RBAC", "Webhook"))
        options = parsed("--service-account-issuer=a,b", "--service-account-issuer=c")
        self.assertEqual(options["service-account-issuer"], ("a,b", "c"))

    def test_mappings(self) -> None:
        """Mappings are merged if the flag is repeated. A key may have no value."""
        options = parsed("--runtime-config=api/all=true,batch/v1=false", "--runtime-config=batch/v1=true,api/beta")
        self.assertEqual(options["runtime-config"], {"api/all": "true", "batch/v1": "true", "api/beta": ""})

    def test_other_kinds(self) -> None:
        """Durations, addresses, networks and ranges are parsed."""
        options = parsed(
            "--request-timeout=1m30s",
            "--bind-address=::",
            "--service-cluster-ip-range=10.1.0.0/16,fd00::/112",
            "--service-node-port-range=1-20",
        )
        self.assertEqual(options["request-timeout"], 90)
        self.assertEqual(parsed("--node-eviction-rate=0.5")["node-eviction-rate"], 0.5)
        self.assertEqual(options["bind-address"], "::")
        self.assertEqual(options["service-cluster-ip-range"], ("10.1.0.0/16", "fd00::/112"))
        self.assertEqual(options["service-node-port-range"], (1, 20))
        self.assertEqual(parsed("--service-node-port-range=10+5")["service-node-port-range"], (10, 15))

    def test_bad_values(self) -> None:
        """Invalid values are rejected."""
        for argument in (
            "--bind-address=localhost",
            "--service-cluster-ip-range=10.0.0.1/24",
            "--service-cluster-ip-range=10.0.0.0/24,10.1.0.0/24",
            "--service-cluster-ip-range=10.0.0.0/31",
            "--service-cluster-ip-range=",
            "--watch-cache-sizes=pods",
            "--feature-gates=A",
            "--service-node-port-range=20-1",
            "--service-node-port-range=x",
            "--delete-collection-workers=0",
            "--min-request-timeout=-1",
            "--request-timeout=0s",
            "--request-timeout=-1s",
            "--kubernetes-version=0.9",
            "--kubernetes-version=new",
            "--logging-format=xml",
            "--etcd-prefix=/",
            "--node-eviction-rate=-0.1",
            "--node-eviction-rate=inf",
        ):
            self.assertRaises(UsageError, parsed, argument)

    def test_format_default(self) -> None:
        """Defaults are formatted as in Go."""
        for seconds, text in ((0, "0s"), (60, "1m0s"), (3600, "1h0m0s"), (300, "5m0s"), (5, "5s")):
            self.assertEqual(format_duration(seconds), text)
