"""Conformance with RFC 7541: HPACK as the server decodes it."""

from __future__ import annotations

from hpack import Encoder
from hypothesis import given
from hypothesis import strategies as st

from . import frames as h2
from .client import Http2Case

REQUEST = h2.block(h2.GET)


class DecodingTests(Http2Case):
    """Forms of fields."""

    def received(self, rest: bytes, *, before: bytes = b"", fields: bytes = REQUEST) -> dict[bytes, list[bytes]]:
        """Send a request with further encoded fields, and return the fields that the handler gets."""
        client = self.connect()
        if before:
            client.request(fields + before)
        self.assertEqual(client.request(fields + rest).status, 200)
        return self.requests[-1].fields

    def refuse(self, block: bytes) -> None:
        """Assert that a block is a compression error."""
        self.served.clear()
        client = self.connect()
        client.send(h2.headers(1, block))
        self.assert_connection_error(client, h2.COMPRESSION_ERROR)
        self.assertEqual(self.served, [])

    def test_static_table(self) -> None:
        """2.3.1, 6.1: Fields of the static table are known by their index."""
        client = self.connect()
        client.send(h2.headers(1, b"\x82\x84\x87" + b"\x41" + h2.string(b"x")))
        self.assertEqual(bytes(client.stream(1).data), b"GET / ")

    def test_index_beyond_table(self) -> None:
        """2.3.3: An index beyond the tables is a compression error."""
        for index in (62, 63, 127, 1000, 2**30):
            self.refuse(REQUEST + h2.indexed(index))
        self.refuse(REQUEST + h2.integer(70, 4) + h2.string(b"value"))
        self.refuse(REQUEST + h2.integer(70, 6, 0x40) + h2.string(b"value"))

    def test_index_zero(self) -> None:
        """6.1: Index 0 is a compression error."""
        self.refuse(REQUEST + b"\x80")

    def test_literals(self) -> None:
        """6.2: Literals are read in all three forms, and only one of them is added to the table."""
        for first in (0x00, 0x10, 0x40):
            self.assertEqual(self.received(h2.literal(b"x-a", b"value", first))[b"x-a"], [b"value"])
        self.assertEqual(self.received(b"\xbe", before=h2.literal(b"x-a", b"value", 0x40))[b"x-a"], [b"value"])
        for first in (0x00, 0x10):
            self.refuse(REQUEST + h2.literal(b"x-a", b"value", first) + h2.indexed(62))

    def test_indexed_name(self) -> None:
        """6.2: The name of a literal may be one of the dynamic table."""
        rest = h2.literal(b"x-a", b"one", 0x40) + h2.integer(62, 4) + h2.string(b"two")
        self.assertEqual(self.received(rest)[b"x-a"], [b"one", b"two"])

    def test_eviction(self) -> None:
        """4.4: A field that is larger than the table empties it."""
        client = self.connect()
        client.request(REQUEST + h2.literal(b"x-a", b"value", 0x40) + h2.literal(b"x-b", b"v" * 5000, 0x40))
        client.send(h2.headers(3, REQUEST + h2.indexed(62)))
        self.assert_connection_error(client, h2.COMPRESSION_ERROR)

    def test_size_update(self) -> None:
        """6.3: Updates of the size at the start of a block are applied, up to two of them."""
        for update in (h2.table_size(0), h2.table_size(0) + h2.table_size(4096), h2.table_size(100)):
            client = self.connect()
            client.request(REQUEST + h2.literal(b"x-a", b"v" * 100, 0x40))
            client.send(h2.headers(3, update + REQUEST + h2.indexed(62)))
            self.assert_connection_error(client, h2.COMPRESSION_ERROR)
        client = self.connect()
        client.request(REQUEST + h2.literal(b"x-a", b"value", 0x40))
        self.assertEqual(client.request(h2.table_size(100) + REQUEST + h2.indexed(62)).status, 200)

    def test_late_size_update(self) -> None:
        """4.2: An update of the size after a field is a compression error."""
        self.refuse(REQUEST + h2.table_size(100))
        self.refuse(h2.indexed(2) + h2.table_size(4096) + REQUEST)

    def test_size_above_setting(self) -> None:
        """6.3: An update above the server's SETTINGS_HEADER_TABLE_SIZE is a compression error."""
        limit = self.connect().server_settings.get(h2.HEADER_TABLE_SIZE, 4096)
        for size in (limit + 1, 2**31, 2**40):
            self.refuse(h2.table_size(size) + REQUEST)

    def test_huffman(self) -> None:
        """5.2: Strings may be Huffman coded."""
        encoder = Encoder()
        block = encoder.encode([*h2.GET, (b"x-a", bytes(range(33, 127)))], huffman=True)
        client = self.connect()
        self.assertEqual(client.request(block).status, 200)
        self.assertEqual(self.requests[0].fields[b"x-a"], [bytes(range(33, 127))])

    def test_huffman_padding(self) -> None:
        """5.2: Huffman padding of more than 7 bits, or that is not the start of EOS, is a compression error."""
        # "a" is 00011; then ones.
        self.assertEqual(self.received(b"\x00" + h2.string(b"x-a") + b"\x81\x1f")[b"x-a"], [b"a"])
        self.refuse(REQUEST + b"\x00" + h2.string(b"x-a") + b"\x82\x1f\xff")
        self.refuse(REQUEST + b"\x00" + h2.string(b"x-a") + b"\x81\x18")
        self.refuse(REQUEST + b"\x00" + h2.string(b"x-a") + b"\x81\xff")

    def test_huffman_eos(self) -> None:
        """5.2: A string that contains EOS is a compression error."""
        self.refuse(REQUEST + b"\x00" + h2.string(b"x-a") + b"\x84\xff\xff\xff\xff")
        self.refuse(REQUEST + b"\x00" + h2.string(b"x-a") + b"\x85\x1f\xff\xff\xff\xff")

    def test_truncated(self) -> None:
        """3.2: A block that ends inside a field is a compression error."""
        whole = REQUEST + h2.literal(b"x-name", b"a value", 0x40)
        for length in range(len(REQUEST) + 1, len(whole)):
            self.refuse(whole[:length])

    def test_long_integers(self) -> None:
        """5.1: An integer that is too large or has many leading zeros is a compression error."""
        for sent in (
            b"\xff" + b"\xff" * 12 + b"\x01",
            b"\xff" + b"\xff" * 1000 + b"\x01",
            b"\x00\x7f" + b"\xff" * 9 + b"\x01",
            b"\x00" + h2.string(b"x") + b"\x7f" + b"\xff" * 4000 + b"\x00",
            b"\x00" + h2.integer(2**30, 7) + b"x",
        ):
            self.refuse(REQUEST + sent)

    def test_cookies(self) -> None:
        """RFC 9113, 8.2.3: Pieces of a cookie are joined with a semicolon and a space."""
        fields = self.received(h2.literal(b"cookie", b"a=b") + h2.literal(b"cookie", b"c=d"))
        self.assertEqual(fields[b"cookie"], [b"a=b; c=d"])

    @given(
        lists=st.lists(
            st.lists(
                st.tuples(st.sampled_from([b"x-a", b"x-b", b"accept", b"user-agent"]), st.binary(max_size=40)),
                max_size=6,
            ),
            max_size=6,
        ),
        size=st.sampled_from([None, 0, 100, 4096]),
        huffman=st.booleans(),
    )
    def test_any_fields(self, lists: list[list[tuple[bytes, bytes]]], size: int | None, huffman: bool) -> None:
        """Fields arrive as another implementation has encoded them."""
        encoder = Encoder()
        client = self.connect()
        if size is not None:
            encoder.header_table_size = size
        for fields in lists:
            printable = [(name, bytes(33 + each % 90 for each in value)) for name, value in fields]
            self.assertEqual(client.request(encoder.encode([*h2.GET, *printable], huffman=huffman)).status, 200)
            received = self.requests[-1].fields
            for name in {name for name, _ in printable}:
                self.assertEqual(received[name], [value for other, value in printable if other == name])
