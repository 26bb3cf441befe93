"""Tests for L{kubetwist.controllers.csr.csrsigning}."""

from __future__ import annotations

import ipaddress
from datetime import timedelta
from typing import Any

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from kubetwist.controllers.csr.csrsigning import usage_extensions
from kubetwist.controllers.csr.requests import CLIENT, KUBELET_CLIENT, KUBELET_SERVING
from tests.controllers.csr.requestcase import AUTHORITY, KEY, Signing, SigningRequestTestCase


class CSRSigningTests(SigningRequestTestCase):
    """Signing of CSRs."""

    def test_client(self) -> None:
        """An approved CSR gets a certificate of the server's CA, valid for a year. Other CSRs wait."""
        self.start(Signing)
        self.request("one", usages=("client auth", "digital signature"), names=(x509.DNSName("a.example.com"),))
        self.settle()
        self.assertEqual(self.status("one"), {})
        self.decide("one", "Approved")
        self.request("two")
        self.decide("two", "Denied")
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
        """expirationSeconds shortens the duration but does not extend it."""
        self.start(Signing)
        for name, seconds in (("short", 600), ("long", 10**9), ("day", 86400)):
            self.request(name, expirationSeconds=seconds)
            self.decide(name, "Approved")
        self.settle()
        now = self.context.now()
        ends = [self.certificate(name).not_valid_after_utc - now for name in ("short", "day", "long")]
        self.assertEqual(ends, [timedelta(minutes=10), timedelta(days=1, minutes=-5), timedelta(days=365, minutes=-5)])

    def test_invalid_requests(self) -> None:
        """Each signer checks its requirements. A condition has the violation."""
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
            self.decide(name, "Approved")
            self.settle()
            failed = [one for one in self.status(name)["conditions"] if one["type"] == "Failed"]
            self.assertEqual([one["message"] for one in failed], [why] if why else [], what)
            self.assertEqual([one["reason"] for one in failed], ["SignerValidationFailure"] if why else [])
            self.assertEqual("certificate" in self.status(name), not why)

    def test_other_signers(self) -> None:
        """CSRs of other signers are ignored."""
        self.start(Signing)
        self.request("one", "example.com/mine")
        self.decide("one", "Approved")
        self.settle()
        self.assertNotIn("certificate", self.status("one"))

    def test_usages(self) -> None:
        """All usages of the API are added to the certificate."""
        (_, critical), (purposes, _) = usage_extensions(("s/mime", "any", "cert sign", "encipher only"))
        self.assertTrue(critical)
        assert isinstance(purposes, x509.ExtendedKeyUsage)
        self.assertEqual([one.dotted_string for one in purposes], ["2.5.29.37.0", "1.3.6.1.5.5.7.3.4"])
        self.assertEqual(usage_extensions(()), [])

    def test_faults_and_restart(self) -> None:
        """With failing writes and after a kill, all approved CSRs are signed in the end."""
        for number in range(20):
            self.request(f"r{number}")
            self.decide(f"r{number}", "Approved")
        self.backend.fails = lambda number: number % 10 == 0
        self.start(Signing)
        self.settle(60)
        self.backend.fails = lambda number: False
        for number in range(20):
            self.certificate(f"r{number}")
        for subscription in self.running[0]._registrations:
            subscription.stop()
        self.request("last")
        self.decide("last", "Approved")
        before = self.status("r0")
        self.restart(Signing)
        self.certificate("last")
        self.assertEqual(self.status("r0"), before)
