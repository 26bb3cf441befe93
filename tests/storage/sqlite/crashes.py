"""Files of servers that were killed."""

from __future__ import annotations

import os
from pathlib import Path

from kubetwist.storage.errors import StorageCorrupt
from kubetwist.storage.sqlite._storage import SQLiteStorage
from kubetwist.storage.sqlite._wal import (
    FRAME,
    HEADER,
)
from tests.storage.sqlite.test_storage import FileCase

PAGE = 4096


#: Bytes of a frame.
LENGTH = FRAME.size + PAGE


class CrashedCase(FileCase):
    """Files that a killed server leaves."""

    writes = 40

    def setUp(self) -> None:
        """Write some keys, one transaction each, and copy the files of the open store."""
        super().setUp()
        storage = self.open()
        for number in range(self.writes - 1):
            self.write(storage, f"/r/{number:02}", b"%d" % number * 400)
        #: Possible states of the mark after a power cut.
        self.older_mark = Path(f"{self.path}-mark").read_bytes()
        self.newest = self.write(storage, "/r/last", b"x" * 800)
        self.now = self.page(storage)
        self.files = {suffix: Path(self.path + suffix).read_bytes() for suffix in ("", "-wal", "-mark")}
        self.frames = (len(self.files["-wal"]) - HEADER.size) // LENGTH

    def put(self, **changed: bytes | None) -> None:
        """Put the files at a new path, some of them changed or left out."""
        self.path = os.path.abspath(self.mktemp())
        for suffix, content in self.files.items():
            content = changed.get(suffix.strip("-") or "database", content)  # type: ignore[assignment]
            if content is not None:
                Path(self.path + suffix).write_bytes(content)

    def changed(self, suffix: str, at: int, length: int = 16) -> bytes:
        """Return one of the files with all bits of some bytes inverted."""
        content = bytearray(self.files[suffix])
        content[at : at + length] = bytes(one ^ 0xFF for one in content[at : at + length])
        return bytes(content)

    def attempt(self) -> list[tuple[str, bytes, int]] | None:
        """Return the content of the store; L{None} if it is refused."""
        storage = SQLiteStorage(self.path, self.reactor)
        try:
            self.reactor.run(storage.open())
        except StorageCorrupt:
            return None
        try:
            return self.page(storage)
        finally:
            self.close(storage)
