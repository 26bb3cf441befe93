"""Tests for L{kubetwist.authentication.certificates}."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from functools import partial

from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.api.resource import UserInfo
from kubetwist.authentication import certificates
from kubetwist.authentication.certificates import (
    CertPool,
    ClientCAProvider,
    InvalidCABundle,
    X509Authenticator,
    common_name_user_conversion,
)
from kubetwist.authentication.errors import AuthenticationFailed
from kubetwist.interfaces import IAuthenticator
from tests.certificates import Issued, Request, root, subject


class ClientCertificateTests(SynchronousTestCase):
    """Tests for L{X509Authenticator}."""

    def setUp(self) -> None:
        """Create a CA."""
        self.root = root()
        self.authorities = ClientCAProvider(CertPool(self.root.pem), common_name_user_conversion)
        self.authenticator = X509Authenticator(self.authorities)
        verifyObject(IAuthenticator, self.authenticator)

    def user(self, *shown: Issued) -> UserInfo | None:
        """Return the user of a connection with these certificates."""
        return self.authenticator.authenticate(Request(*shown))

    def error_text(self, *shown: Issued) -> str:
        """Return the error for a connection with these certificates."""
        return str(self.assertRaises(AuthenticationFailed, self.user, *shown))

    def test_user(self) -> None:
        """The last common name is the user name, organizations are groups, and an attribute contains the uid."""
        issued = self.root.issue(subject("x", "alice", organizations=("a", "b"), uids=("u-1",)))
        digest = hashlib.sha256(issued.certificate.public_bytes(Encoding.DER)).hexdigest()
        extra = {"authentication.kubernetes.io/credential-id": (f"X509SHA256={digest}",)}
        self.assertEqual(self.user(issued), UserInfo("alice", "u-1", ("a", "b", "system:authenticated"), extra))

    def test_no_certificate(self) -> None:
        """Without a certificate or a common name there is no user and no error."""
        self.assertIsNone(self.user())
        self.assertIsNone(self.user(self.root.issue(subject(organizations=("a",)))))

    def test_uids(self) -> None:
        """Several uids and an empty uid are rejected."""
        several = self.root.issue(subject("alice", uids=("u", "v")))
        self.assertTrue(self.error_text(several).endswith("expected 1 UID, but found multiple: [u v]"))
        empty = self.root.issue(subject("alice", uids=("",)))
        self.assertTrue(self.error_text(empty).endswith("UID cannot be an empty string"))

    def test_uid_gate(self) -> None:
        """Uids are ignored without their feature gate, also wrong ones."""
        convert = partial(common_name_user_conversion, with_uid=False)
        authenticator = X509Authenticator(ClientCAProvider(CertPool(self.root.pem), convert))
        for uids in (("u",), ("u", "v"), ("",)):
            user = authenticator.authenticate(Request(self.root.issue(subject("alice", uids=uids))))
            assert user is not None
            self.assertEqual((user.name, user.uid), ("alice", ""))

    def test_other_ca(self) -> None:
        """A certificate of another CA with the same name is rejected; the error describes the certificate."""
        foreign = root().issue(subject("alice"))
        self.assertIn(f"verifying certificate SN={foreign.certificate.serial_number}, SKID=", self.error_text(foreign))

    def test_chain(self) -> None:
        """A chain needs its intermediate certificates; a certificate that is not a CA cannot issue certificates."""
        middle = self.root.issue(subject("middle"), authority=True)
        issued = middle.issue(subject("alice"))
        self.assertEqual(self.user(issued, middle).name, "alice")  # type: ignore[union-attr]
        self.assertIn("unable to get local issuer", self.error_text(issued))
        user = self.root.issue(subject("mallory"))
        self.assertIn("invalid CA certificate", self.error_text(user.issue(subject("alice")), user))

    def test_partial_chain(self) -> None:
        """A certificate in the CA file is trusted, also if its issuer is not."""
        middle = self.root.issue(subject("middle"), authority=True)
        self.authorities.set_pool(CertPool(middle.pem))
        self.assertEqual(self.user(middle.issue(subject("alice"))).name, "alice")  # type: ignore[union-attr]
        self.assertIn("failed", self.error_text(self.root.issue(subject("bob"))))

    def test_times(self) -> None:
        """A certificate is rejected before and after its validity, also on an older connection."""
        for begins, ends, message in ((-2, -1, "expired"), (1, 2, "not yet valid")):
            times = {"begins": timedelta(hours=begins), "ends": timedelta(hours=ends)}
            self.assertIn(message, self.error_text(self.root.issue(subject("alice"), **times)))
        request = Request(self.root.issue(subject("alice")))
        self.assertIsNotNone(self.authenticator.authenticate(request))
        self.patch(certificates, "posix_now", lambda: 4e9)
        error = self.assertRaises(AuthenticationFailed, self.authenticator.authenticate, request)
        self.assertEqual(str(error), "the client certificate has expired")

    def test_purpose(self) -> None:
        """A server certificate is not valid for clients; a certificate for any usage is."""
        self.assertIn(
            "not valid for client authentication",
            self.error_text(self.root.issue(subject("a"), purpose=ExtendedKeyUsageOID.SERVER_AUTH)),
        )
        for purpose in (ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE, None):
            self.assertIsNotNone(self.user(self.root.issue(subject("a"), purpose=purpose)))

    def test_once(self) -> None:
        """A connection is verified once, and again after the CA pool has changed."""
        request = Request(self.root.issue(subject("alice")))
        for _ in range(2):
            self.assertIsNotNone(self.authenticator.authenticate(request))
        self.assertEqual(request.asked, 1)
        reported: list[None] = []
        self.authorities.listeners.append(lambda: reported.append(None))
        self.authorities.set_pool(CertPool(root().pem))
        self.assertEqual(len(reported), 1)
        self.assertRaises(AuthenticationFailed, self.authenticator.authenticate, request)

    def test_bad_files(self) -> None:
        """A file without certificates or with an invalid certificate is rejected."""
        for content in (b"", b"garbage", self.root.pem.replace(b"M", b"!")):
            self.assertRaises(InvalidCABundle, CertPool, content)
