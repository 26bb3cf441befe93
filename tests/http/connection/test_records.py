"""Tests for L{kubetwist.http.connection._records}: encryption, with connections of OpenSSL in memory."""

from __future__ import annotations

import contextlib
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from OpenSSL import SSL

from twisted.internet.protocol import Factory, Protocol
from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.connection._records import RECORD, MethodEncryptor, RecordBoundaries, RecordEncryptor, is_direct
from kubetwist.http.connection.coalescingtls import CoalescingTLSFactory
from kubetwist.server.credentials.certificates import CertConfig, CertificateAuthority
from kubetwist.server.credentials.tlscontext import ServingContextFactory

PAIR = CertificateAuthority.make("test").issue(CertConfig("127.0.0.1", server=True))


def take(connection: SSL.Connection) -> bytes:
    """Return the encrypted data that a connection has produced."""
    with contextlib.suppress(SSL.WantReadError):
        return connection.bio_read(1 << 17)
    return b""


def connect(version: int) -> tuple[SSL.Connection, SSL.Connection]:
    """Return a server and a client whose handshake is complete."""
    server = SSL.Connection(ServingContextFactory(PAIR, "VersionTLS12").getContext(), None)
    server.set_accept_state()
    context = SSL.Context(SSL.TLS_METHOD)
    context.set_max_proto_version(version)
    client = SSL.Connection(context, None)
    client.set_connect_state()
    for _ in range(3):
        for one, other in ((client, server), (server, client)):
            with contextlib.suppress(SSL.WantReadError):
                one.do_handshake()
            if data := take(one):
                other.bio_write(data)
    return server, client


def received(client: SSL.Connection) -> bytes:
    """Return the decrypted data that a connection has received."""
    data = b""
    with contextlib.suppress(SSL.WantReadError):
        while True:
            data += client.recv(1 << 16)
    return data


class EncryptorTests(SynchronousTestCase):
    """Tests for L{RecordEncryptor} and L{MethodEncryptor}."""

    def test_round_trip(self) -> None:
        """A client decrypts data of any length up to a record, for both encryptors and versions of TLS."""
        for version in (SSL.TLS1_2_VERSION, SSL.TLS1_3_VERSION):
            for encryptor in (RecordEncryptor(), MethodEncryptor()):
                server, client = connect(version)
                prepared = encryptor.prepare(server)
                for size in (1, 1500, RECORD):
                    length, encrypted = encryptor.encrypt(prepared, b"x" * size)
                    client.bio_write(bytes(encrypted))
                    self.assertEqual((length, received(client)), (size, b"x" * size))

    def test_decryption(self) -> None:
        """Records of any length are decrypted, by both encryptors and versions of TLS."""
        for version in (SSL.TLS1_2_VERSION, SSL.TLS1_3_VERSION):
            for encryptor in (RecordEncryptor(), MethodEncryptor()):
                server, client = connect(version)
                prepared = encryptor.prepare(server)
                for size in (1, 1500, RECORD):
                    client.send(b"x" * size)
                    self.assertEqual(encryptor.decrypt(prepared, take(client)), b"x" * size)

    def test_undecryptable(self) -> None:
        """A part of a record, a damaged one and the end of the connection raise the errors of pyOpenSSL."""
        for encryptor in (RecordEncryptor(), MethodEncryptor()):
            server, client = connect(SSL.TLS1_3_VERSION)
            prepared = encryptor.prepare(server)
            client.send(b"data")
            record = take(client)
            self.assertRaises(SSL.WantReadError, encryptor.decrypt, prepared, record[:10])
            self.assertEqual(encryptor.decrypt(prepared, record[10:]), b"data")
            client.shutdown()
            self.assertRaises(SSL.ZeroReturnError, encryptor.decrypt, prepared, take(client))
            server, client = connect(SSL.TLS1_3_VERSION)
            client.send(b"data")
            damaged = take(client)[:-1] + b"x"
            self.assertRaises(SSL.Error, encryptor.decrypt, encryptor.prepare(server), damaged)

    def test_several_connections(self) -> None:
        """The connections of an encryptor do not mix their data."""
        encryptor = RecordEncryptor()
        pairs = [connect(SSL.TLS1_3_VERSION) for _ in range(3)]
        for number in range(20):
            server, client = pairs[number % 3]
            _, encrypted = encryptor.encrypt(encryptor.prepare(server), b"%d" % number)
            client.bio_write(bytes(encrypted))
            self.assertEqual(received(client), b"%d" % number)

    def test_closed(self) -> None:
        """Encryption for a connection that was shut down raises the error of pyOpenSSL."""
        for encryptor in (RecordEncryptor(), MethodEncryptor()):
            server, _ = connect(SSL.TLS1_3_VERSION)
            server.shutdown()
            self.assertRaises(SSL.Error, encryptor.encrypt, encryptor.prepare(server), b"late")

    def test_unfinished_handshake(self) -> None:
        """Encryption before the end of the handshake raises L{SSL.WantReadError}."""
        for encryptor in (RecordEncryptor(), MethodEncryptor()):
            server = SSL.Connection(ServingContextFactory(PAIR, "VersionTLS12").getContext(), None)
            server.set_accept_state()
            self.assertRaises(SSL.WantReadError, encryptor.encrypt, encryptor.prepare(server), b"early")

    def test_choice(self) -> None:
        """A factory has one encryptor for all connections of pyOpenSSL, and uses different ones by their methods."""
        context = ServingContextFactory(PAIR, "VersionTLS12")
        factory = CoalescingTLSFactory(context, Factory.forProtocol(Protocol), MemoryReactorClock())
        server, client = connect(SSL.TLS1_3_VERSION)
        first = factory.encryptor_for(server)
        self.assertIsInstance(first, RecordEncryptor)
        self.assertIs(factory.encryptor_for(client), first)
        self.assertIs(type(factory.encryptor_for(object())), MethodEncryptor)

    def test_internal_names(self) -> None:
        """Without an internal name of pyOpenSSL, connections are used by their methods."""
        server, _ = connect(SSL.TLS1_3_VERSION)
        self.assertTrue(is_direct(server))
        del server._from_ssl  # type: ignore[attr-defined]
        self.assertFalse(is_direct(server))


def record(size: int, kind: int = 23) -> bytes:
    """Return a record of TLS with some content."""
    return bytes([kind, 3, 3]) + size.to_bytes(2, "big") + b"x" * size


#: Data that are cut into pieces somewhere.
pieces = st.tuples(st.lists(st.integers(0, 700), min_size=1, max_size=6), st.sets(st.integers(0, 3000), max_size=8))


class RecordBoundariesTests(SynchronousTestCase):
    """L{RecordBoundaries}."""

    @given(pieces)
    def test_pieces(self, example: tuple[list[int], set[int]]) -> None:
        """Exactly the pieces that begin and end with the same record are whole records."""
        sizes, cuts = example
        stream = b"".join(map(record, sizes))
        ends = {0}
        for size in sizes:
            ends.add(max(ends) + 5 + size)
        places = sorted({0, len(stream), *ends, *(cut for cut in cuts if cut < len(stream))} - {-1})
        # Some records are whole, some are in pieces, and some pieces have several.
        places = [place for index, place in enumerate(places) if index % 3 or place in (0, len(stream))]
        boundaries, ordered = RecordBoundaries(), sorted(ends)
        for start, end in pairwise(places):
            whole = start in ends and ordered[ordered.index(start) + 1] == end and end - start > 5
            self.assertIs(boundaries.received(stream[start:end]), whole, (start, end))

    def test_other_records(self) -> None:
        """Records of TLS itself are not whole records of the application, and data without TLS never are."""
        boundaries = RecordBoundaries()
        self.assertFalse(boundaries.received(record(7, 22)))
        self.assertTrue(boundaries.received(record(7)))
        self.assertFalse(boundaries.received(b"GET / HTTP/1.1"))
        self.assertFalse(boundaries.received(record(7)))
