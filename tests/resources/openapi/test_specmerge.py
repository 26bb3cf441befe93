"""Tests for L{kubetwist.resources.openapi.specmerge}."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.jsonpieces import BadJSON
from kubetwist.api.resource import GroupVersion, JSONObject
from kubetwist.resources.openapi.specmerge import RemoteSpec, SpecMerge, pieces, read_v2
from kubetwist.resources.remotedocuments import BadDocument

LAMPS = GroupVersion("far.example.com", "v1")


KINDS = "x-kubernetes-group-version-kind"


def reference(name: str) -> JSONObject:
    """Return a schema that is a reference."""
    return {"$ref": f"#/definitions/{name}"}


def path(name: str, **more: Any) -> JSONObject:
    """Return a path item whose response is one definition."""
    return {"get": {"responses": {"200": {"description": "OK", "schema": reference(name)}}, **more}}


def document(paths: JSONObject, definitions: JSONObject | None = None, parameters: JSONObject | None = None) -> bytes:
    """Return a v2 document of an aggregated server."""
    return json.dumps(
        {"swagger": "2.0", "paths": paths, "definitions": definitions or {}, "parameters": parameters or {}}
    ).encode()


def read(paths: JSONObject, definitions: JSONObject | None = None, parameters: JSONObject | None = None) -> RemoteSpec:
    """Return the spec of one group-version in such a document."""
    return read_v2(document(paths, definitions, parameters), [LAMPS])[LAMPS]


NAMES = st.sampled_from("ABCD")


SCHEMAS = st.recursive(
    st.builds(lambda kind: {"type": kind}, st.sampled_from(["string", "integer"])) | st.builds(reference, NAMES),
    lambda inner: st.builds(
        lambda properties: {"properties": properties}, st.dictionaries(st.sampled_from("xy"), inner, max_size=2)
    ),
    max_leaves=4,
)


DEFINITIONS = st.fixed_dictionaries(dict.fromkeys("ABCD", SCHEMAS))


def expanded(schema: Any, definitions: Mapping[str, Any], depth: int) -> Any:
    """Return a schema with resolved references, to some depth."""
    if isinstance(schema, dict):
        target = schema.get("$ref")
        if isinstance(target, str):
            return expanded(definitions[target.rpartition("/")[2]], definitions, depth - 1) if depth else None
        return {name: expanded(value, definitions, depth) for name, value in schema.items()}
    return schema


class ReadingTests(SynchronousTestCase):
    """L{read_v2}."""

    def test_filtered(self) -> None:
        """Only paths below the path of the group-version are read, with everything that they refer to."""
        spec = read(
            {
                "/apis/far.example.com/v1/lamps": path("Lamp"),
                "/apis/far.example.com/v1beta1/lamps": path("Old"),
                "/apis/far.example.com/": path("Group"),
                "/api/v1/secrets": path("Secret"),
            },
            {
                "Lamp": {"properties": {"metadata": reference("Meta"), "other": reference("Lost")}},
                "Meta": {"properties": {"self": reference("Meta")}},
                "Old": {"type": "object"},
                "Group": {"type": "object"},
                "Secret": {"type": "object"},
            },
        )
        self.assertEqual(list(spec.paths), ["/apis/far.example.com/v1/lamps"])
        self.assertEqual(set(spec.definitions), {"Lamp", "Meta"})

    def test_unused(self) -> None:
        """Definitions without references are read as well, if there are paths."""
        definitions = {"Lamp": {}, "Alone": {"type": "object"}}
        self.assertIn("Alone", read({"/apis/far.example.com/v1/lamps": path("Lamp")}, definitions).definitions)
        self.assertEqual(read({"/apis/other/v1/lamps": path("Lamp")}, definitions), RemoteSpec({}, {}, {}))

    def test_parameters(self) -> None:
        """Referenced parameters are read with everything that they refer to."""
        uses = [{"$ref": "#/parameters/body"}]
        body = {"name": "body", "in": "body", "schema": reference("Lamp")}
        spec = read(
            {"/apis/far.example.com/v1/lamps": path("Lamps", parameters=uses)},
            {"Lamp": {}, "Lamps": {}},
            {"body": body, "unused": {"name": "q", "in": "query", "type": "string"}},
        )
        self.assertEqual(set(spec.parameters), {"body"})
        self.assertEqual(set(spec.definitions), {"Lamp", "Lamps"})

    def test_nothing(self) -> None:
        """A document without paths is empty."""
        self.assertEqual(read_v2(b'{"swagger": "2.0"}', [LAMPS]), {LAMPS: RemoteSpec({}, {}, {})})

    def test_garbage(self) -> None:
        """An invalid document is rejected."""
        item = b'{"paths":{"/apis/far.example.com/v1/x":%b}}'
        for body in (
            b"",
            b"{",
            b"[]",
            b"nonsense",
            b'{"paths":[]}',
            b'{"paths":{"a":1',
            b'{"a":"\xff"}',
            b'{"paths":{}} {}',
            b'{"a":' + b"[" * 500 + b"]" * 500 + b"}",
            item % b"1",
            item % b'{"get":[]}',
            item % b'{"get":{"parameters":[{"name":1}]}}',
            item % b'{"get":{"parameters":[{"in":{}}]}}',
            item % b'{"get":{"responses":{"200":{"schema":{"maximum":"much"}}}}}',
            b"{" + b" " * 9_000_000 + b"}",
            document({str(number): {} for number in range(20_001)}),
        ):
            with self.assertRaises((BadDocument, BadJSON), msg=body[:80]):
                read_v2(body, [LAMPS])


class MergingTests(SynchronousTestCase):
    """L{SpecMerge}."""

    def setUp(self) -> None:
        """Create a local document."""
        self.schemas: dict[str, JSONObject] = {
            "Meta": {"properties": {"name": {"type": "string"}}},
            "DeleteOptions": {"type": "object", KINDS: [{"group": "", "version": "v1", "kind": "DeleteOptions"}]},
        }
        self.parameters: dict[str, JSONObject] = {"pretty": {"name": "pretty", "in": "query", "type": "string"}}
        self.merge = SpecMerge(self.schemas, {"com.example.Custom"}, self.parameters, {"/apis/far.example.com/v1/ours"})

    def add(self, name: str, definitions: JSONObject, **parameters: JSONObject) -> JSONObject:
        """Merge a document with one path, and return the path item after the merge."""
        where = f"/apis/far.example.com/v1/{name}"
        uses = [{"$ref": f"#/parameters/{one}"} for one in parameters]
        self.merge.add(read({where: path("Lamp", **({"parameters": uses} if uses else {}))}, definitions, parameters))
        found: JSONObject = json.loads(self.merge.paths[where])["get"]
        return found

    def definition(self, name: str) -> Any:
        """Return a definition of the merged document."""
        return json.loads(self.merge.definitions[name])

    def test_same(self) -> None:
        """A definition that exists in both documents is not duplicated."""
        lamp = {"properties": {"metadata": reference("Meta")}}
        self.add("lamps", {"Lamp": lamp, "Meta": self.schemas["Meta"]})
        self.assertEqual(set(self.merge.definitions), {"Lamp"})
        self.assertEqual(self.definition("Lamp"), lamp)

    def test_renamed(self) -> None:
        """A different definition of the same name gets a numbered name, and all references to it are renamed."""
        other = {"properties": {"name": {"type": "integer"}}}
        self.add("lamps", {"Lamp": {"properties": {"metadata": reference("Meta")}}, "Meta": other})
        self.assertEqual(self.definition("Meta_v2"), other)
        self.assertEqual(self.definition("Lamp"), {"properties": {"metadata": reference("Meta_v2")}})
        self.assertEqual(self.schemas["Meta"], {"properties": {"name": {"type": "string"}}})

    def test_renamed_once(self) -> None:
        """An equal renamed definition of two documents is added once."""
        other = {"properties": {"name": {"type": "integer"}, "inner": reference("Meta")}}
        definitions = {"Lamp": {"properties": {"metadata": reference("Meta")}}, "Meta": other}
        self.add("lamps", definitions)
        self.assertEqual(self.add("chairs", definitions)["responses"]["200"]["schema"], reference("Lamp"))
        self.assertEqual(set(self.merge.definitions), {"Lamp", "Meta_v2"})

    def test_reserved_names(self) -> None:
        """Names of custom resources, and names within the same document, are not used for renaming."""
        self.add("lamps", {"Lamp": reference("com.example.Custom"), "com.example.Custom": {}})
        self.assertIn("com.example.Custom_v2", self.merge.definitions)
        lamp = {"properties": {"a": reference("Meta"), "b": reference("Meta_v2")}}
        self.add("chairs", {"Lamp": lamp, "Meta": {"type": "string"}, "Meta_v2": {"type": "integer"}})
        self.assertEqual(self.definition("Meta_v3"), {"type": "string"})
        self.assertEqual(self.definition("Meta_v2"), {"type": "integer"})

    def test_equal_text(self) -> None:
        """A definition with equal text whose references have different targets is not shared."""
        self.schemas["Outer"] = {"properties": {"inner": reference("Meta")}}
        lamp = {"properties": {"outer": reference("Outer")}}
        self.add("lamps", {"Lamp": lamp, "Outer": dict(self.schemas["Outer"]), "Meta": {"type": "integer"}})
        self.assertEqual(self.definition("Lamp"), {"properties": {"outer": reference("Outer_v2")}})
        self.assertEqual(self.definition("Outer_v2"), {"properties": {"inner": reference("Meta_v2")}})

    def test_long_chain(self) -> None:
        """A difference at the end of a long chain of references renames all definitions of the chain."""
        length = 300
        chain = {f"D{number}": reference(f"D{number + 1}") for number in range(length)}
        self.add("lamps", {"Lamp": reference("D0"), **chain, f"D{length}": {"type": "string"}})
        theirs = {"Lamp": reference("D0"), **chain, f"D{length}": {"type": "integer"}}
        answer = self.add("chairs", theirs)["responses"]["200"]["schema"]
        merged = {name: json.loads(text) for name, text in self.merge.definitions.items()}
        self.assertEqual(expanded(answer, merged, length + 2), {"type": "integer"})
        self.assertEqual(expanded(reference("Lamp"), merged, length + 2), {"type": "string"})

    def test_kinds(self) -> None:
        """A definition that belongs to kinds of both documents lists the kinds of both, sorted."""
        theirs = {"group": LAMPS.group, "version": "v1", "kind": "DeleteOptions"}
        before = self.schemas["DeleteOptions"]
        self.add("lamps", {"Lamp": reference("DeleteOptions"), "DeleteOptions": {"type": "object", KINDS: [theirs]}})
        self.assertEqual(self.schemas["DeleteOptions"][KINDS], [*before[KINDS], theirs])
        self.assertEqual(len(before[KINDS]), 1)
        self.assertNotIn("DeleteOptions", self.merge.definitions)

    def test_kinds_of_two_servers(self) -> None:
        """The kinds of a definition that only aggregated servers have are merged, too."""
        kinds = [{"group": f"{letter}.example.com", "version": "v1", "kind": "Lamp"} for letter in "ba"]
        self.add("lamps", {"Lamp": {KINDS: kinds[:1]}})
        self.add("chairs", {"Lamp": {KINDS: kinds[1:]}})
        self.assertEqual(self.definition("Lamp")[KINDS], kinds[::-1])

    def test_extensions(self) -> None:
        """Extensions are kept."""
        lamp = {"x-kubernetes-preserve-unknown-fields": True, KINDS: [{"group": "", "version": "v1", "kind": "Lamp"}]}
        self.add("lamps", {"Lamp": lamp})
        self.assertEqual(self.definition("Lamp"), lamp)

    def test_parameters(self) -> None:
        """Parameters of the same name are renamed if they differ."""
        same = dict(self.parameters["pretty"])
        self.assertEqual(self.add("a", {"Lamp": {}}, pretty=same)["parameters"], [{"$ref": "#/parameters/pretty"}])
        other = {"name": "pretty", "in": "query", "type": "boolean"}
        self.assertEqual(self.add("b", {"Lamp": {}}, pretty=other)["parameters"], [{"$ref": "#/parameters/pretty_v2"}])
        self.assertEqual(self.parameters["pretty_v2"], other)

    def test_existing_paths(self) -> None:
        """A path that is local or merged already is not replaced."""
        self.merge.add(read({"/apis/far.example.com/v1/ours": path("Lamp")}, {"Lamp": {}}))
        self.assertEqual((self.merge.paths, self.merge.definitions), ({}, {}))
        before = self.add("lamps", {"Lamp": {"type": "string"}})
        self.assertEqual(self.add("lamps", {"Lamp": {"type": "integer"}}), before)


class PropertyTests(SynchronousTestCase):
    """Properties of arbitrary documents."""

    @given(ours=DEFINITIONS, remote_documents=st.lists(DEFINITIONS, min_size=1, max_size=3))
    def test_meaning(self, ours: dict[str, JSONObject], remote_documents: list[dict[str, JSONObject]]) -> None:
        """Renaming changes the meaning neither of merged paths nor of local definitions."""
        schemas = deepcopy(ours)
        merge = SpecMerge(schemas, (), {}, ())
        for number, theirs in enumerate(remote_documents):
            where = f"/apis/far.example.com/v1/{number}"
            merge.add(read({where: path("A")}, theirs))
        merged = {**schemas, **{name: json.loads(text) for name, text in merge.definitions.items()}}
        for number, theirs in enumerate(remote_documents):
            answer = json.loads(merge.paths[f"/apis/far.example.com/v1/{number}"])["get"]["responses"]["200"]["schema"]
            self.assertEqual(expanded(answer, merged, 8), expanded(reference("A"), theirs, 8))
        self.assertEqual({name: merged[name] for name in ours}, ours)

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=3),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(
                        [
                            "/apis/far.example.com/v1/x",
                            "get",
                            "parameters",
                            "responses",
                            "200",
                            "schema",
                            "$ref",
                            "in",
                            "properties",
                            "x-a",
                            "type",
                            "items",
                        ]
                    ),
                    inner,
                    max_size=4,
                )
            ),
            max_leaves=20,
        ),
        st.dictionaries(NAMES, SCHEMAS),
    )
    def test_anything(self, paths: Any, definitions: JSONObject) -> None:
        """Any document is either rejected or can be merged."""
        with contextlib.suppress(BadDocument, BadJSON):
            spec = read(paths, definitions)
            merge = SpecMerge({"A": {}}, (), {}, ())
            merge.add(spec)
            json.loads(b"{%b}" % pieces(merge.paths))
            json.loads(b"{%b}" % pieces(merge.definitions))
