"""Tests for L{kubetwist.controllers.csr.csrsigning}, C{requestapproving} and C{requestcleaner}."""

from __future__ import annotations

import ipaddress
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from twisted.internet.defer import Deferred, maybeDeferred

from kubetwist.api.authorization import Decision, Verdict
from kubetwist.api.times import use_clock
from kubetwist.controllers.csr.csrapproving import RETRY, RequestApproving
from kubetwist.controllers.csr.csrcleaner import DECIDED, PENDING, RequestCleaner
from kubetwist.controllers.csr.csrsigning import RequestSigning, usage_extensions
from kubetwist.controllers.csr.requests import CLIENT, GROUP, KUBELET_CLIENT, KUBELET_SERVING
from kubetwist.registry.rbac.ruleresolver import Grants
from kubetwist.server.credentials.certificates import Authority
from tests.controllers.harness import ControllerTestCase

NAME = "certificatesigningrequests"
KEY = ec.generate_private_key(ec.SECP256R1())
AUTHORITY = Authority.make("test")


class Signing(RequestSigning):
    """Without threads."""

    def in_thread(self, call: Callable[[], Any]) -> Deferred[Any]:
        """At once."""
        return maybeDeferred(call)


class SigningRequestTestCase(ControllerTestCase):
    """Requests."""

    resources = (NAME,)
    config = SimpleNamespace(data=SimpleNamespace(authority=lambda: AUTHORITY))

    def request(
        self,
        name: str,
        signer: str = CLIENT,
        common: str = "jane",
        organization: str = "",
        names: tuple[x509.GeneralName, ...] = (),
        usages: tuple[str, ...] = ("client auth",),
        **spec: Any,
    ) -> Any:
        """Make a request."""
        attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
        if organization:
            attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
        builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(attributes))
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        pem = builder.sign(KEY, hashes.SHA256()).public_bytes(Encoding.PEM)
        return self.make(
            NAME,
            name,
            "",
            GROUP,
            spec={"request": b64encode(pem).decode(), "signerName": signer, "usages": list(usages), **spec},
        )

    def say(self, name: str, kind: str) -> None:
        """Approve or deny."""
        condition = {"type": kind, "status": "True", "reason": "Because", "message": ""}

        def change(obj: Any) -> None:
            obj.setdefault("status", {}).setdefault("conditions", []).append(condition)

        self.change(NAME, name, change, "", GROUP, part="approval")

    def status(self, name: str) -> Any:
        """What became of it."""
        return (self.find(NAME, name, "", GROUP) or {}).get("status") or {}

    def certificate(self, name: str) -> x509.Certificate:
        """What was issued."""
        return x509.load_pem_x509_certificate(b64decode(self.status(name)["certificate"]))


class RequestSigningTests(SigningRequestTestCase):
    """Signing."""

    def test_client(self) -> None:
        """A request that was approved gets a certificate of our authority, good for a year; others wait."""
        self.start(Signing)
        self.request("one", usages=("client auth", "digital signature"), names=(x509.DNSName("a.example.com"),))
        self.settle()
        self.assertEqual(self.status("one"), {})
        self.say("one", "Approved")
        self.request("two")
        self.say("two", "Denied")
        self.settle()
        found = self.certificate("one")
        found.verify_directly_issued_by(x509.load_pem_x509_certificate(AUTHORITY.pair.certificate))
        self.assertEqual(found.public_key(), KEY.public_key())
        self.assertEqual(found.subject.rfc4514_string(), "CN=jane")
        now = self.context.now()
        self.assertEqual(found.not_valid_before_utc, now - timedelta(minutes=5))
        self.assertEqual(found.not_valid_after_utc, now + timedelta(days=365, minutes=-5))
        extensions = found.extensions
        purposes = extensions.get_extension_for_class(x509.ExtendedKeyUsage)
        self.assertEqual(list(purposes.value), [ExtendedKeyUsageOID.CLIENT_AUTH])
        usage = extensions.get_extension_for_class(x509.KeyUsage)
        self.assertTrue(usage.critical and usage.value.digital_signature and not usage.value.key_encipherment)
        self.assertFalse(extensions.get_extension_for_class(x509.BasicConstraints).value.ca)
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        self.assertEqual(names.get_values_for_type(x509.DNSName), ["a.example.com"])
        self.assertNotIn("certificate", self.status("two"))

    def test_life(self) -> None:
        """Who asks for a shorter life gets it; nobody gets a longer one."""
        self.start(Signing)
        for name, seconds in (("short", 600), ("long", 10**9), ("day", 86400)):
            self.request(name, expirationSeconds=seconds)
            self.say(name, "Approved")
        self.settle()
        now = self.context.now()
        ends = [self.certificate(name).not_valid_after_utc - now for name in ("short", "day", "long")]
        self.assertEqual(ends, [timedelta(minutes=10), timedelta(days=1, minutes=-5), timedelta(days=365, minutes=-5)])

    def test_unfit(self) -> None:
        """Each signer signs what it is for; a condition says what else is wrong."""
        node: Any = {"common": "system:node:n", "organization": "system:nodes"}
        client = ("client auth", "digital signature")
        server = ("server auth", "digital signature", "key encipherment")
        dns, ip = x509.DNSName("a"), x509.IPAddress(ipaddress.ip_address("10.0.0.1"))
        mail, uri = x509.RFC822Name("a@b"), x509.UniformResourceIdentifier("https://a/")
        cases: list[tuple[str, str, dict[str, Any]]] = [
            (CLIENT, "invalid usage for client certificate: server auth", {"usages": server}),
            (CLIENT, "missing required usage for client certificate: client auth", {"usages": ("digital signature",)}),
            (CLIENT, "", {"usages": (*client, "key encipherment"), "names": (dns, mail)}),
            (KUBELET_CLIENT, "", {**node, "usages": client}),
            (KUBELET_CLIENT, "subject organization is not system:nodes", {"usages": client}),
            (KUBELET_CLIENT, "DNS subjectAltNames are not allowed", {**node, "usages": client, "names": (dns,)}),
            (KUBELET_CLIENT, "Email subjectAltNames are not allowed", {**node, "usages": client, "names": (mail,)}),
            (KUBELET_CLIENT, "IP subjectAltNames are not allowed", {**node, "usages": client, "names": (ip,)}),
            (KUBELET_CLIENT, "URI subjectAltNames are not allowed", {**node, "usages": client, "names": (uri,)}),
            (
                KUBELET_CLIENT,
                "subject common name does not begin with system:node:",
                {**node, "usages": client, "common": "n"},
            ),
            (
                KUBELET_CLIENT,
                "usages did not match [client auth digital signature key encipherment]",
                {**node, "usages": server},
            ),
            (KUBELET_SERVING, "", {**node, "usages": server, "names": (dns, ip)}),
            (KUBELET_SERVING, "DNS or IP subjectAltName is required", {**node, "usages": server}),
            (
                KUBELET_SERVING,
                "Email subjectAltNames are not allowed",
                {**node, "usages": server, "names": (dns, mail)},
            ),
            (KUBELET_SERVING, "URI subjectAltNames are not allowed", {**node, "usages": server, "names": (ip, uri)}),
            (
                KUBELET_SERVING,
                "usages did not match [digital signature key encipherment server auth]",
                {**node, "usages": client, "names": (ip,)},
            ),
        ]
        self.start(Signing)
        for number, (signer, why, what) in enumerate(cases):
            name = f"r{number}"
            self.request(name, signer, **what)
            self.say(name, "Approved")
            self.settle()
            failed = [one for one in self.status(name)["conditions"] if one["type"] == "Failed"]
            self.assertEqual([one["message"] for one in failed], [why] if why else [], what)
            self.assertEqual([one["reason"] for one in failed], ["SignerValidationFailure"] if why else [])
            self.assertEqual("certificate" in self.status(name), not why)

    def test_others(self) -> None:
        """Requests for signers that are not ours are left to them."""
        self.start(Signing)
        self.request("one", "example.com/mine")
        self.say("one", "Approved")
        self.settle()
        self.assertNotIn("certificate", self.status("one"))

    def test_usages(self) -> None:
        """All usages that the API knows have their place in a certificate."""
        (_, critical), (purposes, _) = usage_extensions(("s/mime", "any", "cert sign", "encipher only"))
        self.assertTrue(critical)
        assert isinstance(purposes, x509.ExtendedKeyUsage)
        self.assertEqual([one.dotted_string for one in purposes], ["2.5.29.37.0", "1.3.6.1.5.5.7.3.4"])
        self.assertEqual(usage_extensions(()), [])

    def test_faults_and_restart(self) -> None:
        """With writes that fail, and after a kill, all that was approved is signed in the end."""
        for number in range(20):
            self.request(f"r{number}")
            self.say(f"r{number}", "Approved")
        self.backend.fails = lambda number: number % 10 == 0
        self.start(Signing)
        self.settle(60)
        self.backend.fails = lambda number: False
        for number in range(20):
            self.certificate(f"r{number}")
        for subscription in self.running[0]._subscriptions:
            subscription.stop()
        self.request("last")
        self.say("last", "Approved")
        before = self.status("r0")
        self.restart(Signing)
        self.certificate("last")
        self.assertEqual(self.status("r0"), before)


class Authorizer:
    """
    Allows what it is told to.

    @ivar allowed: Subresources.
    @ivar asked: What it was asked.
    """

    name = "Test"

    def __init__(self) -> None:
        self.allowed: set[str] = set()
        self.asked: list[Any] = []

    def authorize(self, attributes: Any) -> Verdict:
        """Say so."""
        self.asked.append(attributes)
        return Verdict(Decision.ALLOW if attributes.subresource in self.allowed else Decision.NO_OPINION)


class RequestApprovingTests(SigningRequestTestCase):
    """Approving."""

    def setUp(self) -> None:
        """With an authorizer that allows nothing yet."""
        self.authorizer = Authorizer()
        super().setUp()

    def authorizer_over(self, grants: Grants) -> Any:
        """That one."""
        return self.authorizer

    def node(self, name: str, **spec: Any) -> None:
        """Make a request of a node; whoever makes it is C{admin}."""
        usages = ("client auth", "digital signature")
        self.request(name, KUBELET_CLIENT, "system:node:n", "system:nodes", usages=usages, **spec)

    def test_allowed(self) -> None:
        """A node's request is approved when whoever asks may have it so."""
        self.authorizer.allowed.add("nodeclient")
        self.start(RequestApproving)
        self.node("one")
        self.request("other")
        self.settle()
        (condition,) = self.status("one")["conditions"]
        self.assertEqual((condition["type"], condition["reason"]), ("Approved", "AutoApproved"))
        self.assertEqual(condition["message"], "Auto approving kubelet client certificate after SubjectAccessReview.")
        self.assertEqual(self.status("other"), {})
        (asked,) = self.authorizer.asked
        self.assertEqual((asked.user.name, asked.verb, asked.group, asked.resource), ("admin", "create", GROUP, NAME))

    def test_not_yet(self) -> None:
        """Who may not now may later."""
        self.start(RequestApproving)
        self.node("one")
        self.settle()
        self.assertEqual(self.status("one"), {})
        self.authorizer.allowed.add("nodeclient")
        self.settle(RETRY + 1)
        self.assertEqual(len(self.status("one")["conditions"]), 1)

    def test_faults(self) -> None:
        """With writes that fail, all is approved in the end, and after a kill nothing twice."""
        for number in range(20):
            self.node(f"r{number}")
        self.authorizer.allowed.add("nodeclient")
        self.backend.fails = lambda number: number % 10 == 0
        self.start(RequestApproving)
        self.settle(60)
        self.backend.fails = lambda number: False
        self.restart(RequestApproving)
        for number in range(20):
            self.assertEqual(len(self.status(f"r{number}")["conditions"]), 1)


class RequestCleanerTests(SigningRequestTestCase):
    """Cleaning."""

    def setUp(self) -> None:
        """Objects are made by the clock of the test."""
        super().setUp()
        use_clock(self.clock.seconds)
        self.addCleanup(use_clock)

    def make_all(self) -> None:
        """One request of each fate."""
        for name in ("approved", "short", "denied", "failed", "pending", "foreign"):
            signer = "example.com/mine" if name == "foreign" else CLIENT
            usage = "server auth" if name == "failed" else "client auth"
            spec = {"expirationSeconds": 600} if name == "short" else {}
            self.request(name, signer, usages=(usage,), **spec)
        for name in ("approved", "short", "failed", "foreign"):
            self.say(name, "Approved")
        self.say("denied", "Denied")

    def test_ends(self) -> None:
        """
        Requests go an hour after they were decided on, or with their certificate.

        Those that nobody decides on stay for a day, and those that wait for a signer longer still.
        """
        self.start(Signing, RequestCleaner)
        self.make_all()
        self.settle(1)
        self.assertEqual(len(self.names(NAME, "", GROUP)), 6)
        self.settle(601)
        self.assertEqual(self.names(NAME, "", GROUP), ["approved", "denied", "failed", "foreign", "pending"])
        self.settle(DECIDED)
        self.assertEqual(self.names(NAME, "", GROUP), ["foreign", "pending"])
        self.settle(PENDING)
        self.assertEqual(self.names(NAME, "", GROUP), ["foreign"])

    def test_faults_and_restart(self) -> None:
        """With writes that fail, and after a kill, all that is to go is gone in the end."""
        self.start(Signing, RequestCleaner)
        self.make_all()
        self.settle(1)
        self.restart(RequestCleaner)
        self.backend.fails = lambda number: number % 3 == 0
        self.settle(DECIDED + PENDING)
        self.assertEqual(self.names(NAME, "", GROUP), ["foreign"])
