"""Tests for L{kubetwist.server.hardening}: flags that C{--hardened} implies and refuses, and the checks."""

from __future__ import annotations

from twisted.python.usage import UsageError
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli.kubeapi import Options
from kubetwist.server.hardening import CHECKS, FAIL, MANUAL, PASS, check, secrets_provider

from ..checkout import CHECKOUT


def parse(*flags: str) -> Options:
    """Return parsed flags."""
    options = Options()
    options.parseOptions(flags)
    return options


class ProfileTests(SynchronousTestCase):
    """The flag."""

    def test_off(self) -> None:
        """Without the flag nothing changes."""
        self.assertEqual(dict(parse()), dict(parse("--hardened=false")))
        self.assertEqual(parse()["tls-min-version"], "VersionTLS12")

    def test_implied(self) -> None:
        """The flag sets TLS 1.3, the plugins and no profiling."""
        options = parse("--hardened", "--enable-admission-plugins=EventRateLimit,NodeRestriction")
        self.assertEqual(options["tls-min-version"], "VersionTLS13")
        self.assertIs(options["profiling"], False)
        self.assertEqual(
            options["enable-admission-plugins"],
            ("EventRateLimit", "NodeRestriction", "DenyServiceExternalIPs", "OwnerReferencesPermissionEnforcement"),
        )

    def test_weaker(self) -> None:
        """A flag that weakens the profile is refused by its name; an equal or a stricter one is accepted."""
        for weaker in (
            "--tls-min-version=VersionTLS12",
            "--profiling=true",
            "--debug-socket-path=debug.sock",
            "--disable-admission-plugins=PodSecurity",
            "--disable-admission-plugins=NodeRestriction",
            "--authorization-mode=AlwaysAllow",
            "--etcd-servers=https://127.0.0.1:2379",
        ):
            with self.assertRaisesRegex(UsageError, "^--hardened "):
                parse("--hardened", weaker)
        for accepted in ("--tls-min-version=VersionTLS13", "--profiling=false", "--anonymous-auth=false"):
            parse("--hardened", accepted)
        parse("--hardened", "--etcd-servers=https://127.0.0.1:2379", "--encryption-provider-config=x.yaml")


class CheckTests(SynchronousTestCase):
    """The checks of the benchmark."""

    def failed(self, *flags: str, provider: str = "", state: str = FAIL) -> list[str]:
        """Return the numbers of the checks with a result."""
        return [item.id for item in check(parse(*flags), provider) if item.state == state]

    def test_numbers(self) -> None:
        """All items 1.2.1 to 1.2.30 are there once, and those that do not pass have a remedy."""
        numbers = [row[0] for row in CHECKS]
        self.assertEqual(numbers[:30], [f"1.2.{number}" for number in range(1, 31)])
        self.assertEqual(len(set(numbers)), len(numbers))
        for item in check(parse()):
            self.assertEqual(bool(item.remedy), item.state != PASS, item)

    def test_hardened(self) -> None:
        """With the flag, what remains depends on kubelets and on clients that reload their tokens."""
        self.assertEqual(self.failed("--hardened"), ["1.2.5", "1.2.30"])
        self.assertEqual(self.failed("--hardened", state=MANUAL), ["1.2.9", "1.2.11"])
        self.assertEqual(
            self.failed(
                "--hardened",
                "--kubelet-certificate-authority=ca.crt",
                "--service-account-extend-token-expiration=false",
            ),
            [],
        )

    def test_default(self) -> None:
        """The default settings are the same as in kube-apiserver, and fail the items that it fails."""
        for number in ("1.2.1", "1.2.3", "1.2.14", "1.2.15", "1.2.16", "1.2.27", "K.1", "K.3"):
            self.assertIn(number, self.failed())

    def test_each(self) -> None:
        """Each flag that an item is about changes its result."""
        for number, flags in {
            "1.2.2": ["--token-auth-file=tokens.csv"],
            "1.2.6": ["--authorization-mode=AlwaysAllow"],
            "1.2.7": ["--authorization-mode=RBAC"],
            "1.2.8": ["--authorization-mode=Node"],
            "1.2.10": ["--enable-admission-plugins=AlwaysAdmit"],
            "1.2.12": ["--disable-admission-plugins=ServiceAccount"],
            "1.2.13": ["--disable-admission-plugins=NamespaceLifecycle"],
            "1.2.20": ["--request-timeout=1h"],
            "1.2.21": ["--service-account-lookup=false"],
            "1.2.23": ["--etcd-servers=https://127.0.0.1:2379"],
            "1.2.26": ["--etcd-servers=http://127.0.0.1:2379", "--etcd-cafile=ca.crt"],
        }.items():
            self.assertNotIn(number, self.failed())
            self.assertIn(number, self.failed(*flags), number)
        audit = ["--audit-policy-file=p.yaml", "--audit-log-path=a.log"]
        for number, flag in (("1.2.17", "maxage=29"), ("1.2.18", "maxbackup=9"), ("1.2.19", "maxsize=99")):
            self.assertNotIn(number, self.failed(*audit))
            self.assertIn(number, self.failed(*audit, f"--audit-log-{flag}"))
        self.assertIn("1.2.16", self.failed("--audit-log-path=a.log"))

    def test_manual(self) -> None:
        """Files that are not read leave items to be checked by hand."""
        found = self.failed("--authorization-config=a.yaml", "--authentication-config=b.yaml", state=MANUAL)
        self.assertEqual(found, ["1.2.1", "1.2.6", "1.2.7", "1.2.8", "1.2.9", "1.2.11"])

    def test_encryption(self) -> None:
        """Encryption passes by its provider for Secrets; identity is no encryption with a strong cipher."""
        flag = "--encryption-provider-config=e.yaml"
        self.assertEqual({"1.2.27", "1.2.28"} & set(self.failed(flag, provider="kms")), set())
        self.assertIn("1.2.28", self.failed(flag, provider="identity"))
        self.assertIn("1.2.27", self.failed(flag))


class PageTests(SynchronousTestCase):
    """F{docs/hardening.md}."""

    def test_table(self) -> None:
        """The table on the page has the checks, with their results by default and with the flag."""
        texts = {PASS: "pass", FAIL: "fail", MANUAL: "by hand"}
        rows = [
            f"| {one.id} | {one.title} | {texts[one.state]} | {texts[other.state]} |"
            for one, other in zip(check(parse()), check(parse("--hardened")), strict=True)
        ]
        lines = (CHECKOUT / "docs" / "hardening.md").read_text("utf-8").splitlines()
        first = lines.index(rows[0])
        self.assertEqual(lines[first : first + len(rows) + 1], [*rows, ""])


class ProviderTests(SynchronousTestCase):
    """L{secrets_provider}."""

    def test_first_rule(self) -> None:
        """The first provider of the first rule for Secrets encrypts them."""
        text = "resources: [{resources: [%s], providers: [{%s: {}}, {identity: {}}]}]"
        self.assertEqual(secrets_provider(text % ("configmaps, secrets", "aescbc")), "aescbc")
        self.assertEqual(secrets_provider(text % ("'*.*'", "kms")), "kms")
        self.assertEqual(secrets_provider(text % ("configmaps", "aescbc")), "")

    def test_invalid(self) -> None:
        """A text that is no configuration has no provider."""
        for text in ("", "a: [", "[]", "resources: 3", "resources: [{resources: [secrets], providers: []}]"):
            self.assertEqual(secrets_provider(text), "", text)
