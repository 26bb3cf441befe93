"""The files of a simulated container: a bounded tree in memory that tar archives are written to and read from."""

from __future__ import annotations

import posixpath
import tarfile
from collections.abc import Mapping
from io import BytesIO
from typing import Final

from attrs import define

#: Maximum size of all files of a container in bytes, and maximum number of its files and directories.
MAX_SIZE: Final = 16 * 1024 * 1024
MAX_FILES: Final = 10_000
_MAX_PATH: Final = 4096
#: The directories of every simulated container.
_DIRECTORIES: Final = ("/", "/bin", "/dev", "/etc", "/home", "/proc", "/root", "/tmp", "/usr", "/var")  # noqa: S108


class FileError(Exception):
    """
    An operation on a file failed.

    @ivar path: The path.
    @ivar reason: The text of the system's error.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


@define
class _Node:
    """A file, or a directory if C{content} is L{None}."""

    content: bytes | None
    mode: int = 0o644
    modified: float = 0.0


class FileSystem:
    """The files of one container. Paths are absolute, or relative to C{/}."""

    def __init__(self, files: Mapping[str, bytes] | None = None) -> None:
        """
        @param files: The initial files, by path.
        """
        self._nodes: dict[str, _Node] = {path: _Node(None, 0o755) for path in _DIRECTORIES}
        self.size = 0
        for path, content in (files or {}).items():
            self.make_directory(posixpath.dirname(path), parents=True)
            self.write(path, content)

    # --- reading

    def is_file(self, path: str) -> bool:
        """Return whether a path is a file."""
        node = self._nodes.get(_absolute(path))
        return node is not None and node.content is not None

    def is_directory(self, path: str) -> bool:
        """Return whether a path is a directory."""
        node = self._nodes.get(_absolute(path))
        return node is not None and node.content is None

    def read(self, path: str) -> bytes:
        """
        Return the content of a file.

        @raise FileError: There is no such file.
        """
        node = self._node(path)
        if node.content is None:
            raise FileError(path, "Is a directory")
        return node.content

    def names(self, path: str) -> list[str]:
        """
        Return the names in a directory, sorted; a file has its path.

        @raise FileError: There is no such file.
        """
        if self._node(path).content is not None:
            return [path]
        prefix = _absolute(path).rstrip("/") + "/"
        below = (one.removeprefix(prefix) for one in self._nodes if one.startswith(prefix) and one != prefix)
        return sorted(one for one in below if one and "/" not in one)

    def _node(self, path: str) -> _Node:
        node = self._nodes.get(_absolute(path))
        if node is None:
            raise FileError(path, "No such file or directory")
        return node

    # --- writing

    def write(
        self, path: str, content: bytes, *, append: bool = False, mode: int = 0o644, modified: float = 0.0
    ) -> None:
        """
        Write a file, whose directory must exist.

        @param append: Whether the content is added to an existing file.
        @param mode: The permissions.
        @param modified: The time of the modification in POSIX seconds.
        @raise FileError: The directory does not exist, or the limit of sizes is reached.
        """
        absolute = _absolute(path)
        old = self._nodes.get(absolute)
        if old is not None and old.content is None:
            raise FileError(path, "Is a directory")
        if not self.is_directory(posixpath.dirname(absolute)):
            raise FileError(path, "No such file or directory")
        previous = b"" if old is None or old.content is None else old.content
        if append:
            content = previous + content
        size = self.size + len(content) - len(previous)
        if size > MAX_SIZE or (old is None and len(self._nodes) >= MAX_FILES) or len(absolute) > _MAX_PATH:
            raise FileError(path, "No space left on device")
        self.size = size
        self._nodes[absolute] = _Node(content, mode, modified)

    def make_directory(self, path: str, *, parents: bool = False) -> None:
        """
        Create a directory.

        @param parents: Whether missing parents are created, too, and existing directories are accepted.
        @raise FileError: It exists, or its parent does not.
        """
        absolute = _absolute(path)
        if absolute in self._nodes:
            if not parents or self._nodes[absolute].content is not None:
                raise FileError(path, "File exists")
            return
        parent = posixpath.dirname(absolute)
        if not self.is_directory(parent):
            if not parents:
                raise FileError(path, "No such file or directory")
            if absolute.count("/") > 100:
                raise FileError(path, "File name too long")
            self.make_directory(parent, parents=True)
        if len(self._nodes) >= MAX_FILES or len(absolute) > _MAX_PATH:
            raise FileError(path, "No space left on device")
        self._nodes[absolute] = _Node(None, 0o755)

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """
        Remove a file, or a directory with all that is below it.

        @raise FileError: There is no such file, or it is a directory and C{recursive} is false.
        """
        absolute = _absolute(path)
        if self._node(path).content is None:
            if not recursive or absolute == "/":
                raise FileError(path, "Is a directory")
            for below in [one for one in self._nodes if one.startswith(absolute + "/")]:
                self._remove(below)
        self._remove(absolute)

    def _remove(self, absolute: str) -> None:
        self.size -= len(self._nodes.pop(absolute).content or b"")

    # --- archives

    def pack(self, paths: list[str]) -> bytes:
        """
        Return a tar archive of files and directories.

        @raise FileError: There is no such file.
        """
        buffer = BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for path in paths:
                self._node(path)
                absolute = _absolute(path)
                for one in sorted(self._nodes):
                    if one == absolute or one.startswith(absolute.rstrip("/") + "/"):
                        self._pack(archive, one)
        return buffer.getvalue()

    def _pack(self, archive: tarfile.TarFile, absolute: str) -> None:
        node = self._nodes[absolute]
        member = tarfile.TarInfo(absolute.lstrip("/") or ".")
        member.mode, member.mtime = node.mode, int(node.modified)
        if node.content is None:
            member.type = tarfile.DIRTYPE
            archive.addfile(member)
        else:
            member.size = len(node.content)
            archive.addfile(member, BytesIO(node.content))

    def unpack(self, data: bytes, directory: str) -> None:
        """
        Write the files of a tar archive below a directory. Other members, such as links, are skipped.

        @raise FileError: The archive is invalid, or the limits are reached.
        """
        if not self.is_directory(directory):
            raise FileError(directory, "Cannot open: No such file or directory")
        try:
            with tarfile.open(fileobj=BytesIO(data), mode="r|") as archive:
                for member in archive:
                    self._unpack(archive, member, directory)
        except (tarfile.TarError, EOFError, ValueError) as error:
            raise FileError("tar", f"This does not look like a tar archive: {error}") from None

    def _unpack(self, archive: tarfile.TarFile, member: tarfile.TarInfo, directory: str) -> None:
        # Names with .. stay below the directory.
        name = posixpath.normpath("/" + member.name.lstrip("/"))
        path = posixpath.join(_absolute(directory), name.lstrip("/"))
        if member.isdir():
            self.make_directory(path, parents=True)
        elif member.isfile():
            if member.size > MAX_SIZE:
                raise FileError(path, "No space left on device")
            source = archive.extractfile(member)
            self.make_directory(posixpath.dirname(path), parents=True)
            self.write(path, b"" if source is None else source.read(), mode=member.mode, modified=member.mtime)


def _absolute(path: str) -> str:
    normal = posixpath.normpath("/" + path)
    return "/" + normal.lstrip("/")
