#!/usr/bin/env python3
"""
Write the definitions of all Kubernetes releases, from the installed package C{kubernetes-validate}, into the package.

Usage: .ci/definitions.py. It prints the releases whose files it wrote; files that already have the same content are
not touched. See F{kubetwist/schema/releasefiles.py} for their format.
"""

from __future__ import annotations

import gzip
import re
from importlib.util import find_spec
from pathlib import Path

import orjson

from kubetwist.schema.releasefiles import FOLDER, ReleaseFile, encode, path_of

_FOLDER = re.compile(r"v(?P<minor>1\.[0-9]+)\.[0-9]+-local")


def sources() -> dict[str, Path]:
    """Return the files with definitions in the package, by release."""
    spec = find_spec("kubernetes_validate")
    if spec is None or spec.origin is None:
        raise SystemExit("definitions: the package kubernetes-validate is not installed")
    found = {}
    for path in (Path(spec.origin).parent / "kubernetes-json-schema").iterdir():
        match = _FOLDER.fullmatch(path.name)
        if match:
            found[match["minor"]] = path / "_definitions.json"
    return found


def release_file(source: bytes) -> ReleaseFile:
    """Convert a file of the package."""
    definitions = orjson.loads(source)["$defs"]
    kinds = [
        [gvk["group"], gvk["version"], gvk["kind"], name]
        for name, definition in definitions.items()
        for gvk in definition.get("x-kubernetes-group-version-kind", ())
    ]
    return ReleaseFile({name: orjson.dumps(definition) for name, definition in definitions.items()}, kinds)


def main() -> None:
    """Write the files that differ."""
    FOLDER.mkdir(exist_ok=True)
    written = []
    for minor, source in sorted(sources().items()):
        content = encode(release_file(source.read_bytes()))
        path = path_of(minor)
        # Versions of zlib compress to different bytes.
        if path.exists() and gzip.decompress(path.read_bytes()) == content:
            continue
        path.write_bytes(gzip.compress(content, 9, mtime=0))
        written.append(minor)
    print(f"definitions: wrote {', '.join(written) or 'nothing'}")


if __name__ == "__main__":
    main()
