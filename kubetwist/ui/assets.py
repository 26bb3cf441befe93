"""
The files of a page, in the form in which they are sent.

The path of all files but the page contains a hash of their contents, so that browsers can cache them forever. The page
contains this path, and is revalidated at each request.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Final

from attrs import frozen

#: The directory of the files.
STATIC: Final = Path(__file__).parent / "static"
#: Placeholder in a page for the folder name with the hash.
_PLACEHOLDER: Final = b"{{assets}}"
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

    @ivar gzipped: The compressed content.
    @ivar etag: The hash of the content, with quotes, for C{ETag}.
    """

    content: bytes
    gzipped: bytes
    media_type: bytes
    etag: bytes

    @classmethod
    def of(cls, name: str, content: bytes) -> Asset:
        """Return the asset of a file."""
        etag = b'"%b"' % sha256(content).hexdigest()[:32].encode()
        return cls(content, gzip.compress(content, 9, mtime=0), _TYPES[Path(name).suffix], etag)


@frozen
class Assets:
    """
    All files of a page.

    @ivar folder: The folder name with the hash.
    @ivar files: The files by path below the folder.
    """

    folder: str
    page: Asset
    files: dict[str, Asset]


@frozen
class PageFiles:
    """
    The names of the files of a page.

    @ivar page: The path of the page below L{STATIC}.
    @ivar assets: Patterns of the paths of all further files.
    """

    page: str
    assets: tuple[str, ...]


UI: Final = PageFiles(
    "index.html",
    (
        "*.js",
        "*.css",
        "*.svg",
        "components/*.js",
        "core/*.js",
        "lib/**/*.js",
        "pages/*.js",
        "styles/*.css",
        "vendor/*.txt",
        "vendor/codemirror/*",
        "vendor/js-yaml/*",
        "vendor/xterm/*",
    ),
)
SWAGGER_UI: Final = PageFiles(
    "swagger/index.html",
    (
        "swagger/*.*s",
        "core/api.js",
        "core/dom.js",
        "lib/addresses.js",
        "lib/resources.js",
        "lib/texts.js",
        "icon.svg",
        "vendor/js-yaml/*",
        "vendor/swagger-ui/*",
    ),
)


def read_assets(
    files: PageFiles = UI, replacements: Mapping[bytes, bytes] = MappingProxyType({}), static: Path = STATIC
) -> Assets:
    """
    Read and compress the files of a page. This takes some milliseconds, or a few hundred for Swagger UI; callers run it
    in a thread.

    @param files: The names of the files.
    @param replacements: Replacements in the page, by placeholder.
    @param static: The directory of the files.
    @raise OSError: A file cannot be read.
    """
    found = sorted({path for pattern in files.assets for path in static.glob(pattern) if path.suffix in _TYPES})
    contents = {path.relative_to(static).as_posix(): path.read_bytes() for path in found}
    page = (static / files.page).read_bytes()
    for mark, value in replacements.items():
        page = page.replace(mark, value)
    digest = sha256(page)
    for name, content in contents.items():
        digest.update(b"%b\0%d\0%b" % (name.encode(), len(content), content))
    folder = digest.hexdigest()[:16]
    page = page.replace(_PLACEHOLDER, folder.encode())
    return Assets(
        folder, Asset.of(files.page, page), {name: Asset.of(name, content) for name, content in contents.items()}
    )
