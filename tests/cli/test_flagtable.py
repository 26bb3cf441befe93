"""Command lines that were written for kube-apiserver."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Final

from twisted.python.usage import UsageError
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli import flags
from kubetwist.cli.flagtable import FLAGS
from kubetwist.cli.kubeapi import Options
from kubetwist.http.connection.ciphers import openssl_ciphers
from kubetwist.server.credentials.namedcertificates import NamedFiles

#: The flags that kube-apiserver 1.36 tells of, one a line.
_NAMES: Final = Path(__file__).with_name("referenceflags.txt")
#: What is looked for before flags are read.
_ELSEWHERE: Final = frozenset(("help", "version"))


def parsed(*arguments: str) -> Options:
    """A command line, read."""
    options = Options()
    options.parseOptions(list(arguments))
    return options


class ReferenceFlagTests(SynchronousTestCase):
    """Which flags are taken."""

    def assert_refused(self, message: str, *arguments: str) -> None:
        """Expect a command line to be refused with a message."""
        error = self.assertRaises(UsageError, parsed, *arguments)
        self.assertEqual(str(error), message)

    def test_all(self) -> None:
        """Every flag of kube-apiserver is known, if only to say why it can not be set."""
        names = set(_NAMES.read_text().split())
        self.assertGreater(len(names), 150)
        self.assertEqual(names - {flag.name for flag in FLAGS} - _ELSEWHERE, set())

    def test_defaults_are_taken(self) -> None:
        """Flags that are only one way can be given that way."""
        unused = {flag.name for flag in FLAGS if flag.help.startswith("Can not be set: ")}
        self.assertGreater(len(unused), 20)
        unused |= {"goaway-chance", "http2-max-streams-per-connection", "permit-address-sharing", "log-flush-frequency"}
        unused |= {"storage-media-type", "enable-garbage-collector"}
        unused |= {f"coordinated-leadership-{name}" for name in ("lease-duration", "renew-deadline", "retry-period")}
        found = [flag for flag in FLAGS if flag.name in unused]
        self.assertEqual(len(found), len(unused))
        for flag in found:
            text = str(flag.default).lower() if isinstance(flag.default, bool) else str(flag.default)
            if flag.kind.shown == "duration":
                text = f"{flag.default}s"
            self.assertEqual(parsed(f"--{flag.name}={text}")[flag.name], flag.default, flag.name)

    def test_sections(self) -> None:
        """The flags of a section are in one module, which has no others."""
        for name, module in vars(flags).items():
            if not name.startswith("_"):
                self.assertEqual(len({flag.section for flag in module.FLAGS}), 1, name)
        sections = [section for section, _ in groupby(flag.section for flag in FLAGS)]
        self.assertEqual(len(sections), len(set(sections)))
        self.assertEqual(len({flag.name for flag in FLAGS}), len(FLAGS))

    def test_reasons(self) -> None:
        """What can not be set says why."""
        self.assert_refused(
            'invalid argument "/events#https://127.0.0.1:4002" for "--etcd-servers-overrides" flag: all resources are'
            " in one store, as one revision orders all changes; leave it out, and move what is elsewhere to"
            " --etcd-servers before",
            "--etcd-servers-overrides=/events#https://127.0.0.1:4002",
        )
        self.assert_refused(
            'invalid argument "application/yaml" for "--storage-media-type" flag: objects are stored as'
            " application/json or application/vnd.kubernetes.protobuf",
            "--storage-media-type=application/yaml",
        )
        self.assert_refused(
            'invalid argument "1" for "--goaway-chance" flag: it must be between 0 and 0.02', "--goaway-chance=1"
        )
        for argument in ("--permit-port-sharing", "--contention-profiling", "--egress-selector-config-file=x"):
            self.assertRaises(UsageError, parsed, argument)

    def test_reconciler(self) -> None:
        """All three ways to keep the endpoints of the servers are known."""
        for kind in ("lease", "master-count", "none"):
            self.assertEqual(parsed(f"--endpoint-reconciler-type={kind}")["endpoint-reconciler-type"], kind)
        self.assertEqual(parsed("--apiserver-count=3")["apiserver-count"], 3)
        self.assertRaises(UsageError, parsed, "--apiserver-count=0")
        self.assertRaises(UsageError, parsed, "--endpoint-reconciler-type=x")

    def test_where_to_listen(self) -> None:
        """Who tells others to come listens for them; nobody else does unless asked to."""
        for address, expected in (("192.0.2.1", "0.0.0.0"), ("2001:db8::1", "::"), ("127.0.0.1", "127.0.0.1")):
            self.assertEqual(parsed(f"--advertise-address={address}")["bind-address"], expected)
        both = parsed("--advertise-address=192.0.2.1", "--bind-address=127.0.0.1")
        self.assertEqual(both["bind-address"], "127.0.0.1")

    def test_browsers(self) -> None:
        """What browsers are told makes sense, and patterns can not match in the middle of other hosts."""
        given = parsed("--strict-transport-security-directives=max-age=31536000,includeSubDomains,preload")
        self.assertEqual(len(given["strict-transport-security-directives"]), 3)
        self.assertRaises(UsageError, parsed, "--strict-transport-security-directives=max-age")
        self.assertEqual(
            parsed("--cors-allowed-origins=//a$,^https://b:")["cors-allowed-origins"], ("//a$", "^https://b:")
        )
        for pattern, why in (
            ("example.com", "regular expression does not pin to start/end of host in the origin header"),
            ("^a(", "error parsing regexp: missing closing ): `^a(`"),
        ):
            self.assert_refused(
                f'invalid argument "{pattern}" for "--cors-allowed-origins" flag: {why}',
                f"--cors-allowed-origins={pattern}",
            )

    def test_ciphers(self) -> None:
        """Suites have Go's names; those of TLS 1.3 are there anyway, and those that nobody speaks are refused."""
        names = "TLS_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_RSA_WITH_AES_256_CBC_SHA"
        given = parsed(f"--tls-cipher-suites={names}")["tls-cipher-suites"]
        self.assertEqual(openssl_ciphers(given), "ECDHE-RSA-AES128-GCM-SHA256:AES256-SHA")
        self.assertEqual(openssl_ciphers(("TLS_AES_256_GCM_SHA384",)), "")
        for name in ("TLS_RSA_WITH_RC4_128_SHA", "x"):
            self.assert_refused(
                f'invalid argument "{name}" for "--tls-cipher-suites" flag: Cipher suite {name} not supported or'
                " doesn't exist",
                f"--tls-cipher-suites={name}",
            )

    def test_named_certificates(self) -> None:
        """Certificates for names come with their names, or without; several add up."""
        given = parsed("--tls-sni-cert-key=a.crt,a.key", "--tls-sni-cert-key=b.crt,b.key:*.b.test,b.test")
        self.assertEqual(
            given["tls-sni-cert-key"],
            (NamedFiles("a.crt", "a.key"), NamedFiles("b.crt", "b.key", ("*.b.test", "b.test"))),
        )
        for text in ("a.crt", "a.crt,", ",a.key", "a,b,c", "a.crt,a.key:", "a.crt,a.key:x.*.y"):
            self.assertRaises(UsageError, parsed, f"--tls-sni-cert-key={text}")
