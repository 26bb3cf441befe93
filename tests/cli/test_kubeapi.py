"""Tests for L{kubetwist.cli.kubeapi}."""

from __future__ import annotations

import contextlib
import io

from kubetwist.cli.flagtable import FLAGS
from kubetwist.cli.kubeapi import Options

from .commandlines import CommandLineTestCase, parsed


class OptionsTests(CommandLineTestCase):
    """The command line of C{twist kubeapi}."""

    def test_defaults(self) -> None:
        """Every option has a default."""
        options = parsed()
        self.assertEqual((options["secure-port"], options["bind-address"]), (6443, "127.0.0.1"))
        self.assertEqual(options["kubernetes-version"], "1.36")
        self.assertEqual(options["authorization-mode"], ())
        self.assertEqual({flag.name for flag in FLAGS}, set(options))

    def test_in_memory(self) -> None:
        """C{--in-memory} selects the store, and excludes other stores."""
        self.assertEqual(parsed("--in-memory")["storage-backend"], "memory")
        self.assertEqual(parsed("--in-memory", "--storage-backend=memory")["storage-backend"], "memory")
        self.assertEqual(parsed("--in-memory=false")["storage-backend"], "sqlite")
        self.assert_rejected(
            "--in-memory and --storage-backend=sqlite are mutually exclusive", "--in-memory", "--storage-backend=sqlite"
        )
        self.assert_rejected(
            "--in-memory and --etcd-servers are mutually exclusive",
            "--in-memory",
            "--etcd-servers=http://127.0.0.1:2379",
        )

    def test_bind_address(self) -> None:
        """
        A server with a non-loopback advertise address listens on all interfaces by default. Other servers listen on
        loopback.
        """
        for address, expected in (("192.0.2.1", "0.0.0.0"), ("2001:db8::1", "::"), ("127.0.0.1", "127.0.0.1")):
            self.assertEqual(parsed(f"--advertise-address={address}")["bind-address"], expected)
        both = parsed("--advertise-address=192.0.2.1", "--bind-address=127.0.0.1")
        self.assertEqual(both["bind-address"], "127.0.0.1")

    def test_kubernetes_version(self) -> None:
        """The prefix C{v} and the patch level of a release are optional."""
        for text in ("1.30", "v1.30", "1.30.4"):
            self.assertEqual(parsed(f"--kubernetes-version={text}")["kubernetes-version"], "1.30")

    def test_renamed_flags(self) -> None:
        """The old name of a flag sets the renamed flag, and prints a warning in pflag's words."""
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            options = parsed("--pretend-nodes=2")
        self.assertEqual(options["fake-nodes"], 2)
        self.assertEqual(options.changed, {"fake-nodes"})
        self.assertEqual(errors.getvalue(), "Flag --pretend-nodes has been deprecated, use --fake-nodes\n")

    def test_invalid(self) -> None:
        """Invalid command lines are rejected with a one-line message that names the flag."""
        self.assert_rejected("unknown flag: --nope", "--nope=1")
        self.assert_rejected("unknown flag: --secure-por; did you mean --secure-port?", "--secure-por=1")
        self.assert_rejected("unknown flag: --Etcd_server; did you mean --etcd-servers?", "--Etcd_server=x")
        self.assert_rejected('unexpected argument "stray"', "stray")
        self.assert_rejected('unexpected argument "-x"', "-x")
        self.assert_rejected("flag needs an argument: --cert-dir", "--cert-dir")
        self.assert_rejected(
            'invalid argument "x" for "--secure-port" flag: it must be a whole number', "--secure-port=x"
        )
        self.assert_rejected(
            'invalid argument "70000" for "--secure-port" flag: it must be a port between 0 and 65535',
            "--secure-port=70000",
        )
        self.assert_rejected(
            'invalid argument "5" for "--event-ttl" flag: time: missing unit in duration "5"', "--event-ttl=5"
        )
        self.assert_rejected(
            'invalid argument "maybe" for "--anonymous-auth" flag: it must be true or false', "--anonymous-auth=maybe"
        )
        self.assert_rejected(
            "--tls-cert-file and --tls-private-key-file must be set together", "--tls-cert-file=x", "--secure-port=1"
        )
        self.assert_rejected(
            "--proxy-client-cert-file and --proxy-client-key-file must be set together", "--proxy-client-key-file=x"
        )
        self.assert_rejected(
            'invalid argument "false" for "--aggregator-reject-forwarding-redirect" flag: redirects of other'
            " API servers are never passed on",
            "--aggregator-reject-forwarding-redirect=false",
        )

    def test_general_flags_in_help(self) -> None:
        """The help lists --help and --version."""
        text = Options().getUsage()
        for flag in ("--help", "--version"):
            self.assertIn(f"\n    {flag}\n", text)

    def test_under_twist(self) -> None:
        """Under twist an invalid command line ends the process with one line on stderr."""
        options = Options()
        options.parent = {}
        printed = io.StringIO()
        with contextlib.redirect_stderr(printed):
            error = self.assertRaises(SystemExit, options.parseOptions, ["--nope"])
        self.assertEqual(error.code, 64)
        self.assertEqual(printed.getvalue(), "twist kubeapi: unknown flag: --nope; see twist kubeapi --help\n")

    def printed(self, *arguments: str) -> str:
        """Return the output of a command line that exits with 0."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            error = self.assertRaises(SystemExit, parsed, *arguments)
        self.assertIn(error.code, (None, 0))
        return printed.getvalue()

    def test_help(self) -> None:
        """The help lists every flag once, in its section and with its default."""
        text = self.printed("--help")
        for flag in FLAGS:
            self.assertEqual(text.count(f"    --{flag.name} ") + text.count(f"    --{flag.name}\n"), 1, flag.name)
        self.assertIn("Secure serving flags:", text)
        self.assertIn("(default 6443)", text)
        self.assertIn("(default 5m0s)", text)
        self.assertLess(max(map(len, text.splitlines())), 130)

    def test_version(self) -> None:
        """C{--version} prints the emulated release."""
        self.assertRegex(self.printed("--version"), r"^Kubernetes v1\.36\.2 \(kubetwist ")
