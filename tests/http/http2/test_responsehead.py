"""Tests of L{kubetwist.http.http2.responsehead}, with the library hpack as decoder."""

from __future__ import annotations

from hpack import Decoder
from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.fields import FieldLines
from kubetwist.http.http2.responsehead import NO_TABLE, complete_block, encode_block
from kubetwist.http.request import KubeRequest

from ..harness import make_site
from .peer import Peer

_NAMES = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=200).map(str.encode)


def decoded(block: bytes) -> list[tuple[bytes, bytes]]:
    """Decode a block with a new decoder, which has an empty table."""
    return [(bytes(field[0]), bytes(field[1])) for field in Decoder(1 << 20).decode(block, raw=True)]


class BlockTests(SynchronousTestCase):
    """Header blocks."""

    @given(st.sampled_from((200, 201, 204, 404, 409, 500)), st.lists(st.tuples(_NAMES, st.binary(max_size=400))))
    def test_any(self, code: int, fields: list[tuple[bytes, bytes]]) -> None:
        """A block decodes to the status and the fields, without the fields of a connection."""
        kept = [(name, value) for name, value in fields if name not in (b"connection", b"upgrade", b"keep-alive")]
        self.assertEqual(decoded(encode_block(code, fields)), [(b":status", b"%d" % code), *kept])

    def test_connection(self) -> None:
        """Names are in lower case, and fields of HTTP/1.1 are omitted."""
        fields = [(b"Connection", b"close"), (b"Transfer-Encoding", b"chunked"), (b"Content-Type", b"text/plain")]
        self.assertEqual(decoded(encode_block(200, fields)), [(b":status", b"200"), (b"content-type", b"text/plain")])

    def test_no_table(self) -> None:
        """Nothing is added to the table of the client, which the first block announces."""
        decoder = Decoder()
        decoder.decode(NO_TABLE + encode_block(200, [(b"x-a", b"b"), (b"etag", b"c"), (b"set-cookie", b"d")]))
        self.assertEqual((list(decoder.header_table.dynamic_entries), decoder.header_table_size), ([], 0))

    def test_same(self) -> None:
        """The fast form of usual responses has the same fields as the general form."""
        site = make_site(lambda request: None)
        peer = Peer(site)
        blocks = []
        for more in (False, True):
            stream_id = peer.begin()
            request = peer.server.streams[stream_id].request
            assert isinstance(request, KubeRequest)
            request.audit_id, request.cache_control, request.code = "1234", b"no-cache, private", 201
            request.apf_headers = FieldLines([(b"X-Kubernetes-PF-FlowSchema-UID", b"5")])
            if more:
                request.setHeader(b"X-More", b"6")
            blocks.append(sorted(decoded(complete_block(request, 12345, b"application/json"))))
        self.assertEqual(sorted([*blocks[0], (b"x-more", b"6")]), blocks[1])
        self.assertIn((b"content-length", b"12345"), blocks[0])
        self.assertIn((b"x-kubernetes-pf-flowschema-uid", b"5"), blocks[0])
