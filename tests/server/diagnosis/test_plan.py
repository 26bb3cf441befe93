"""Tests for L{kubetwist.server.diagnosis.plan}."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.credentials.certificates import CertificateAuthority
from kubetwist.server.datadir import DataDirectory
from kubetwist.server.diagnosis.findings import Severity
from kubetwist.server.diagnosis.plan import Diagnosis
from kubetwist.server.diagnosis.runner import run_checks
from tests.cli.commandlines import parsed


class PlanTests(SynchronousTestCase):
    """L{Diagnosis}."""

    def names(self, *flags: str) -> list[str]:
        """Return the names of the checks of a command line."""
        return [one.name for one in Diagnosis(parsed(*flags), {}).checks()]

    def test_selected(self) -> None:
        """The storage backend decides about the checks."""
        common = ["flags", "versions", "plugins", "limits", "clock"]
        directory = ["data-directory", "disk", "certificates"]
        self.assertEqual(self.names(), [*common, *directory, "store", "server"])
        self.assertEqual(self.names("--in-memory"), [*common, "server"])
        self.assertEqual(self.names("--etcd-servers=http://127.0.0.1:1"), [*common, *directory, "etcd", "server"])

    def test_certificates(self) -> None:
        """The certificates of the data directory and of flags are checked."""
        folder = Path(self.mktemp())
        data = DataDirectory(folder, durable=False)
        data.open()
        data.close()
        (folder / "mine.crt").write_bytes(CertificateAuthority.make("mine").pair.certificate)
        options = parsed(f"--data-dir={folder}", f"--client-ca-file={folder}/mine.crt")
        files = Diagnosis(options, {}).certificate_files()
        self.assertEqual([one.name for one in files], ["ca", "front-proxy-ca", "client-ca-file"])

    def test_run(self) -> None:
        """All checks of a directory that does not exist end, without an error, and create nothing."""
        folder = Path(self.mktemp())
        found = run_checks(Diagnosis(parsed(f"--data-dir={folder}", "--secure-port=0"), {}).checks(), 60)
        self.assertEqual([one for one in found if one.severity is Severity.ERROR and "space" not in one.id], [])
        self.assertIn("data-directory/exists", [one.id for one in found])
        self.assertFalse(folder.exists())
