"""
The data files with the OpenAPI definitions of the Kubernetes releases.

The folder F{releases} has a file C{1.36.jsonl.gz} for each release. F{.ci/definitions.py} writes them. Each line is
JSON: the first is a list of the names of all definitions, the second a list of kinds, C{[group, version, kind, name of
the definition]}; then come the definitions, one per line, in the order of the names.
"""

from __future__ import annotations

import zlib
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import orjson

FOLDER: Final = Path(__file__).with_name("releases")
SUFFIX: Final = ".jsonl.gz"
#: The format of the files for zlib. The module gzip would import more, and copy the content.
_GZIP: Final = 31


class ReleaseFile(NamedTuple):
    """The content of a file."""

    #: The definitions by name: C{io.k8s.api.core.v1.Pod}. Values are JSON.
    definitions: dict[str, bytes]
    #: Group, version, kind, and the name of the definition.
    kinds: list[list[str]]


@cache
def available_versions() -> tuple[str, ...]:
    """Return the releases with definitions, oldest first: C{"1.25"} and so on."""
    names = [path.name.removesuffix(SUFFIX) for path in FOLDER.iterdir() if path.name.endswith(SUFFIX)]
    return tuple(sorted(names, key=lambda name: int(name.partition(".")[2])))


def path_of(minor: str) -> Path:
    """Return the file of a release."""
    return FOLDER / f"{minor}{SUFFIX}"


def encode(release: ReleaseFile) -> bytes:
    """Return the content of a file, before it is compressed."""
    heads = orjson.dumps(list(release.definitions)), orjson.dumps(release.kinds)
    return b"\n".join((*heads, *release.definitions.values()))


def decode(content: bytes) -> ReleaseFile:
    """Parse the content of a file, after it is decompressed. The definitions are not parsed."""
    names, kinds, *definitions = content.split(b"\n")
    return ReleaseFile(dict(zip(orjson.loads(names), definitions, strict=True)), orjson.loads(kinds))


def read(minor: str) -> ReleaseFile:
    """
    Read the file of a release.

    @raise FileNotFoundError: There are no definitions for the release.
    """
    return decode(zlib.decompress(path_of(minor).read_bytes(), _GZIP))
