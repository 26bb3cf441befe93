"""Tests for L{kubetwist.schema.releasefiles}."""

from __future__ import annotations

import re
import zlib
from importlib.util import find_spec
from pathlib import Path

import orjson

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from kubetwist.schema import releasefiles
from kubetwist.schema.releasefiles import ReleaseFile, available_versions, decode, encode, path_of, read


def package_files() -> dict[str, Path]:
    """Return the files with definitions of the package kubernetes-validate, by release."""
    # Importing the package would load a JSON Schema validator.
    spec = find_spec("kubernetes_validate")
    if spec is None or spec.origin is None:
        raise SkipTest("kubernetes-validate is not installed")
    folders = (Path(spec.origin).parent / "kubernetes-json-schema").iterdir()
    found = {}
    for folder in folders:
        match = re.fullmatch(r"v(1\.[0-9]+)\.[0-9]+-local", folder.name)
        if match:
            found[match[1]] = folder / "_definitions.json"
    return found


class ReleaseFilesTests(SynchronousTestCase):
    """Tests for the files and their format."""

    def test_versions(self) -> None:
        """Releases are sorted by number, oldest first."""
        versions = available_versions()
        minors = [int(version.partition(".")[2]) for version in versions]
        self.assertEqual(minors, sorted(minors))
        self.assertEqual((versions[0], versions[-1]), ("1.25", "1.37"))

    def test_same_as_package(self) -> None:
        """There is a file for every release of kubernetes-validate, with the same definitions in the same order."""
        files = package_files()
        self.assertEqual(set(available_versions()), set(files), "run .ci/definitions.py")
        for minor, path in files.items():
            parsed = orjson.loads(path.read_bytes())["$defs"]
            release = read(minor)
            self.assertEqual(list(release.definitions), list(parsed))
            for name, text in release.definitions.items():
                # Not compared as values: in Python 1, 1.0 and True are equal.
                self.assertEqual(text, orjson.dumps(parsed[name]), f"{minor} {name}")

    def test_kinds(self) -> None:
        """The kinds of a file are those that the definitions state."""
        for minor in available_versions():
            release = read(minor)
            stated = [
                [gvk["group"], gvk["version"], gvk["kind"], name]
                for name, text in release.definitions.items()
                for gvk in orjson.loads(text).get("x-kubernetes-group-version-kind", ())
            ]
            self.assertEqual(release.kinds, stated)

    def test_round_trip(self) -> None:
        """What is encoded is decoded to the same; an incomplete content is refused."""
        release = ReleaseFile({"a.B": b'{"type":"object"}', "a.C": b"{}"}, [["", "v1", "B", "a.B"]])
        content = encode(release)
        self.assertEqual(decode(content), release)
        self.assertRaises(ValueError, decode, content.rpartition(b"\n")[0])

    def test_damaged_file(self) -> None:
        """A file with other bytes than were written is refused, by the checksum of its format."""
        content = bytearray(path_of("1.36").read_bytes())
        content[-6] ^= 1
        self.patch(releasefiles, "FOLDER", Path(self.mktemp()))
        releasefiles.FOLDER.mkdir()
        path_of("1.36").write_bytes(content)
        self.assertRaises(zlib.error, read, "1.36")
        self.assertRaises(FileNotFoundError, read, "1.2")
