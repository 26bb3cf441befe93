"""Tests for L{kubetwist.http.connection._records}: encryption, with connections of OpenSSL in memory."""

from __future__ import annotations

import contextlib

from OpenSSL import SSL

from twisted.internet.protocol import Factory, Protocol
from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.connection._records import RECORD, MethodEncryptor, RecordEncryptor, is_direct
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
