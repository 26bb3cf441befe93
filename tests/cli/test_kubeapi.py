"""Tests for L{kubetwist.cli.flagtypes} and L{kubetwist.cli.kubeapi}."""

from __future__ import annotations

import contextlib
import io
import json
from ipaddress import ip_address
from typing import Any

from twisted.python.usage import UsageError
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.go.durations import parse_duration
from kubetwist.cli.flagtable import FLAGS
from kubetwist.cli.flagtypes import shown_duration
from kubetwist.cli.kubeapi import Options


def parsed(*arguments: str) -> Options:
    """A command line, read."""
    options = Options()
    options.parseOptions(list(arguments))
    return options


class FlagTests(SynchronousTestCase):
    """How the command line is read."""

    def assert_refused(self, message: str, *arguments: str) -> None:
        """Expect a command line to be refused with a message."""
        error = self.assertRaises(UsageError, parsed, *arguments)
        self.assertEqual(str(error), message)

    def test_defaults(self) -> None:
        """Without flags there is a value for every option."""
        options = parsed()
        self.assertEqual((options["secure-port"], options["bind-address"]), (6443, "127.0.0.1"))
        self.assertEqual(options["kubernetes-version"], "1.36")
        self.assertEqual(options["authorization-mode"], ())
        self.assertEqual({flag.name for flag in FLAGS}, set(options))

    def test_networks_for_webhooks(self) -> None:
        """URLs of webhooks lead to no metadata service unless that is wanted; what is said adds up."""
        flag = "--webhook-url-denied-cidrs"
        default = parsed()["webhook-url-denied-cidrs"]
        for address in ("169.254.169.254", "fe80::1", "100.100.100.200", "fd00:ec2::254", "fd20:ce::254"):
            self.assertTrue(any(ip_address(address) in network for network in default), address)
        self.assertFalse(any(ip_address("127.0.0.1") in network for network in default))
        self.assertEqual(parsed(f"{flag}=")["webhook-url-denied-cidrs"], ())
        both = parsed(f"{flag}=10.0.0.0/8", f"{flag}=fd00::/8,127.0.0.1")["webhook-url-denied-cidrs"]
        self.assertEqual([str(network) for network in both], ["10.0.0.0/8", "fd00::/8", "127.0.0.1/32"])
        self.assert_refused(
            'invalid argument "10.0.0.1/8" for "--webhook-url-denied-cidrs" flag: it must be networks such as'
            " 169.254.0.0/16: 10.0.0.1/8 has host bits set",
            f"{flag}=10.0.0.1/8",
        )

    def test_in_memory(self) -> None:
        """C{--in-memory} chooses the store, and takes no other."""
        self.assertEqual(parsed("--in-memory")["storage-backend"], "memory")
        self.assertEqual(parsed("--in-memory", "--storage-backend=memory")["storage-backend"], "memory")
        self.assertEqual(parsed("--in-memory=false")["storage-backend"], "sqlite")
        self.assert_refused(
            "--in-memory and --storage-backend=sqlite contradict each other", "--in-memory", "--storage-backend=sqlite"
        )
        self.assert_refused(
            "--in-memory and --etcd-servers contradict each other",
            "--in-memory",
            "--etcd-servers=http://127.0.0.1:2379",
        )

    def test_storage_media_type(self) -> None:
        """Only in etcd there can be protobuf."""
        flag = "--storage-media-type=application/vnd.kubernetes.protobuf"
        self.assertEqual(parsed()["storage-media-type"], "application/json")
        taken = parsed(flag, "--etcd-servers=http://127.0.0.1:2379")
        self.assertEqual(taken["storage-media-type"], "application/vnd.kubernetes.protobuf")
        for arguments, backend in (((), "sqlite"), (("--in-memory",), "memory")):
            self.assert_refused(
                f"{flag} needs --etcd-servers: the storage backend {backend} keeps objects as application/json",
                flag,
                *arguments,
            )

    def test_both_forms(self) -> None:
        """A value stands behind an equals sign, or is the next argument."""
        for arguments in (["--secure-port=1234"], ["--secure-port", "1234"], ["--secure_port=1234"]):
            self.assertEqual(parsed(*arguments)["secure-port"], 1234)

    def test_last_counts(self) -> None:
        """Of a flag that is given twice the last counts."""
        self.assertEqual(parsed("--secure-port=1", "--secure-port=2")["secure-port"], 2)

    def test_switches(self) -> None:
        """A switch stands alone or has its value behind an equals sign, never in the next argument."""
        for arguments, expected in (
            (["--allow-privileged"], True),
            (["--allow-privileged=true"], True),
            (["--allow-privileged=false"], False),
            (["--allow-privileged=F"], False),
            ([], False),
            (["--allow-privileged", "--secure-port=1"], True),
        ):
            self.assertIs(parsed(*arguments)["allow-privileged"], expected, arguments)
        self.assert_refused('unexpected argument "true"', "--allow-privileged", "true")

    def test_lists(self) -> None:
        """Lists are parted by commas, and add up."""
        options = parsed("--authorization-mode=Node,RBAC", "--authorization-mode=Webhook")
        self.assertEqual(options["authorization-mode"], ("Node", "RBAC", "Webhook"))
        options = parsed("--service-account-issuer=a,b", "--service-account-issuer=c")
        self.assertEqual(options["service-account-issuer"], ("a,b", "c"))

    def test_mappings(self) -> None:
        """Mappings add up; a key may stand alone."""
        options = parsed("--runtime-config=api/all=true,batch/v1=false", "--runtime-config=batch/v1=true,api/beta")
        self.assertEqual(options["runtime-config"], {"api/all": "true", "batch/v1": "true", "api/beta": ""})

    def test_bad_runtime_config(self) -> None:
        """A malformed or unknown key of --runtime-config is refused with the flags, in the reference's words."""
        self.assert_refused("--runtime-config: unknown api groups foo.io/v1", "--runtime-config=foo.io/v1=true")
        self.assert_refused("--runtime-config: runtime-config invalid key apps", "--runtime-config=apps")
        self.assertEqual(parsed("--feature-gates=kube:A=true,B=false")["feature-gates"], {"A": True, "B": False})
        self.assertEqual(parsed("--watch-cache-sizes=pods#5,x.y#0")["watch-cache-sizes"], {"pods": 5, "x.y": 0})

    def test_other_kinds(self) -> None:
        """Durations, addresses, networks and ranges are read as what they are."""
        options = parsed(
            "--request-timeout=1m30s",
            "--bind-address=::",
            "--service-cluster-ip-range=10.1.0.0/16,fd00::/112",
            "--service-node-port-range=1-20",
        )
        self.assertEqual(options["request-timeout"], 90)
        self.assertEqual(options["bind-address"], "::")
        self.assertEqual(options["service-cluster-ip-range"], ("10.1.0.0/16", "fd00::/112"))
        self.assertEqual(options["service-node-port-range"], (1, 20))
        self.assertEqual(parsed("--service-node-port-range=10+5")["service-node-port-range"], (10, 15))

    def test_kubernetes_version(self) -> None:
        """A release is named with or without its v and its patch level."""
        for text in ("1.30", "v1.30", "1.30.4"):
            self.assertEqual(parsed(f"--kubernetes-version={text}")["kubernetes-version"], "1.30")

    def test_refusals(self) -> None:
        """What makes no sense is refused in one line that names the flag."""
        self.assert_refused("unknown flag: --nope", "--nope=1")
        self.assert_refused("unknown flag: --secure-por; did you mean --secure-port?", "--secure-por=1")
        self.assert_refused("unknown flag: --Etcd_server; did you mean --etcd-servers?", "--Etcd_server=x")
        self.assert_refused('unexpected argument "stray"', "stray")
        self.assert_refused('unexpected argument "-x"', "-x")
        self.assert_refused("flag needs an argument: --cert-dir", "--cert-dir")
        self.assert_refused(
            'invalid argument "x" for "--secure-port" flag: it must be a whole number', "--secure-port=x"
        )
        self.assert_refused(
            'invalid argument "70000" for "--secure-port" flag: it must be a port between 0 and 65535',
            "--secure-port=70000",
        )
        self.assert_refused(
            'invalid argument "5" for "--event-ttl" flag: time: missing unit in duration "5"', "--event-ttl=5"
        )
        self.assert_refused(
            'invalid argument "maybe" for "--anonymous-auth" flag: it must be true or false', "--anonymous-auth=maybe"
        )
        self.assert_refused(
            "--tls-cert-file and --tls-private-key-file go together", "--tls-cert-file=x", "--secure-port=1"
        )
        self.assert_refused(
            "--proxy-client-cert-file and --proxy-client-key-file go together", "--proxy-client-key-file=x"
        )
        self.assert_refused(
            "--aggregator-reject-forwarding-redirect=false is not possible: redirects of other API servers are never"
            " passed on",
            "--aggregator-reject-forwarding-redirect=false",
        )

    def test_bad_values(self) -> None:
        """Values that can not be used are refused, whatever their kind."""
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
        ):
            self.assertRaises(UsageError, parsed, argument)

    def test_general_flags_in_help(self) -> None:
        """The help lists --help and --version, too."""
        text = Options().getUsage()
        for flag in ("--help", "--version"):
            self.assertIn(f"\n    {flag}\n", text)

    def test_under_twist(self) -> None:
        """Under twist a mistake ends the process with one line on stderr."""
        options = Options()
        options.parent = {}
        printed = io.StringIO()
        with contextlib.redirect_stderr(printed):
            error = self.assertRaises(SystemExit, options.parseOptions, ["--nope"])
        self.assertEqual(error.code, 64)
        self.assertEqual(printed.getvalue(), "twist kubeapi: unknown flag: --nope; see twist kubeapi --help\n")

    def printed(self, *arguments: str) -> str:
        """What is printed before the process ends well."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            error = self.assertRaises(SystemExit, parsed, *arguments)
        self.assertIn(error.code, (None, 0))
        return printed.getvalue()

    def test_help(self) -> None:
        """The help shows every flag once, under its section, with its default."""
        text = self.printed("--help")
        for flag in FLAGS:
            self.assertEqual(text.count(f"    --{flag.name} ") + text.count(f"    --{flag.name}\n"), 1, flag.name)
        self.assertIn("Secure serving flags:", text)
        self.assertIn("(default 6443)", text)
        self.assertIn("(default 5m0s)", text)
        self.assertLess(max(map(len, text.splitlines())), 130)

    def test_version(self) -> None:
        """The version names the release that is stood in for."""
        self.assertRegex(self.printed("--version"), r"^Kubernetes v1\.36\.2 \(kubetwist ")


class DurationTests(SynchronousTestCase):
    """Tests for L{kubetwist.api.go.durations}."""

    def test_durations(self) -> None:
        """Durations are read as Go reads them."""
        for text, seconds in (
            ("0", 0),
            ("5s", 5),
            ("5m0s", 300),
            ("1h", 3600),
            ("1.5s", 1.5),
            (".5s", 0.5),
            ("5.s", 5),
            ("100ms", 0.1),
            ("2us", 2e-6),
            ("2µs", 2e-6),
            ("-1m", -60),
            ("+1m", 60),
        ):
            self.assertEqual(parse_duration(text), seconds, text)

    def test_errors(self) -> None:
        """What is none is told in Go's words."""
        for text, message in (
            ("", 'time: invalid duration ""'),
            ("x", 'time: invalid duration "x"'),
            ("1", 'time: missing unit in duration "1"'),
            ("1x", 'time: unknown unit "x" in duration "1x"'),
            (".s", 'time: invalid duration ".s"'),
            ("-", 'time: invalid duration "-"'),
            ("9999999h", 'time: invalid duration "9999999h"'),
        ):
            error = self.assertRaises(ValueError, parse_duration, text)
            self.assertEqual(str(error), message)

    def test_shown(self) -> None:
        """Defaults are shown as Go shows them."""
        for seconds, text in ((0, "0s"), (60, "1m0s"), (3600, "1h0m0s"), (300, "5m0s"), (5, "5s")):
            self.assertEqual(shown_duration(seconds), text)


class VersionTests(SynchronousTestCase):
    """Tests for L{kubetwist.server.version}."""

    def test_document(self) -> None:
        """The release is told in the reference's form."""
        from kubetwist.server.version import git_version, version_document

        document: dict[str, Any] = json.loads(json.dumps(version_document("1.36")))
        self.assertEqual(document["gitVersion"], "v1.36.2")
        self.assertEqual((document["major"], document["minor"]), ("1", "36"))
        self.assertEqual((document["emulationMinor"], document["minCompatibilityMinor"]), ("36", "35"))
        self.assertEqual(git_version("1.30"), "v1.30.0")
