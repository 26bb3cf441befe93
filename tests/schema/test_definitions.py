"""Tests for L{kubetwist.schema.definitions}."""

from __future__ import annotations

from pathlib import Path

import orjson

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersionKind
from kubetwist.schema import definitions as definitions_module
from kubetwist.schema.definitions import Definitions, UnknownRelease, _files, available_versions
from tests.schema.release import definitions


class ReleaseTests(SynchronousTestCase):
    """Tests for L{Definitions} and L{available_versions}."""

    def test_versions(self) -> None:
        """Releases are sorted by number, oldest first."""
        versions = available_versions()
        minors = [int(version.partition(".")[2]) for version in versions]
        self.assertEqual(minors, sorted(minors))
        self.assertIn("1.25", versions)
        self.assertIn("1.36", versions)

    def test_unknown_version(self) -> None:
        """Loading an unknown release fails with a list of the available releases."""
        error = self.assertRaises(UnknownRelease, Definitions.load, "1.2")
        self.assertIn("1.36", str(error))

    def test_every_kind_of_every_version(self) -> None:
        """Every kind of every release compiles, and its zero object decodes to itself."""
        for version in available_versions():
            release = Definitions.load(version)
            for gvk in release.gvks():
                kind = release.type_for(gvk)
                zero = kind.zero()
                problems: list[str] = []
                self.assertEqual(kind.decode(zero, problems), zero, gvk)
                self.assertEqual(problems, [])

    def test_same_as_parsed(self) -> None:
        """The definitions and kinds of every release equal the content of its file, indented or not."""
        for version in available_versions():
            path = _files()[version]
            parsed = orjson.loads(path.read_bytes())["$defs"]
            compact = Path(self.mktemp())
            compact.write_bytes(orjson.dumps({"$comment": "x", "$defs": parsed}))
            kinds = {
                (gvk["group"], gvk["version"], gvk["kind"]): name
                for name, schema in parsed.items()
                for gvk in schema.get("x-kubernetes-group-version-kind", ())
            }
            for file in (path, compact):
                self.patch(definitions_module, "_files", {version: file}.copy)
                release = Definitions.load(version)
                self.assertEqual({name: orjson.loads(text) for name, text in release._encoded.items()}, parsed)
                self.assertEqual({tuple(gvk): release.definition_of(gvk) for gvk in release.gvks()}, kinds)

    def test_kinds_differ_by_release(self) -> None:
        """A release has the API versions that it served."""
        beta = GroupVersionKind("flowcontrol.apiserver.k8s.io", "v1beta3", "FlowSchema")
        self.assertTrue(Definitions.load("1.28").has_kind(beta))
        self.assertFalse(definitions().has_kind(beta))
        self.assertRaises(KeyError, definitions().type_for, beta)

    def test_types_are_compiled_once(self) -> None:
        """A second call returns the same type."""
        pod = GroupVersionKind("", "v1", "Pod")
        self.assertIs(definitions().type_for(pod), definitions().type_for(pod))
        self.assertEqual(definitions().definition_of(pod), "io.k8s.api.core.v1.Pod")

    def test_description(self) -> None:
        """The description of a field is the release's, and empty for unknown fields and types."""
        pod_ip = definitions().description("io.k8s.api.core.v1.PodStatus", "podIP")
        self.assertIn("IP address allocated to the pod", pod_ip)
        self.assertEqual(definitions().description("io.k8s.api.core.v1.PodStatus", "absent"), "")
        self.assertEqual(definitions().description("io.k8s.api.core.v1.Absent", "podIP"), "")
