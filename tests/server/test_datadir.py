"""Tests of L{kubetwist.server.datadir}."""

from __future__ import annotations

import base64
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from kubetwist.server import datadir
from kubetwist.server.credentials import certificates
from kubetwist.server.credentials.certificates import (
    CertConfig,
    CertificateAuthority,
    CertKeyPair,
    alternative_names,
)
from kubetwist.server.datadir import DataDirectory
from kubetwist.server.errors import StartError
from tests.server.datadirvalues import DataDirectoryTestCase, contents, mode


class DataDirectoryTests(DataDirectoryTestCase):
    """L{DataDirectory} and L{Credentials}."""

    def test_first_start(self) -> None:
        """The first start creates all files, readable by their owner only."""
        kubeconfig = self.start()
        self.assertEqual(mode(self.path), 0o700)
        self.assertEqual(mode(self.path / "pki"), 0o700)
        self.assertEqual(mode(kubeconfig), 0o600)
        for name in ("ca", "apiserver", "admin", "front-proxy-ca", "front-proxy-client", "sa"):
            self.assertEqual(mode(self.path / "pki" / f"{name}.key"), 0o600, name)
        self.assertEqual([name for name in contents(self.path) if "/." in name or name.startswith(".")], [])

    def test_second_start(self) -> None:
        """The second start changes nothing."""
        self.start()
        before = contents(self.path)
        self.start()
        self.assertEqual(contents(self.path), before)

    def test_serving_certificate(self) -> None:
        """The serving certificate contains all names and addresses of the server."""
        self.start("--external-hostname=api.example.com", "--advertise-address=192.0.2.7")
        certificate = x509.load_pem_x509_certificate((self.path / "pki" / "apiserver.crt").read_bytes())
        names = set(alternative_names(certificate))
        self.assertTrue(
            {
                "localhost",
                "127.0.0.1",
                "::1",
                os.uname().nodename.lower(),
                "kubernetes",
                "kubernetes.default",
                "kubernetes.default.svc",
                "kubernetes.default.svc.cluster.local",
                "10.0.0.1",
                "api.example.com",
                "192.0.2.7",
            }
            <= names,
            names,
        )

    def test_admin(self) -> None:
        """The kubeconfig contains the admin's certificate, with the group system:masters."""
        document = yaml.safe_load(self.start().read_bytes())
        user = document["users"][0]["user"]
        certificate = x509.load_pem_x509_certificate(base64.b64decode(user["client-certificate-data"]))
        self.assertEqual(certificate.subject.rfc4514_string(), "CN=kubernetes-admin,O=system:masters")
        cluster = document["clusters"][0]["cluster"]
        self.assertEqual(cluster["server"], "https://127.0.0.1:6443")
        self.assertEqual(
            base64.b64decode(cluster["certificate-authority-data"]), (self.path / "pki" / "ca.crt").read_bytes()
        )

    def test_service_account_key(self) -> None:
        """The public key for service account tokens matches the private key."""
        private, public = self.open().service_account_keys()
        key: Any = load_pem_private_key(private.read_bytes(), None)
        self.assertEqual(key.public_key(), load_pem_public_key(public.read_bytes()))

    def test_another_name(self) -> None:
        """A serving certificate without a required name is reissued; other files are unchanged."""
        self.start()
        before = contents(self.path)
        self.start("--external-hostname=api.example.com")
        after = contents(self.path)
        changed = {name for name in after if after[name] != before.get(name)}
        self.assertEqual(changed, {"pki/apiserver.crt", "pki/apiserver.key"})

    def test_expiring(self) -> None:
        """Certificates that expire soon are reissued."""
        later = certificates.current_time() - timedelta(days=300)
        self.patch(certificates, "current_time", lambda: later)
        self.start()
        self.patch(certificates, "current_time", lambda: later + timedelta(days=300))
        before = contents(self.path)
        self.start()
        after = contents(self.path)
        self.assertNotEqual(before["pki/apiserver.crt"], after["pki/apiserver.crt"])
        self.assertNotEqual(before["pki/admin.crt"], after["pki/admin.crt"])
        self.assertNotEqual(before["admin.kubeconfig"], after["admin.kubeconfig"])
        self.assertEqual(before["pki/ca.crt"], after["pki/ca.crt"])

    def test_lost_key(self) -> None:
        """A certificate whose key is missing or does not match is reissued."""
        self.start()
        (self.path / "pki" / "admin.key").unlink()
        self.start()
        os.replace(self.path / "pki" / "admin.key", self.path / "pki" / "apiserver.key")
        self.start()
        pair = CertKeyPair(*((self.path / "pki" / f"apiserver.{end}").read_bytes() for end in ("crt", "key")))
        pair.parsed()

    def test_cert_dir(self) -> None:
        """With --cert-dir the serving certificate is written there, or reused."""
        folder = self.path.parent / "certs"
        self.start(f"--cert-dir={folder}")
        self.assertEqual(sorted(contents(folder)), ["apiserver.crt", "apiserver.key"])
        self.assertFalse((self.path / "pki" / "apiserver.crt").exists())

    def test_foreign_certificate(self) -> None:
        """Files of another issuer in --cert-dir are presented and never written; damaged ones stop the start."""
        folder = self.path.parent / "certs"
        folder.mkdir(parents=True)
        pair = CertificateAuthority.make("mine").issue(CertConfig("x", names=("localhost",), server=True))
        (folder / "apiserver.crt").write_bytes(pair.certificate)
        flag = f"--cert-dir={folder}"
        (folder / "apiserver.key").write_bytes(pair.key)
        credentials = self.credentials(self.open(), flag)
        self.assertEqual(credentials.serving, pair)
        self.assertEqual(credentials.serving_files, (f"{folder}/apiserver.crt", f"{folder}/apiserver.key"))
        self.assertTrue(credentials.ca_bundle.endswith(pair.certificate))
        self.assertEqual(contents(folder), {"apiserver.crt": pair.certificate, "apiserver.key": pair.key})
        (folder / "apiserver.key").write_bytes(CertificateAuthority.make("other").pair.key)
        error = self.assertRaises(StartError, self.credentials, DataDirectory(self.path), flag)
        self.assertIn("cannot use --cert-dir:", str(error))

    def test_own_certificate(self) -> None:
        """A certificate that the server of another data directory issued is reissued."""
        folder = self.path.parent / "certs"
        folder.mkdir(parents=True)
        old = CertificateAuthority.make("kubetwist-ca").issue(CertConfig("kube-apiserver", server=True))
        (folder / "apiserver.crt").write_bytes(old.certificate)
        (folder / "apiserver.key").write_bytes(old.key)
        credentials = self.credentials(self.open(), f"--cert-dir={folder}")
        self.assertNotEqual(credentials.serving, old)
        self.assertEqual(credentials.serving_files, ())

    def test_given_certificate(self) -> None:
        """The certificate of --tls-cert-file is presented, and trusted by the kubeconfig."""
        pair = CertificateAuthority.make("mine").issue(CertConfig("x", names=("localhost",), server=True))
        self.path.parent.mkdir(parents=True)
        names = [self.path.parent / name for name in ("x.crt", "x.key")]
        for path, content in zip(names, (pair.certificate, pair.key), strict=True):
            path.write_bytes(content)
        flags = (f"--tls-cert-file={names[0]}", f"--tls-private-key-file={names[1]}")
        credentials = self.credentials(self.open(), *flags)
        self.assertEqual(credentials.serving, pair)
        self.assertTrue(credentials.ca_bundle.endswith(pair.certificate))
        names[1].write_bytes(CertificateAuthority.make("other").pair.key)
        error = self.assertRaises(StartError, self.credentials, DataDirectory(self.path), *flags)
        self.assertIn("certificate and key do not match", str(error))
        names[1].unlink()
        error = self.assertRaises(StartError, self.credentials, DataDirectory(self.path), *flags)
        self.assertIn("No such file", str(error))

    def test_interrupted(self) -> None:
        """The remains of an interrupted first start are removed."""
        self.open().close()
        half = self.path / ".pki.4711"
        os.rename(self.path / "pki", half)
        (half / "ca.key").unlink()
        self.start()
        self.assertFalse(half.exists())

    def test_foreign(self) -> None:
        """A directory with other files is refused and unchanged."""
        self.path.mkdir(parents=True)
        (self.path / "precious").write_text("mine")
        self.assertIn("is not a data directory of kubetwist", self.refused())
        self.assertEqual(contents(self.path), {"precious": b"mine"})

    def test_empty(self) -> None:
        """An empty directory is used, and made private."""
        self.path.mkdir(parents=True, mode=0o755)
        self.start()
        self.assertEqual(mode(self.path), 0o700)

    def test_a_file(self) -> None:
        """A file is refused."""
        self.path.parent.mkdir(parents=True)
        self.path.write_text("mine")
        self.assertEqual(self.refused(), f"cannot use the data directory {self.path}: not a directory")

    def test_unwritable(self) -> None:
        """An unwritable path is refused."""
        self.path = Path("/proc/kubetwist-data")
        self.assertIn("cannot use the data directory", self.refused())

    def test_newer(self) -> None:
        """A directory of a newer version is refused."""
        self.start()
        (self.path / datadir.MARKER).write_text('{"format": 99}')
        self.assertIn("newer version of kubetwist", self.refused())

    def test_damaged(self) -> None:
        """The error names the damaged or missing file."""
        for name in (datadir.MARKER, "pki/ca.crt", "pki/ca.key", "pki/sa.key", "pki/front-proxy-ca.key"):
            for content in (None, b"garbage"):
                if name in (datadir.MARKER, "pki/sa.key") and (content is None) == (name == datadir.MARKER):
                    continue  # without its marker it is a foreign one; whether a key is one, is for its user to say
                self.path = Path(self.mktemp()).absolute()
                self.start()
                if content is None:
                    (self.path / name).unlink()
                else:
                    (self.path / name).write_bytes(content)
                self.assertIn("is damaged", self.refused(), name)

    def test_in_use(self) -> None:
        """A directory in use is refused with the process id."""
        data = self.open()
        self.assertIn(f"is in use by another server (process {os.getpid()})", self.refused())
        data.close()
        self.start()
        self.assertFalse((self.path / datadir.PID_FILE).exists())

    def test_killed(self) -> None:
        """The lock of a killed process is released."""
        self.start()
        (self.path / datadir.PID_FILE).write_text("4711\n")
        self.start()
        (self.path / datadir.PID_FILE).mkdir()
        data = self.open()
        self.assertTrue(self.refused().endswith("is in use by another server"))
        data.close()

    def test_incomplete_restore(self) -> None:
        """A directory with an incomplete restore is refused."""
        self.start()
        (self.path / datadir.RESTORE_MARKER).touch()
        self.assertIn("is incomplete: a restore was interrupted; run twist kubeapi-restore again", self.refused())
