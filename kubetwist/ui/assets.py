"""
The files of a page, as they are sent.

They stand below a folder named by what is in all of them, so that browsers may keep them for ever; only the page
itself, which has that name in it, is asked for again.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Final

from attrs import frozen

#: Where they are, beside this module.
STATIC: Final = Path(__file__).parent / "static"
#: In a page, the name of the folder.
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


@frozen
class Files:
    """
    What belongs to a page.

    @ivar page: The page itself, below L{STATIC}.
    @ivar others: Patterns of all else that may be asked for.
    """

    page: str
    others: tuple[str, ...]


UI: Final = Files("index.html", ("*.js", "*.css", "*.svg", "vendor/*.txt", "vendor/js-yaml/*"))
SWAGGER_UI: Final = Files("swagger/index.html", ("swagger/*.*s", "api.js", "dom.js", "icon.svg", "vendor/swagger-ui/*"))


def read_assets(
    files: Files = UI, replaced: Mapping[bytes, bytes] = MappingProxyType({}), static: Path = STATIC
) -> Assets:
    """
    Read and pack them: some milliseconds, or a few hundred for Swagger UI, in a thread.

    @param replaced: What stands in the page for what.
    @raise OSError: A file cannot be read.
    """
    found = sorted({path for pattern in files.others for path in static.glob(pattern) if path.suffix in _TYPES})
    contents = {path.relative_to(static).as_posix(): path.read_bytes() for path in found}
    page = (static / files.page).read_bytes()
    for mark, value in replaced.items():
        page = page.replace(mark, value)
    digest = sha256(page)
    for name, content in contents.items():
        digest.update(b"%b\0%d\0%b" % (name.encode(), len(content), content))
    folder = digest.hexdigest()[:16]
    page = page.replace(_PLACE, folder.encode())
    return Assets(
        folder, Asset.of(files.page, page), {name: Asset.of(name, content) for name, content in contents.items()}
    )
