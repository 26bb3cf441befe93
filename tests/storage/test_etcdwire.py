"""Tests for L{kubetwist.storage.etcdwire} and what else of the store in etcd is pure."""

from __future__ import annotations

from base64 import b64encode
from itertools import pairwise
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st
from txaioetcd import Header, KeyValue, Range

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.storage.errors import KeyExists, KeyNotFound, RevisionConflict, StorageUnavailable
from kubetwist.storage.etcdcommit import refusal, transaction_of
from kubetwist.storage.etcdcompaction import compacted_to
from kubetwist.storage.etcdhttp import Address
from kubetwist.storage.etcdwire import (
    MOST_HEAD,
    UNAVAILABLE,
    BadAnswer,
    Change,
    GatewayError,
    LineSplitter,
    ResponseReader,
    header_revision,
    key_bytes,
    key_text,
    parse_error,
    parse_message,
    stored_values,
)
from kubetwist.storage.values import Write


def text(data: bytes) -> str:
    """Bytes in base64."""
    return b64encode(data).decode()


@st.composite
def answers(draw: Any) -> tuple[bytes, bytes]:
    """An answer as it goes over the wire, and its body."""
    body = draw(st.binary(max_size=300))
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    if draw(st.booleans()):
        return b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body), body
    chunks, left = [], body
    while left:
        size = draw(st.integers(1, len(left)))
        chunks.append(b"%x\r\n%b\r\n" % (size, left[:size]))
        left = left[size:]
    trailer = draw(st.sampled_from([b"", b"Grpc-Trailer-Content-Type: application/grpc\r\n"]))
    return b"%bTransfer-Encoding: chunked\r\n\r\n%b0\r\n%b\r\n" % (head, b"".join(chunks), trailer), body


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Some data in pieces."""
    marks = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[begin:end] for begin, end in pairwise(marks)]


class ResponseReaderTests(SynchronousTestCase):
    """L{ResponseReader} reads answers of HTTP/1.1."""

    @given(answers(), st.lists(st.integers(0, 2000), max_size=20))
    def test_pieces(self, answer: tuple[bytes, bytes], places: list[int]) -> None:
        """An answer is the same in whatever pieces it comes."""
        data, body = answer
        reader = ResponseReader()
        found = b""
        for piece in cut(data, places):
            self.assertFalse(reader.done)
            found += reader.feed(piece)
        self.assertEqual((reader.status, reader.done, reader.keep_alive, found), (200, True, True, body))

    def test_end_by_close(self) -> None:
        """An answer without a length goes on until the connection is closed."""
        reader = ResponseReader()
        self.assertEqual(reader.feed(b"HTTP/1.0 503 No\r\n\r\nso"), b"so")
        self.assertEqual((reader.done, reader.keep_alive), (False, False))
        self.assertTrue(reader.lost())
        short = ResponseReader()
        short.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nso")
        self.assertFalse(short.lost())

    def test_last_of_connection(self) -> None:
        """A server may say that it will close the connection."""
        reader = ResponseReader()
        reader.feed(b"HTTP/1.1 204 Empty\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n")
        self.assertEqual((reader.status, reader.done, reader.keep_alive), (204, True, False))

    def test_nonsense(self) -> None:
        """What is no answer of HTTP/1.1 is refused, also if it never ends."""
        head = b"HTTP/1.1 200 OK\r\n"
        for data in (
            b"SSH-2.0-x\r\n\r\n",
            b"\x15\x03\x01\x00\x02\x02\x16\r\n\r\n",
            head + b"Content-Length: many\r\n\r\n",
            head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
            head + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
            head + b"Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
            head + b"Content-Length: 1\r\n\r\nab",
            b"H" * (MOST_HEAD + 1),
        ):
            with self.assertRaises(BadAnswer):
                ResponseReader().feed(data)


class LineSplitterTests(SynchronousTestCase):
    """L{LineSplitter} finds the lines of a stream."""

    @given(st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"_"))), st.lists(st.integers(0, 500)))
    def test_pieces(self, lines: list[bytes], places: list[int]) -> None:
        """Lines are the same in whatever pieces they come; what has no end yet waits."""
        splitter = LineSplitter()
        found = []
        for piece in cut(b"".join(line + b"\n" for line in lines) + b"rest", places):
            found += splitter.feed(piece)
        self.assertEqual(found, [line for line in lines if line])
        self.assertEqual(splitter.feed(b"\n"), [b"rest"])


class ParsingTests(SynchronousTestCase):
    """What the gateway sends."""

    def test_events(self) -> None:
        """Events tell what is there now, since when, and whether something was there before."""
        header = {"revision": "9"}
        put = {"kv": {"key": text(b"/a"), "value": text(b"v"), "create_revision": "7", "mod_revision": "7"}}
        change = {"kv": {"key": text(b"/a"), "create_revision": "7", "mod_revision": "8"}}
        gone = {"type": "DELETE", "kv": {"key": text(b"/\xff"), "mod_revision": "9"}}
        message = parse_message(orjson.dumps({"result": {"header": header, "events": [put, change, gone]}}))
        self.assertEqual(message.revision, 9)
        self.assertEqual(
            message.changes,
            [
                Change("/a", b"v", 7, True),
                Change("/a", b"", 8, False),
                Change(key_text(b"/\xff"), None, 9, False),
            ],
        )
        self.assertEqual(key_bytes(message.changes[2].key), b"/\xff")

    def test_ends(self) -> None:
        """A watch may be canceled, for asking for what is forgotten, or fail as a whole."""
        canceled = parse_message(b'{"result":{"header":{},"canceled":true,"compact_revision":"5"}}')
        self.assertEqual((canceled.canceled, canceled.compacted), (True, 5))
        with self.assertRaises(GatewayError) as caught:
            parse_message(b'{"error":{"grpc_code":14,"http_code":503,"message":"etcdserver: no leader"}}')
        self.assertEqual((caught.exception.code, str(caught.exception)), (UNAVAILABLE, "etcdserver: no leader"))

    def test_nonsense(self) -> None:
        """What is no message of a watch is refused, whatever it is."""
        for line in (b"{", b"[]", b"{}", b'{"result":{"events":[{}]}}', b'{"result":{"events":[{"kv":{"key":"*"}}]}}'):
            with self.assertRaises(BadAnswer):
                parse_message(line)
        with self.assertRaises(BadAnswer):
            stored_values({"kvs": [{"value": ""}]})
        with self.assertRaises(BadAnswer):
            header_revision({"header": {"revision": "x"}})

    def test_errors(self) -> None:
        """Errors tell whether a write that met them may have been done nevertheless."""
        for status, body, uncertain in (
            (400, b'{"error":"etcdserver: request is too large","code":3}', False),
            (429, b'{"message":"etcdserver: too many requests","code":8}', False),
            (503, b'{"error":"etcdserver: request timed out","code":14}', True),
            (500, b'{"error":"?","code":2}', True),
            (502, b"<html>", True),
            (404, b"Not Found", False),
        ):
            self.assertEqual(parse_error(status, body).uncertain, uncertain, body)
        self.assertEqual(str(parse_error(502, b"")), "etcd answers 502")

    def test_compacted_to(self) -> None:
        """What kube-apiserver's key says is a number, or nothing."""
        self.assertEqual([compacted_to(value) for value in (b"12", b"", b"x", None, b"9" * 40)], [12, 0, 0, 0, 0])


class TransactionTests(SynchronousTestCase):
    """What is asked of etcd for a write, and what is made of a refusal."""

    def test_comparisons(self) -> None:
        """Whatever a write expects is compared; what is deleted must be there."""
        writes = [Write("/new", b"n", 0), Write("/old", None, None), Write("/any", b"a", None), Write("/at", b"a", 5)]
        asked = transaction_of(writes, lambda write: None)._marshal()
        self.assertEqual(
            [(one["key"], one["target"], one["result"], one.get("mod_revision")) for one in asked["compare"]],
            [
                (text(b"/new"), "MOD", "EQUAL", 0),
                (text(b"/old"), "VERSION", "GREATER", None),
                (text(b"/at"), "MOD", "EQUAL", 5),
            ],
        )
        self.assertEqual([next(iter(one)) for one in asked["success"]][1], "request_delete_range")
        self.assertEqual(len(asked["failure"]), 4)

    def test_refusals(self) -> None:
        """The first write that is not as expected is named, with what is there instead."""

        def found(*revisions: int) -> list[Range]:
            header = Header(1, 9, 1, 1)
            return [
                Range([KeyValue(b"k", None, 1, revision, revision)] if revision else [], header, 1)
                for revision in revisions
            ]

        for write, there, kind in (
            (Write("/k", b"v", 0), 4, KeyExists),
            (Write("/k", None, 0), 4, KeyExists),
            (Write("/k", b"v", 3), 4, RevisionConflict),
            (Write("/k", None, 3), 4, RevisionConflict),
            (Write("/k", b"v", 3), 0, KeyNotFound),
            (Write("/k", None, None), 0, KeyNotFound),
            (Write("/k", b"v", 4), 4, StorageUnavailable),
        ):
            self.assertIsInstance(refusal([write], found(there), 9), kind)
        error = refusal([Write("/a", b"", 4), Write("/b", b"", 5)], found(4, 6), 9)
        self.assertEqual(str(error), "/b is at revision 6")


class AddressTests(SynchronousTestCase):
    """L{Address.parse} reads --etcd-servers."""

    def test_addresses(self) -> None:
        """Members have a scheme, a host and a port, of which two can be left out."""
        for url, expected in (
            ("http://127.0.0.1:2379", ("127.0.0.1", 2379, False, "127.0.0.1:2379")),
            ("https://etcd-0.example.com:2379/", ("etcd-0.example.com", 2379, True, "etcd-0.example.com:2379")),
            ("https://[fd00::1]:99", ("fd00::1", 99, True, "[fd00::1]:99")),
            ("etcd", ("etcd", 2379, False, "etcd:2379")),
        ):
            address = Address.parse(url)
            self.assertEqual((address.host, address.port, address.tls, address.authority), expected)

    def test_nonsense(self) -> None:
        """What is none is named."""
        for url in ("", "unix:///etcd.sock", "http://a/b", "http://a:b", "http://:1", "http://a?x"):
            with self.assertRaises(ValueError) as caught:
                Address.parse(url)
            self.assertIn(repr(url), str(caught.exception))
