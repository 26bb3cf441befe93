"""Tests for L{kubetwist.testing.recording.cassette}."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.testing.manifests import objects_of
from kubetwist.testing.recording.cassette import (
    Cassette,
    CassetteError,
    object_key,
    object_name,
    ordered_objects,
    parse,
    read,
    render,
    write,
)

texts = st.text(max_size=12) | st.sampled_from(["yes", "1", "null", "a\nb\n", " a\n\tb", "2020-01-01", "~", "é\x85x"])
names = st.text("abc-", min_size=1, max_size=4)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.builds(
    lambda kind, version, name, namespace, spec: {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "spec": spec,
    },
    st.sampled_from(["Namespace", "CustomResourceDefinition", "ConfigMap", "Widget"]),
    st.sampled_from(["v1", "apps/v1", "example.com/v1"]),
    names,
    st.sampled_from([""]) | names,
    values,
)


class OrderTests(SynchronousTestCase):
    """Tests for the order of objects, and for what is left out."""

    @given(st.lists(objects, max_size=6, unique_by=object_key), st.randoms())
    def test_deterministic(self, found: list[Any], random: Any) -> None:
        """The order of objects and of fields does not depend on the order in which they were seen."""
        shuffled = [dict(random.sample(list(obj.items()), len(obj))) for obj in found]
        random.shuffle(shuffled)
        first = render(Cassette(objects=ordered_objects(found)))
        self.assertEqual(render(Cassette(objects=ordered_objects(shuffled))), first)

    @given(st.lists(objects, max_size=6))
    def test_definitions_first(self, found: list[Any]) -> None:
        """Namespaces come first, then definitions of custom resources."""
        kinds = [obj["kind"] for obj in ordered_objects(found)]
        ranks = [{"Namespace": 0, "CustomResourceDefinition": 1}.get(kind, 2) for kind in kinds]
        self.assertEqual(ranks, sorted(ranks))

    def test_metadata(self) -> None:
        """Metadata of the recorded cluster is left out; UIDs remain where another object refers to them."""
        meta = {"resourceVersion": "5", "creationTimestamp": "t", "managedFields": [], "generation": 2, "labels": {}}
        owner = {"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "uid": "u1", **meta}}
        owned = {
            "apiVersion": "v1",
            "kind": "B",
            "metadata": {"name": "b", "uid": "u2", "ownerReferences": [{"uid": "u1"}], **meta},
        }
        self.assertEqual(
            [obj["metadata"] for obj in ordered_objects([owned, owner])],
            [
                {"name": "a", "uid": "u1", "labels": {}},
                {"name": "b", "ownerReferences": [{"uid": "u1"}], "labels": {}},
            ],
        )
        self.assertEqual(owner["metadata"]["resourceVersion"], "5")  # type: ignore[index] # a dictionary

    def test_name(self) -> None:
        """The name of an object has its kind, and its namespace if there is one."""
        obj: dict[str, Any] = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
        self.assertEqual(object_name(obj), "apps/v1 Deployment web")
        obj["metadata"]["namespace"] = "shop"
        self.assertEqual(object_name(obj), "apps/v1 Deployment shop/web")


class TextTests(SynchronousTestCase):
    """Tests for L{render}, L{parse}, L{read} and L{write}."""

    @given(
        st.builds(
            Cassette,
            version=st.sampled_from(["", "v1.36.2"]),
            objects=st.lists(objects, max_size=4).map(ordered_objects),
            writes=st.lists(texts, max_size=3).map(tuple),
            later=st.lists(texts, max_size=3).map(tuple),
            omitted=st.dictionaries(texts, texts, max_size=3),
        )
    )
    def test_round_trip(self, cassette: Cassette) -> None:
        """A cassette is read as it was written, and a loader of manifests finds the same objects."""
        text = render(cassette)
        self.assertEqual(parse(text), cassette)
        self.assertEqual(objects_of(text), list(cassette.objects))

    def test_other_types(self) -> None:
        """Texts that look like values of another type stay texts, also where parsers of YAML disagree."""
        labels = {
            f"a{number}": text for number, text in enumerate(("Y", "n", "on", "0o7", "1_000", "1e3", "~", "1:30"))
        }
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": labels}}
        self.assertEqual(objects_of(render(Cassette(objects=(obj,)))), [obj])

    def test_readable(self) -> None:
        """Texts of several lines are blocks, and there are no anchors."""
        labels = {"a": "b"}
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"labels": labels}, "data": {"x": "1\n2\n"}}
        text = render(Cassette(objects=({**obj, "spec": labels},)))
        self.assertIn("    x: |\n      1\n      2\n", text)
        self.assertNotIn("&", text)

    def test_release(self) -> None:
        """The release is the minor version of the cluster, if it is known."""
        for version, release in (("v1.36.2", "1.36"), ("v1.30.5-eks-123", "1.30"), ("", ""), ("v2.0", "")):
            self.assertEqual(Cassette(version=version).release, release)

    def test_malformed(self) -> None:
        """Other texts are refused with a reason."""
        for text, reason in (
            ("{", "not YAML"),
            ("[]", "the kind is not List"),
            ("kind: ConfigMap", "the kind is not List"),
            ("{kind: List, items: 5}", "items must be objects"),
            ("{kind: List, items: [{kind: A}]}", "items must be objects"),
            ("{kind: List, omitted: [a]}", "omitted must be a mapping"),
            ("{kind: List, writes: a}", "writes must be a list"),
        ):
            self.assertIn(reason, str(self.assertRaises(CassetteError, parse, text)))

    def test_files(self) -> None:
        """Files are replaced as a whole; errors name the file."""
        path = Path(self.mktemp()) / "deep" / "cassette.yaml"
        self.assertIn("No such file", str(self.assertRaises(CassetteError, read, path)))
        cassette = Cassette(version="v1.36.2")
        write(path, cassette)
        write(path, cassette)
        self.assertEqual(read(path), cassette)
        self.assertEqual([one.name for one in path.parent.iterdir()], ["cassette.yaml"])
        path.write_bytes(b"\xff")
        self.assertIn(f"{path}: not UTF-8", str(self.assertRaises(CassetteError, read, path)))
        self.assertIn("cannot write", str(self.assertRaises(CassetteError, write, path / "below", cassette)))
