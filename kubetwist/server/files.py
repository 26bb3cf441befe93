"""Write files atomically."""

from __future__ import annotations

import os
from pathlib import Path


def write_file(path: Path, content: bytes, mode: int = 0o600, *, durable: bool = True) -> None:
    """
    Write C{content} to C{path} atomically: a crash leaves the old or the new content.

    @param durable: Whether a crash of the machine counts, too: sync the file to the disk before the return.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode)
    try:
        with open(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.write(content)
            if durable:
                file.flush()
                os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Sync a directory, which makes renames in it durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
