"""Tests for rules of single kinds that only show in answers: fixed flow schemas, signed requests, warnings."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersionKind
from kubetwist.registry.certificates.validation import certificate_problem
from kubetwist.registry.flowcontrol.bootstrap import FLOWS
from kubetwist.registry.generic.deprecations import deprecation_warning
from kubetwist.registry.generic.validation.tlspairs import tls_problem
from kubetwist.registry.strategies import strategy_for


def pair() -> tuple[bytes, bytes]:
    """A certificate and its key, in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return made.public_bytes(Encoding.PEM), private


def encoded(data: bytes) -> str:
    """Bytes as JSON has them."""
    return b64encode(data).decode()


class FixedFlowSchemaTests(SynchronousTestCase):
    """The flow schemas that nobody changes."""

    def test_fixed(self) -> None:
        """What the server makes is what it demands; another precedence is refused."""
        strategy = strategy_for("flowcontrol.apiserver.k8s.io", "FlowSchema")
        for flow in FLOWS:
            obj: dict[str, Any] = {"metadata": {"name": flow.name}, "spec": flow.spec()}
            strategy.default(obj)
            self.assertEqual(list(strategy.validate(obj)), [], flow.name)
            obj["spec"]["matchingPrecedence"] = 1234
            found = [cause.message for cause in strategy.validate(obj)]
            fixed = flow.name in ("exempt", "catch-all")
            self.assertEqual(any("must equal the fixed value" in one for one in found), fixed, flow.name)


class SignedRequestTests(SynchronousTestCase):
    """Who may write what of a request for a certificate."""

    def setUp(self) -> None:
        """A request that waits."""
        self.strategy: Any = strategy_for("certificates.k8s.io", "CertificateSigningRequest")
        self.certificate = encoded(pair()[0])

    def update(self, which: str, before: dict[str, Any], **status: Any) -> tuple[list[str], dict[str, Any]]:
        """What is wrong with an update of a part, and what it comes to."""
        old = {"metadata": {}, "spec": {}, "status": before}
        obj = {"metadata": {}, "spec": {}, "status": status}
        if which == "status":
            self.strategy.prepare_for_status_update(obj, old)
            causes = self.strategy.validate_status_update(obj, old)
        else:
            self.strategy.prepare_for_approval(obj, old)
            causes = self.strategy.validate_approval(obj, old)
        return [str(cause) for cause in causes], obj["status"]

    def test_name(self) -> None:
        """Such a request may be called what can be a part of a path; one that says nothing has nothing to show."""
        self.assertEqual(self.strategy.name_problems("A_b", False), [])
        self.assertEqual(self.strategy.name_problems("a/b", False), ["may not contain '/'"])
        causes = self.strategy.validate({"metadata": {}, "spec": {}})
        self.assertEqual(causes[0].message, "Invalid value: null: PEM block type must be CERTIFICATE REQUEST")

    def test_verdicts(self) -> None:
        """Approvals come by C{approval} alone, and do not go; certificates do not come that way."""
        approved = [{"type": "Approved", "status": "True"}]
        problems, _ = self.update("status", {}, conditions=approved)
        added = 'status.conditions: Forbidden: updates may not add a condition of type "Approved"'
        self.assertEqual(problems, [added])
        problems, status = self.update("approval", {}, conditions=approved, certificate=self.certificate)
        self.assertEqual(problems, [])
        self.assertNotIn("certificate", status)
        problems, _ = self.update("approval", {"conditions": approved}, conditions=[])
        self.assertIn("may not remove", problems[0])

    def test_verdict_kept(self) -> None:
        """Whoever writes a status can not reword the verdict."""
        verdict = {"type": "Approved", "status": "True", "reason": "Mine", "lastTransitionTime": "x"}
        problems, status = self.update("status", {"conditions": [verdict]}, conditions=[{**verdict, "reason": "Other"}])
        self.assertEqual((problems, status["conditions"][0]["reason"]), ([], "Mine"))

    def test_certificate(self) -> None:
        """A certificate is one, and comes once."""
        self.assertEqual(self.update("status", {}, certificate=self.certificate)[0], [])
        problems, _ = self.update("status", {"certificate": self.certificate}, certificate=encoded(pair()[0]))
        self.assertIn("may not modify existing certificate content", problems[0])
        bad = b"-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n"
        self.assertEqual(certificate_problem(encoded(bad)), "x509: malformed certificate")
        self.assertIn("at least one", certificate_problem(encoded(b"nope")))
        self.assertIn("only CERTIFICATE", certificate_problem(encoded(pair()[1])))


class WarningTests(SynchronousTestCase):
    """What is accepted, but not without a word."""

    def test_deprecated_kinds(self) -> None:
        """Kinds are deprecated from a version on."""
        endpoints = GroupVersionKind("", "v1", "Endpoints")
        self.assertEqual(
            deprecation_warning(endpoints, 36),
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        )
        self.assertEqual(deprecation_warning(endpoints, 32), "")
        self.assertEqual(deprecation_warning(GroupVersionKind("", "v1", "Pod"), 36), "")

    def test_drivers(self) -> None:
        """Drivers of devices have names in small letters."""
        strategy = strategy_for("resource.k8s.io", "ResourceSlice")
        self.assertEqual(strategy.warnings({"spec": {"driver": "d.x"}}, None), ())
        self.assertEqual(
            strategy.warnings({"spec": {"driver": "D.x"}}, None),
            ('spec.driver: driver names should be lowercase; "D.x" contains uppercase characters',),
        )

    def test_pairs(self) -> None:
        """A secret for TLS that no server could use is told of, in Go's words."""
        certificate, key = pair()
        strategy = strategy_for("", "Secret")

        def warned(crt: bytes, private: bytes) -> str:
            data = {"tls.crt": encoded(crt), "tls.key": encoded(private)}
            found = strategy.warnings({"type": "kubernetes.io/tls", "data": data}, None)
            self.assertEqual("".join(found), tls_problem(data))
            return "".join(found)

        self.assertEqual(warned(certificate, key), "")
        self.assertEqual(warned(b"", key), "tls: failed to find any PEM data in certificate input")
        self.assertEqual(warned(certificate, b"no"), "tls: failed to find any PEM data in key input")
        self.assertIn("may have been switched", warned(key, certificate))
        self.assertIn("rather than a key", warned(certificate, certificate))
        self.assertEqual(warned(certificate, pair()[1]), "tls: private key does not match public key")

    def test_ports(self) -> None:
        """Ports that are there twice are told of, also in other containers, and names that are."""
        port = {"containerPort": 80, "protocol": "TCP"}
        containers = [
            {"name": "a", "image": "a", "ports": [{**port, "name": "one"}, {**port, "name": "two"}]},
            {"name": "b", "image": "b", "ports": [{**port, "name": "one"}]},
        ]
        found = strategy_for("", "Pod").warnings({"metadata": {"name": "x"}, "spec": {"containers": containers}}, None)
        self.assertEqual(len(found), 4)
        self.assertIn('spec.containers[1].ports[0]: duplicate port name "one"', found[3])


class ClaimTests(SynchronousTestCase):
    """Claims of storage."""

    def test_data_sources(self) -> None:
        """The two fields for a claim's data come to say the same when it is made, not by default."""
        strategy = strategy_for("", "PersistentVolumeClaim")
        source = {"kind": "PersistentVolumeClaim", "name": "other"}
        obj: dict[str, Any] = {"metadata": {"name": "c"}, "spec": {"dataSource": dict(source)}}
        strategy.default(obj)
        self.assertNotIn("dataSourceRef", obj["spec"])
        strategy.prepare_for_create(obj)
        self.assertEqual(obj["spec"]["dataSourceRef"], source)

    def test_change(self) -> None:
        """A claim that is changed where it must not be is told what has changed."""
        strategy = strategy_for("", "PersistentVolumeClaim")

        def claim(size: str) -> dict[str, Any]:
            obj: dict[str, Any] = {
                "metadata": {"name": "c"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": size}},
                    "volumeName": "v",
                },
            }
            strategy.default(obj)
            return obj

        causes = strategy.validate_update(claim("2Gi"), claim("1Gi"))
        self.assertIn(
            'bound claims\n@@ -6,7 +6,7 @@\n  "Resources": {\n   "Limits": null,\n   "Requests": {\n'
            '-   "storage": "1Gi"\n+   "storage": "2Gi"\n   }\n  },\n  "VolumeName": "v",\n',
            causes[0].message,
        )
