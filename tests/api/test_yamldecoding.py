"""Tests for L{kubetwist.api._yamldecoding}."""

from __future__ import annotations

from typing import Any

import orjson
import yaml
from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.decoding import MAX_DEPTH, BodyError, decode_yaml

from .strategies import documents


class YAMLTests(SynchronousTestCase):
    """Tests for YAML as go-yaml and the conversion to JSON decode it."""

    def assert_rejected(self, data: bytes, message: str) -> None:
        """Check that a document is rejected with a message."""
        error = self.assertRaises(BodyError, decode_yaml, data)
        self.assertEqual((str(error), error.as_body_of_object()), (message, message))

    def assert_read(self, data: str, value: Any) -> None:
        """Check the value that a document is decoded to, including types and order."""
        decoded = decode_yaml(data.encode()).value
        self.assertEqual(orjson.dumps(decoded), orjson.dumps(value))

    def test_scalars(self) -> None:
        """Plain scalars have the types of YAML 1.1 and Go; quoted ones are strings."""
        for text, value in {
            "yes": True,
            "Y": True,
            "off": False,
            "n": False,
            "'yes'": "yes",
            "~": None,
            "": None,
            "null": None,
            "nULL": "nULL",
            "12": 12,
            "1_0": 10,
            "0x1F": 31,
            "0b11": 3,
            "0o17": 15,
            "017": 15,
            "08": 8,
            "-0": 0,
            "+3": 3,
            "3.0": 3,
            ".5": 0.5,
            "1e3": 1000,
            "1e400": "1e400",
            "18446744073709551615": 18446744073709551615,
            "1:30": "1:30",
            "2024-01-01": "2024-01-01",
            "2024-01-01T00:00:00Z": "2024-01-01T00:00:00Z",
            "!!str 12": "12",
            '!!int "3"': 3,
            "!!binary aGk=": "hi",
            "!mine x": "x",
            "| \n  a\n  b\n": "a\nb\n",
            "=": "=",
            "<<": "<<",
        }.items():
            self.assert_read(f"k: {text}", {"k": value})

    def test_keys(self) -> None:
        """Keys of any scalar type become strings."""
        self.assert_read(
            "1: a\ntrue: b\n2.5: c\n2024-01-01: d\ny: e\n1e10: f\n1.5e-7: g\n0.1: h\n",
            {
                "1": "a",
                "true": "e",
                "2.5": "c",
                "2024-01-01": "d",
                "1e+10": "f",
                "1.5e-07": "g",
                "0.1": "h",
            },
        )
        for text, shown in (
            (b"? [a, 1]\n: b", '[]interface {}{"a", 1}'),
            (b"? {}\n: b", "map[interface {}]interface {}{}"),
            (
                b"a:\n  ? {2: {x: [~, 1e6]}, <<: {s: z}}\n  : b",
                'map[interface {}]interface {}{"s":"z", '
                '2:map[interface {}]interface {}{"x":[]interface {}{interface {}(nil), 1e+06}}}',
            ),
        ):
            self.assert_rejected(text, f"yaml: invalid map key: {shown}")
        for text, shown in (
            (b"~: b", '"b"'),
            (b"a: {~: }", "<nil>"),
            (b"~: [{a: 1}]", '[]interface {}{map[interface {}]interface {}{"a":1}}'),
        ):
            self.assert_rejected(text, f"unsupported map key of type: %!s(<nil>), key: <nil>, value: {shown}")
        self.assert_rejected(b"~: b\n'", "yaml: line 2: found unexpected end of stream")

    def test_documents(self) -> None:
        """Only the first document counts; an empty stream is null."""
        self.assert_read("a: 1\n---\na: 2\n", {"a": 1})
        self.assert_read("a: 1\n...\n%%% not even YAML", {"a": 1})
        self.assert_read("", None)
        self.assert_read("# nothing\n", None)
        self.assert_read("\ufeffa: 1", {"a": 1})

    def test_errors(self) -> None:
        """Errors have go-yaml's messages and lines."""
        for data, message in {
            b"a: b\nc:\n\td: e\n": "yaml: line 3: found character that cannot start any token",
            b"a: b\nc: {d: e\n": "yaml: line 2: did not find expected ',' or '}'",
            b"a: @b": "yaml: found character that cannot start any token",
            b"a: *b": "yaml: unknown anchor 'b' referenced",
            b"a: &b [*b]": "yaml: anchor 'b' value contains itself",
            b"\xff": "yaml: invalid leading UTF-8 octet",
            b"a: \x01": "yaml: control characters are not allowed",
            b"!!int x": "yaml: cannot decode !!str `x` as a !!int",
            b"!!binary '*'": "yaml: !!binary value contains invalid base64 data",
            b"a: .inf": "json: unsupported value: +Inf",
            b"<<: 1": "yaml: map merge requires map or sequence of maps as the value",
        }.items():
            self.assert_rejected(data, message)

    def test_duplicate_keys(self) -> None:
        """The last duplicate wins, and all are reported in one message, with their lines."""
        decoded = decode_yaml(b"a: 1\nb: {c: 1, c: 2}\na:\n  d: 3\n")
        self.assertEqual(decoded.value, {"a": {"d": 3}, "b": {"c": 2}})
        text = 'yaml: unmarshal errors:\n  line 2: key "c" already set in map\n  line 4: key "a" already set in map'
        self.assertEqual(decoded.duplicates, [text])

    def test_aliases(self) -> None:
        """An alias becomes a copy of its value."""
        value = decode_yaml(b"a: &x {l: [1]}\nb: *x\nc: &y text\nd: *y\n").value
        self.assertEqual(value, {"a": {"l": [1]}, "b": {"l": [1]}, "c": "text", "d": "text"})
        value["a"]["l"].append(2)
        self.assertEqual(value["b"], {"l": [1]})

    def test_merge_keys(self) -> None:
        """Merged keys are applied in document order."""
        self.assert_read("x: &x {a: 1, b: 2}\nz:\n  <<: *x\n  b: 3\n", {"x": {"a": 1, "b": 2}, "z": {"a": 1, "b": 3}})
        self.assert_read("<<: [{a: 1}, {a: 2, b: 3}]", {"a": 1, "b": 3})

    def test_cve_2019_11253_bomb(self) -> None:
        """Nested aliases are rejected before they are expanded."""
        lines = [b"a: &a [x,x,x,x,x,x,x,x,x]"]
        for one, before in zip(b"bcdefghi", b"abcdefgh", strict=True):
            lines.append(b"%c: &%c [%s]" % (one, one, b",".join([b"*%c" % before] * 9)))
        self.assert_rejected(b"\n".join(lines), "yaml: document contains excessive aliasing")

    def test_long_text_bomb(self) -> None:
        """A few aliases of a long text are rejected, too."""
        data = b"a: &a " + b"x" * 100_000 + b"\nb: [" + b",".join([b"*a"] * 100) + b"]"
        self.assert_rejected(data, "yaml: document contains excessive aliasing")

    def test_merge_bomb(self) -> None:
        """Merge keys cannot multiply either."""
        data = b"a: &a {" + b",".join(b"k%d: 1" % number for number in range(2000)) + b"}\nb:\n"
        data += b"- <<: *a\n" * 2000
        self.assert_rejected(data, "yaml: document contains excessive aliasing")

    def test_depth(self) -> None:
        """Nesting is limited, through aliases as well."""
        decode_yaml(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
        message = f"yaml: exceeded max depth of {MAX_DEPTH}"
        self.assert_rejected(b"[" * (MAX_DEPTH + 1), message)
        self.assert_rejected(b"- " * (MAX_DEPTH + 1), message)
        half = MAX_DEPTH // 2 + 1
        self.assert_rejected(
            b"- &a " + b"[" * half + b"]" * half + b"\n- " + b"[" * half + b"*a" + b"]" * half, message
        )

    def test_too_many_values(self) -> None:
        """Documents with too many values are rejected."""
        self.assert_rejected(b"[" + b"a," * 450_000 + b"]", "yaml: document has too many values")

    @given(documents)
    def test_json_is_yaml(self, document: Any) -> None:
        """JSON is decoded to the same value as YAML, except for floats without a fraction."""
        dumped = yaml.safe_dump(document, allow_unicode=False).encode()
        try:
            value = decode_yaml(dumped).value
        except BodyError as error:
            # PyYAML writes characters that libyaml rejects, and null keys.
            self.assertFalse(str(error).startswith("yaml: line 1"), error)
            return
        self.assertEqual(value is None, document is None)

    @given(st.binary() | st.text(st.sampled_from("ab:-?[]{},&*!|>'\"%@# \n<0.")).map(str.encode))
    def test_any_bytes(self, data: bytes) -> None:
        """Bytes are decoded to a value that JSON can represent, or rejected with a message."""
        try:
            decoded = decode_yaml(data)
        except BodyError as error:
            self.assertNotEqual(str(error), "")
        else:
            orjson.dumps(decoded.value)
