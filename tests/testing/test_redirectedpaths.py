"""Tests for L{kubetwist.testing._redirectedpaths}."""

from __future__ import annotations

import builtins
import io
import os
import shutil
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import IO

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.credentials.certificates import CertConfig, CertificateAuthority
from kubetwist.testing._redirectedpaths import redirected_paths

PATH = "/var/run/nosuch.example.com/folder"
FILE = f"{PATH}/file"

#: Ways in which code opens a file.
OPENERS: dict[str, Callable[[str], IO[str]]] = {
    "open": lambda path: open(path),  # noqa: SIM115
    "open with a keyword": lambda path: open(file=path),  # noqa: SIM115
    "io.open": lambda path: io.open(path),  # noqa: SIM115, UP020
    "Path.open": lambda path: Path(path).open(),  # noqa: SIM115
    "bytes": lambda path: open(os.fsencode(path)),  # noqa: SIM115
    "os.open": lambda path: os.fdopen(os.open(path, os.O_RDONLY)),
}
#: Ways in which code examines a file.
CHECKS: dict[str, Callable[[str], bool]] = {
    "exists": os.path.exists,
    "lexists": os.path.lexists,
    "isfile": os.path.isfile,
    "access": lambda path: os.access(path, os.R_OK),
    "Path.exists": lambda path: Path(path).exists(),
    "Path.is_file": lambda path: Path(path).is_file(),
    "listdir": lambda path: os.path.isdir(PATH) and os.path.basename(path) in os.listdir(PATH),
    "scandir": lambda path: os.path.isdir(PATH) and any(one.name == "file" for one in os.scandir(PATH)),
    "iterdir": lambda path: Path(PATH).exists() and any(one.name == "file" for one in Path(PATH).iterdir()),
}


class RedirectedPathsTests(SynchronousTestCase):
    """L{redirected_paths}."""

    def setUp(self) -> None:
        """Create a directory with a file."""
        self.folder = Path(self.mktemp()).absolute()
        self.folder.mkdir()
        (self.folder / "file").write_text("content")

    def test_reading(self) -> None:
        """Each way to read a file reads the other file."""
        with redirected_paths({PATH: str(self.folder)}):
            for name, open_file in OPENERS.items():
                with open_file(FILE) as file:
                    self.assertEqual("content", file.read(), name)
        for name, open_file in OPENERS.items():
            with self.assertRaises(FileNotFoundError, msg=name):
                open_file(FILE)

    def test_checks(self) -> None:
        """Each way to look for a file finds the other file, in the context only."""
        for inside in (True, False, True):
            with redirected_paths({PATH: str(self.folder)} if inside else {}):
                self.assertEqual(dict.fromkeys(CHECKS, inside), {name: check(FILE) for name, check in CHECKS.items()})
        self.assertEqual(dict.fromkeys(CHECKS, False), {name: check(FILE) for name, check in CHECKS.items()})

    def test_writing(self) -> None:
        """Files can be written, too."""
        with redirected_paths({PATH: str(self.folder)}):
            Path(f"{PATH}/new").write_text("new")
        self.assertEqual("new", (self.folder / "new").read_text())

    def test_hidden(self) -> None:
        """Existing files can be hidden, with the usual error."""
        path = self.folder / "file"
        with redirected_paths({str(self.folder): None}):
            for open_file in OPENERS.values():
                with self.assertRaises(FileNotFoundError) as caught:
                    open_file(str(path))
                self.assertEqual(os.fsencode(path), os.fsencode(caught.exception.filename))
            self.assertFalse(os.path.exists(path) or os.access(path, os.R_OK) or path.is_file())
        self.assertTrue(path.exists())

    def test_other_paths(self) -> None:
        """Other paths, also with the same beginning, and open files are not redirected."""
        other = self.folder / "file2"
        other.write_text("other")
        with redirected_paths({str(self.folder / "file"): None}):
            self.assertEqual("other", other.read_text())
            descriptor = os.open(other, os.O_RDONLY)
            self.assertEqual(5, os.stat(descriptor).st_size)
            with open(descriptor) as file:
                self.assertEqual("other", file.read())
            with self.assertRaises(TypeError):
                open(None)  # type: ignore[call-overload] # noqa: SIM115
            self.assertEqual(os.listdir(os.curdir), os.listdir())

    def test_nested(self) -> None:
        """The innermost context decides, and the end of one does not end another."""
        second = self.folder / "second"
        second.mkdir()
        (second / "file").write_text("second")
        with redirected_paths({PATH: str(self.folder)}):
            with redirected_paths({PATH: str(second)}):
                self.assertEqual("second", Path(FILE).read_text())
            self.assertEqual("content", Path(FILE).read_text())

    def test_restored(self) -> None:
        """The functions are the original ones afterwards, and those that code has kept have no further effect."""
        before = [builtins.open, io.open, os.stat, os.access, ssl.SSLContext.load_verify_locations]
        with redirected_paths({PATH: str(self.folder)}):
            kept = os.stat
            self.assertIsNot(before[2], kept)
            self.assertIn(kept, os.supports_follow_symlinks)
        after = [builtins.open, io.open, os.stat, os.access, ssl.SSLContext.load_verify_locations]
        self.assertEqual(before, after)
        self.assertNotIn("load_verify_locations", vars(ssl.SSLContext))
        self.assertNotIn(kept, os.supports_follow_symlinks)
        with self.assertRaises(FileNotFoundError):
            kept(FILE)

    def test_copy(self) -> None:
        """Functions of shutil work, which examine the capabilities of other functions."""
        with redirected_paths({PATH: str(self.folder)}):
            shutil.copytree(PATH, self.folder.parent / "copy", symlinks=True)
            shutil.copy2(FILE, self.folder / "again", follow_symlinks=False)
            shutil.rmtree(self.folder.parent / "copy")
        self.assertEqual("content", (self.folder / "again").read_text())

    def test_ssl(self) -> None:
        """Certificates are read by the module ssl, by position or by name."""
        authority = CertificateAuthority.make("test")
        pair = authority.issue(CertConfig("client"))
        for name, content in (("ca.crt", authority.pair.certificate), ("crt", pair.certificate), ("key", pair.key)):
            (self.folder / name).write_bytes(content)
        with redirected_paths({PATH: str(self.folder)}):
            for context in (
                ssl.create_default_context(cafile=f"{PATH}/ca.crt"),
                ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            ):
                context.load_verify_locations(f"{PATH}/ca.crt")
                context.load_cert_chain(f"{PATH}/crt", keyfile=f"{PATH}/key")
                self.assertEqual(1, context.cert_store_stats()["x509_ca"])
            context = ssl.create_default_context(cadata=authority.pair.certificate.decode())
            self.assertEqual(1, context.cert_store_stats()["x509_ca"])
