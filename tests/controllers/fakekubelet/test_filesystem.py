"""Tests for L{kubetwist.controllers.fakekubelet.filesystem}."""

from __future__ import annotations

import tarfile
from io import BytesIO

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.controllers.fakekubelet.filesystem import MAX_SIZE, FileError, FileSystem

NAMES = st.text("abc.", min_size=1, max_size=4).filter(lambda name: name.strip("."))


class FileSystemTests(SynchronousTestCase):
    """L{FileSystem}."""

    def setUp(self) -> None:
        """Create the files of a container."""
        self.files = FileSystem({"/etc/app/config": b"a=1"})

    def test_reading(self) -> None:
        """Files and directories are found by path, absolute or relative to the root."""
        self.assertEqual(self.files.read("etc/../etc/app/config"), b"a=1")
        self.assertEqual(self.files.names("/etc"), ["app"])
        self.assertEqual(self.files.names("/etc/app/config"), ["/etc/app/config"])
        self.assertTrue(self.files.is_directory("/etc/app/"))
        self.assertFalse(self.files.is_file("/etc/app"))
        for path, reason in (("/etc", "Is a directory"), ("/none", "No such file or directory")):
            self.assertEqual(self.assertRaises(FileError, self.files.read, path).reason, reason)

    def test_writing(self) -> None:
        """Files are replaced and appended to, in existing directories."""
        self.files.write("/tmp/x", b"1")
        self.files.write("/tmp/x", b"2", append=True)
        self.assertEqual((self.files.read("/tmp/x"), self.files.size), (b"12", 5))
        for path, reason in (("/none/x", "No such file or directory"), ("/tmp", "Is a directory")):
            self.assertEqual(self.assertRaises(FileError, self.files.write, path, b"").reason, reason)

    def test_limits(self) -> None:
        """The sizes of all files are limited; removed files do not count."""
        self.files.write("/tmp/x", b"1" * (MAX_SIZE - 3))
        error = self.assertRaises(FileError, self.files.write, "/tmp/y", b"2")
        self.assertEqual(error.reason, "No space left on device")
        self.files.remove("/tmp/x")
        self.files.write("/tmp/y", b"2")

    def test_directories(self) -> None:
        """Directories are created with their parents, and removed with their content."""
        self.assertRaises(FileError, self.files.make_directory, "/a/b")
        self.files.make_directory("/a/b", parents=True)
        self.files.make_directory("/a/b", parents=True)
        self.assertRaises(FileError, self.files.make_directory, "/a/b")
        self.files.write("/a/b/c", b"")
        self.assertRaises(FileError, self.files.remove, "/a")
        self.files.remove("/a", recursive=True)
        self.assertFalse(self.files.is_file("/a/b/c"))

    @given(st.dictionaries(NAMES, st.binary(max_size=600), max_size=5))
    def test_archives(self, contents: dict[str, bytes]) -> None:
        """An archive has the content of the files it was made of."""
        files, other = FileSystem(), FileSystem()
        for name, content in contents.items():
            files.write(f"/tmp/{name}", content)
        other.unpack(files.pack(["/tmp"]), "/var")
        self.assertEqual({name: other.read(f"/var/tmp/{name}") for name in contents}, contents)

    def test_hostile_archives(self) -> None:
        """Members cannot leave the directory; links are skipped; what is no archive has an error."""
        buffer = BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            member = tarfile.TarInfo("../../etc/app/config")
            member.size = 1
            archive.addfile(member, BytesIO(b"x"))
            link = tarfile.TarInfo("link")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc"
            archive.addfile(link)
        self.files.unpack(buffer.getvalue(), "/tmp")
        self.assertEqual(self.files.read("/etc/app/config"), b"a=1")
        self.assertEqual(self.files.read("/tmp/etc/app/config"), b"x")
        self.assertEqual(self.files.names("/tmp"), ["etc"])
        self.assertRaises(FileError, self.files.unpack, b"no archive", "/tmp")
        self.assertRaises(FileError, self.files.unpack, b"", "/none")
