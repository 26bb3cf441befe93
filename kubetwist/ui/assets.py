"""
The files of the page, as they are sent.

They stand below a folder named by what is in all of them, so that browsers may keep them for ever; only the page
itself, which has that name in it, is asked for again.
"""

from __future__ import annotations

import gzip
from hashlib import sha256
from pathlib import Path
from typing import Final

from attrs import frozen

#: Where they are, beside this module.
STATIC: Final = Path(__file__).parent / "static"
PAGE: Final = "index.html"
#: In the page, the name of the folder.
_PLACE: Final = b"{{assets}}"
_TYPES: Final = {
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".mjs": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".svg": b"image/svg+xml",
    ".txt": b"text/plain; charset=utf-8",
}


@frozen
class Asset:
    """
    One file.

    @ivar packed: Its content, by gzip.
    @ivar tag: Of the content, with quotes: for C{ETag}.
    """

    content: bytes
    packed: bytes
    media_type: bytes
    tag: bytes

    @classmethod
    def of(cls, name: str, content: bytes) -> Asset:
        """Make one."""
        tag = b'"%b"' % sha256(content).hexdigest()[:32].encode()
        return cls(content, gzip.compress(content, 9, mtime=0), _TYPES[Path(name).suffix], tag)


@frozen
class Assets:
    """
    All of them.

    @ivar folder: What the folder is called.
    @ivar files: By their paths below the folder.
    """

    folder: str
    page: Asset
    files: dict[str, Asset]


def read_assets(static: Path = STATIC) -> Assets:
    """
    Read and pack them: some milliseconds, in a thread.

    @raise OSError: One can not be read.
    """
    contents = {
        path.relative_to(static).as_posix(): path.read_bytes()
        for path in sorted(static.rglob("*"))
        if path.suffix in _TYPES
    }
    digest = sha256()
    for name, content in contents.items():
        digest.update(b"%b\0%d\0%b" % (name.encode(), len(content), content))
    folder = digest.hexdigest()[:16]
    page = contents.pop(PAGE).replace(_PLACE, folder.encode())
    return Assets(folder, Asset.of(PAGE, page), {name: Asset.of(name, content) for name, content in contents.items()})
