# mypy: allow-untyped-calls
"""Tests for L{kubetwist.server.credentials.rotation}."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError
from OpenSSL import crypto

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.authentication.certificates import CertPool
from kubetwist.registry.core.serviceaccount.tokenkeys import load_token_keys
from kubetwist.registry.core.serviceaccount.tokens import TokenIssuer
from kubetwist.server.credentials import certificates, rotation
from kubetwist.server.credentials.certificates import CertConfig, CertificateAuthority, renewal_time
from kubetwist.server.datadir import DataDirectory
from kubetwist.server.errors import StartError

SERVER = CertConfig("kube-apiserver", names=("localhost", "127.0.0.1"), server=True)
CLIENT = CertConfig("admin", "system:masters")


class RotationCase(SynchronousTestCase):
    """Has a data directory with certificates, and can move the time."""

    def setUp(self) -> None:
        """Create the directory."""
        self.data = DataDirectory(Path(self.mktemp()), durable=False)
        self.data.open()
        self.addCleanup(self.data.close)
        self.pki = self.data.pki
        self.data.ensure_certificate(self.pki, "apiserver", self.data.authority(), SERVER)
        self.data.ensure_certificate(self.pki, "admin", self.data.authority(), CLIENT)
        self.moved = timedelta()
        real = certificates.current_time
        for module in (certificates, rotation):
            self.patch(module, "current_time", lambda: real() + self.moved)

    def certificate(self, name: str) -> x509.Certificate:
        """Return a certificate of the directory."""
        return x509.load_pem_x509_certificate((self.pki / f"{name}.crt").read_bytes())

    def verify(self, trusted: bytes, moment: datetime | None = None) -> None:
        """
        Verify the serving certificate with its chain like a client.

        @param trusted: The authorities that the client knows, PEM.
        @raise VerificationError: They have not issued it.
        """
        leaf, *chain = x509.load_pem_x509_certificates((self.pki / "apiserver.crt").read_bytes())
        store = Store(x509.load_pem_x509_certificates(trusted))
        builder = PolicyBuilder().store(store)
        if moment is not None:
            builder = builder.time(moment)
        builder.build_server_verifier(x509.DNSName("localhost")).verify(leaf, chain)


class RenewTests(RotationCase):
    """The renewal of certificates."""

    def test_due(self) -> None:
        """A certificate is used again until two thirds of its lifetime, and issued again then."""
        first = self.certificate("admin")
        self.moved = renewal_time(first) - certificates.current_time() - timedelta(hours=1)
        self.data.ensure_certificate(self.pki, "admin", self.data.authority(), CLIENT)
        self.assertEqual(self.certificate("admin"), first)
        self.moved += timedelta(hours=2)
        self.data.ensure_certificate(self.pki, "admin", self.data.authority(), CLIENT)
        self.assertGreater(self.certificate("admin").not_valid_after_utc, first.not_valid_after_utc)

    def test_renew(self) -> None:
        """A command issues the same subjects and names again, with new keys; missing certificates are left out."""
        before = {name: self.certificate(name) for name in ("admin", "apiserver")}
        self.assertEqual(rotation.renew(self.pki), ["apiserver", "admin"])
        for name, old in before.items():
            new = self.certificate(name)
            self.assertNotEqual(new.public_key(), old.public_key())
            self.assertEqual(
                (new.subject, certificates.alternative_names(new)), (old.subject, certificates.alternative_names(old))
            )
        self.verify((self.pki / "ca.crt").read_bytes())
        self.assertTrue(self.data.authority().is_valid_for(rotation.read_pair(self.pki, "apiserver"), SERVER))

    def test_list(self) -> None:
        """All certificates are listed, with the time of their renewal."""
        states = {one.name: one for one in rotation.list_certificates(self.pki)}
        self.assertEqual(set(states), {"ca", "front-proxy-ca", "apiserver", "admin"})
        admin = states["admin"]
        self.assertEqual((admin.subject, admin.issuer), ("CN=admin,O=system:masters", "CN=kubetwist-ca"))
        self.assertTrue(admin.begin < admin.renewal < admin.end)

    def test_damaged(self) -> None:
        """Damaged files are errors of one line, and a second command is refused."""
        (self.pki / "admin.crt").write_bytes(b"x")
        for call in (lambda: rotation.list_certificates(self.pki), lambda: rotation.renew(self.pki)):
            error = self.assertRaises(StartError, call)
            self.assertIn(f"cannot use {self.pki}/admin.crt: it is damaged", str(error))
        with rotation.changing(self.pki):
            error = self.assertRaises(StartError, rotation.renew, self.pki)
        self.assertEqual(str(error), f"another command is changing {self.pki}")


class AuthorityTests(RotationCase):
    """The rotation of the authority."""

    def test_rotate(self) -> None:
        """
        During a rotation, clients that trust only the previous authority, only the new one or both can verify the
        server; the end of the rotation removes the previous one.
        """
        old = (self.pki / "ca.crt").read_bytes()
        rotation.rotate_authority(self.pki)
        both = (self.pki / "ca.crt").read_bytes()
        new = both.removesuffix(old)
        self.assertTrue(new and both.endswith(old))
        error = self.assertRaises(StartError, rotation.retire_authority, self.pki)
        self.assertIn("apiserver.crt was issued by the previous authority: renew it first", str(error))
        self.assertRaises(StartError, rotation.rotate_authority, self.pki)
        authority = self.data.authority()
        self.assertFalse(authority.is_valid_for(rotation.read_pair(self.pki, "apiserver"), SERVER))
        self.assertTrue(authority.has_issued((self.pki / "apiserver.crt").read_bytes()))
        self.verify(old)
        self.verify(both)
        rotation.renew(self.pki)
        for trusted in (old, new, both):
            self.verify(trusted)
        self.assertTrue(self.data.authority().is_valid_for(rotation.read_pair(self.pki, "apiserver"), SERVER))
        self.assertEqual(rotation.retire_authority(self.pki), ["CN=kubetwist-ca"])
        self.assertEqual((self.pki / "ca.crt").read_bytes(), new)
        self.assertEqual(rotation.renew(self.pki, ["apiserver"]), ["apiserver"])
        self.verify(new)
        self.assertRaises(VerificationError, self.verify, old)
        self.assertRaises(StartError, rotation.retire_authority, self.pki)

    def test_front_proxy(self) -> None:
        """
        The front proxy's authority is rotated apart from the other one; its client certificate has the chain, so that
        servers that know only the previous authority accept it.
        """
        self.data.ensure_certificate(self.pki, "front-proxy-client", self.data.authority("front-proxy-ca"), CLIENT)
        unchanged = {
            name: (self.pki / name).read_bytes() for name in ("ca.crt", "ca.key", "apiserver.crt", "admin.crt")
        }
        old = (self.pki / "front-proxy-ca.crt").read_bytes()
        self.assertRegex(rotation.rotate_authority(self.pki, "front-proxy-ca"), r"^CN=kubetwist-front-proxy-ca-2\d+T")
        error = self.assertRaises(StartError, rotation.retire_authority, self.pki, "front-proxy-ca")
        self.assertIn("front-proxy-client.crt was issued by the previous authority", str(error))
        self.assertEqual(rotation.renew(self.pki, ["front-proxy-client"]), ["front-proxy-client"])
        leaf, *chain = x509.load_pem_x509_certificates((self.pki / "front-proxy-client.crt").read_bytes())
        new = (self.pki / "front-proxy-ca.crt").read_bytes().removesuffix(old)
        for trusted in (old, new):
            presented = [crypto.X509.from_cryptography(one) for one in (leaf, *chain)]
            crypto.X509StoreContext(CertPool(trusted).store, presented[0], presented[1:]).verify_certificate()
        self.assertEqual(rotation.retire_authority(self.pki, "front-proxy-ca"), ["CN=kubetwist-front-proxy-ca"])
        self.assertEqual((self.pki / "front-proxy-ca.crt").read_bytes(), new)
        self.assertEqual({name: (self.pki / name).read_bytes() for name in unchanged}, unchanged)

    def test_interrupted(self) -> None:
        """After each step of an interrupted rotation the directory can be used, with one of the authorities."""
        steps: list[str] = []
        limit = [0]
        real = rotation.write_file

        def fail(path: Path, content: bytes, mode: int = 0o600) -> None:
            if len(steps) == limit[0]:
                raise OSError(5, "Input/output error")
            steps.append(path.name)
            real(path, content, mode)

        self.patch(rotation, "write_file", fail)
        for limit[0] in range(3):
            steps.clear()
            self.assertRaises(StartError, rotation.rotate_authority, self.pki)
            pair = self.data.authority().issue(CLIENT)
            issuer = x509.load_pem_x509_certificate(pair.certificate).issuer
            self.assertEqual(issuer.rfc4514_string(), "CN=kubetwist-ca")
            self.verify((self.pki / "ca.crt").read_bytes())
        self.assertEqual(steps, ["ca-cross.crt", "ca.crt"])
        self.assertEqual(CertificateAuthority(rotation.read_pair(self.pki, "ca")).pair, self.data.authority().pair)


class KeyTests(RotationCase):
    """Keys of service account tokens."""

    def ids(self) -> list[str]:
        """Return the ids of the keys that verify tokens."""
        return [one.key_id for one in load_token_keys((self.pki / "sa.pub").read_bytes())]

    def signing(self) -> str:
        """Return the id of the key that signs."""
        key = TokenIssuer.load((self.pki / "sa.key").read_bytes(), "x", ["x"])
        return str(key._key_id)

    def test_overlap(self) -> None:
        """The new key is published before it signs; the previous one verifies tokens until the overlap has passed."""
        (old,) = self.ids()

        def published() -> None:
            self.assertEqual((len(self.ids()), self.signing()), (2, old))

        new = rotation.rotate_service_account_key(self.pki, 3600, published)
        self.assertEqual((self.ids(), self.signing()), ([new, old], new))
        self.assertEqual([bool(end) for _, end in rotation.list_token_keys(self.pki)], [False, True])
        self.moved = timedelta(minutes=59)
        self.assertEqual(rotation.drop_expired_keys(self.pki), [])
        self.moved = timedelta(minutes=61)
        self.assertEqual(rotation.drop_expired_keys(self.pki), [old])
        self.assertEqual(self.ids(), [new])
        self.assertFalse((self.pki / rotation.OVERLAP_FILE).exists())
        self.assertEqual(rotation.drop_expired_keys(self.pki), [])

    def test_several(self) -> None:
        """Overlaps of several rotations end one after the other, or all at once on request."""
        (first,) = self.ids()
        second = rotation.rotate_service_account_key(self.pki, 7200, lambda: None)
        self.moved = timedelta(hours=1)
        third = rotation.rotate_service_account_key(self.pki, 7200, lambda: None)
        self.assertEqual(self.ids(), [third, second, first])
        self.moved = timedelta(hours=2, minutes=1)
        self.assertEqual(rotation.drop_expired_keys(self.pki), [first])
        self.assertEqual(rotation.drop_expired_keys(self.pki, all_previous=True), [second])
        self.assertEqual((self.ids(), self.signing()), ([third], third))

    def test_start(self) -> None:
        """An overlap that has passed while no server ran ends at the start."""
        rotation.rotate_service_account_key(self.pki, 60, lambda: None)
        self.data.close()
        self.moved = timedelta(hours=1)
        self.data.open()
        self.assertEqual(len(self.ids()), 1)

    def test_interrupted(self) -> None:
        """After an interruption the previous key still signs, and the next rotation works."""
        (old,) = self.ids()

        def fail() -> None:
            raise KeyboardInterrupt

        self.assertRaises(KeyboardInterrupt, rotation.rotate_service_account_key, self.pki, 60, fail)
        self.assertEqual((len(self.ids()), self.signing()), (2, old))
        new = rotation.rotate_service_account_key(self.pki, 60, lambda: None)
        self.moved = timedelta(hours=1)
        self.assertEqual(len(rotation.drop_expired_keys(self.pki)), 2)
        self.assertEqual((self.ids(), self.signing()), ([new], new))

    def test_damaged(self) -> None:
        """A damaged file is an error of one line."""
        (self.pki / rotation.OVERLAP_FILE).write_text('{"x": 1}')
        error = self.assertRaises(StartError, rotation.drop_expired_keys, self.pki)
        self.assertEqual(str(error), f"cannot use {self.pki}/sa-overlap.json: it is damaged")
