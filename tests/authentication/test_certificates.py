"""Tests for L{kubetwist.authentication.certificates}."""

from __future__ import annotations

import hashlib
from datetime import timedelta

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
        """One authority."""
        self.root = root()
        self.authorities = ClientCAProvider(CertPool(self.root.pem), common_name_user_conversion)
        self.known = X509Authenticator(self.authorities)
        verifyObject(IAuthenticator, self.known)

    def user(self, *shown: Issued) -> UserInfo | None:
        """Whom certificates name."""
        return self.known.authenticate(Request(*shown))

    def refused(self, *shown: Issued) -> str:
        """Why they are refused."""
        return str(self.assertRaises(AuthenticationFailed, self.user, *shown))

    def test_user(self) -> None:
        """The last common name is the user, organizations are groups, and an attribute of its own is the uid."""
        issued = self.root.issue(subject("x", "alice", organizations=("a", "b"), uids=("u-1",)))
        digest = hashlib.sha256(issued.certificate.public_bytes(Encoding.DER)).hexdigest()
        extra = {"authentication.kubernetes.io/credential-id": (f"X509SHA256={digest}",)}
        self.assertEqual(self.user(issued), UserInfo("alice", "u-1", ("a", "b", "system:authenticated"), extra))

    def test_nobody(self) -> None:
        """Without a certificate, or a common name in it, there is no user, and nothing is wrong."""
        self.assertIsNone(self.user())
        self.assertIsNone(self.user(self.root.issue(subject(organizations=("a",)))))

    def test_uids(self) -> None:
        """Several uids are refused, and so is an empty one."""
        several = self.root.issue(subject("alice", uids=("u", "v")))
        self.assertTrue(self.refused(several).endswith("expected 1 UID, but found multiple: [u v]"))
        empty = self.root.issue(subject("alice", uids=("",)))
        self.assertTrue(self.refused(empty).endswith("UID cannot be an empty string"))

    def test_others(self) -> None:
        """A certificate of somebody else, of the same name, is refused; the log gets to know which it was."""
        foreign = root().issue(subject("alice"))
        self.assertIn(f"verifying certificate SN={foreign.certificate.serial_number}, SKID=", self.refused(foreign))

    def test_chain(self) -> None:
        """A chain is good with what lies between, and not without; what is no authority issues nothing."""
        middle = self.root.issue(subject("middle"), authority=True)
        issued = middle.issue(subject("alice"))
        self.assertEqual(self.user(issued, middle).name, "alice")  # type: ignore[union-attr]
        self.assertIn("unable to get local issuer", self.refused(issued))
        user = self.root.issue(subject("mallory"))
        self.assertIn("invalid CA certificate", self.refused(user.issue(subject("alice")), user))

    def test_trusted_in_the_middle(self) -> None:
        """Who is in the file is trusted, even when somebody else has issued him, who is not."""
        middle = self.root.issue(subject("middle"), authority=True)
        self.authorities.set_pool(CertPool(middle.pem))
        self.assertEqual(self.user(middle.issue(subject("alice"))).name, "alice")  # type: ignore[union-attr]
        self.assertIn("failed", self.refused(self.root.issue(subject("bob"))))

    def test_times(self) -> None:
        """A certificate is good neither before its time nor after it, even on a connection that is older."""
        for begins, ends, why in ((-2, -1, "expired"), (1, 2, "not yet valid")):
            times = {"begins": timedelta(hours=begins), "ends": timedelta(hours=ends)}
            self.assertIn(why, self.refused(self.root.issue(subject("alice"), **times)))
        request = Request(self.root.issue(subject("alice")))
        self.assertIsNotNone(self.known.authenticate(request))
        self.patch(certificates, "posix_now", lambda: 4e9)
        error = self.assertRaises(AuthenticationFailed, self.known.authenticate, request)
        self.assertEqual(str(error), "the client certificate has expired")

    def test_purpose(self) -> None:
        """A certificate for servers is none for clients; one for anything is."""
        self.assertIn(
            "not valid for client authentication",
            self.refused(self.root.issue(subject("a"), purpose=ExtendedKeyUsageOID.SERVER_AUTH)),
        )
        for purpose in (ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE, None):
            self.assertIsNotNone(self.user(self.root.issue(subject("a"), purpose=purpose)))

    def test_once(self) -> None:
        """A connection is looked at once, and again when there are other authorities."""
        request = Request(self.root.issue(subject("alice")))
        for _ in range(2):
            self.assertIsNotNone(self.known.authenticate(request))
        self.assertEqual(request.asked, 1)
        told: list[None] = []
        self.authorities.listeners.append(lambda: told.append(None))
        self.authorities.set_pool(CertPool(root().pem))
        self.assertEqual(len(told), 1)
        self.assertRaises(AuthenticationFailed, self.known.authenticate, request)

    def test_bad_files(self) -> None:
        """A file without certificates, or with a damaged one, is refused."""
        for content in (b"", b"garbage", self.root.pem.replace(b"M", b"!")):
            self.assertRaises(InvalidCABundle, CertPool, content)
