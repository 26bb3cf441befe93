"""Tests for L{kubetwist.storage.etcd._storage} after the loss of connections and members, with a real etcd."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from signal import SIGCONT, SIGSTOP, SIGTERM
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from txaioetcd import Transaction

from twisted.internet.defer import Deferred, fail, maybeDeferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.storage import Write
from kubetwist.client.restconfig import RESTConfig
from kubetwist.client.tls import ClientTLS
from kubetwist.schema.protobuf.fields import octets
from kubetwist.server.credentials.certificates import CertConfig, CertificateAuthority, CertKeyPair, private_pem
from kubetwist.storage.errors import (
    KeyNotFound,
    OutcomeUnknown,
    RevisionCompacted,
    RevisionConflict,
    StorageUnavailable,
)
from kubetwist.storage.etcd import EtcdStorage
from kubetwist.storage.etcd import _storage as etcd
from kubetwist.storage.etcd._errors import NoResponse
from kubetwist.storage.etcd.address import Address
from kubetwist.storage.etcd.client import EtcdClient, grpc_members
from kubetwist.testing.etcd import EtcdServer, TLSFiles, etcd_skip_reason
from kubetwist.testing.storage import RecordingObserver

from .case import EtcdCase, RunningReactor, etcd_storage
from .cutwire import CutWire


class LossTests(EtcdCase):
    """Lost connections, and the outcome of calls."""

    def test_resumption(self) -> None:
        """A watch that is interrupted resumes at its revision: no event is missing or repeated."""
        wire = self.wire()
        storage, other = self.open(wire.url), self.open()
        observer = self.follow(storage)
        revisions = []
        for number in range(6):
            revisions.append(self.write(other, f"/r/{number}", b""))
            wire.break_connections()
            revisions.append(self.write(other, f"/r/{number}", b"again"))
            self.reactor.turn_until(lambda: storage.revision >= revisions[-1])
        self.assertEqual([event.revision for event in observer.events], revisions)
        self.assertEqual(observer.reasons, [])

    def test_unreachable(self) -> None:
        """While etcd is unreachable, reads and writes fail fast; afterwards they succeed."""
        wire = self.wire()
        storage = self.open(wire.url)
        observer = self.follow(storage)
        revision = self.write(storage, "/r/a", b"1", 0)
        self.reactor.run(maybeDeferred(wire.cut))
        for attempt in (
            storage.read("/r/a"),
            storage.commit([Write("/r/a", b"2", revision)]),
            storage.current_revision(),
        ):
            with self.assertRaises(StorageUnavailable) as caught:
                self.reactor.run(attempt)
            self.assertIn("code = Unavailable", str(caught.exception))
        wire.accept_again()
        second_attempt = self.write(storage, "/r/a", b"3", revision)
        self.assertEqual([event.value for event in observer.events], [b"1", b"3"])
        self.assertEqual(self.reactor.run(storage.read("/r/a")).revision, second_attempt)

    def test_compacted_while_disconnected(self) -> None:
        """A watch whose next events were compacted while it was disconnected ends, and the observer can list again."""
        wire = self.wire()
        storage, other = self.open(wire.url), self.open()
        observer = self.follow(storage)
        self.write(storage, "/r/a", b"1")
        self.reactor.run(maybeDeferred(wire.cut))
        revision = [self.write(other, "/r/a", b"%d" % number) for number in range(3)][-1]
        self.reactor.run(other.compact(revision))
        wire.accept_again()
        self.reactor.turn_until(lambda: observer.reasons)
        self.assertIsInstance(observer.reasons[0], RevisionCompacted)
        self.assertEqual((storage.compacted, storage.revision), (revision, revision))
        second_attempt = self.follow(storage)
        self.write(storage, "/r/a", b"new")
        self.assertEqual([event.value for event in second_attempt.events], [b"new"])

    def test_compacted_at_deletion_while_disconnected(self) -> None:
        """
        A watch also ends if the last compacted change is a deletion that comes next.

        Before 3.4.36 and 3.5.18, etcd lets a watch begin there, without the event.
        """
        wire = self.wire()
        storage, other = self.open(wire.url), self.open()
        observer = self.follow(storage)
        self.write(storage, "/r/a", b"1")
        self.reactor.run(maybeDeferred(wire.cut))
        revision = self.write(other, "/r/a", None)
        self.assertEqual(storage.revision, revision - 1)
        self.reactor.run(other.compact(revision))
        wire.accept_again()
        self.reactor.turn_until(lambda: observer.reasons)
        self.assertIsInstance(observer.reasons[0], RevisionCompacted)
        self.assertEqual((storage.compacted, storage.revision), (revision, revision))

    def lossy(self) -> tuple[EtcdStorage, CutWire, list[set[str]]]:
        """Return a store whose connection is cut instead of responses to transactions."""
        wire = self.wire()
        storage = self.open(wire.url)
        lost: list[set[str]] = []

        def lose(what: set[str]) -> bool:
            if "written" in what:
                lost.append(what)
                wire.break_connections()
            return "written" in what

        self.filter_frames(wire, lose)
        return storage, wire, lost

    def test_lost_answer_to_creation(self) -> None:
        """A create without a response is identified by its event if its value is unique."""
        storage, _, lost = self.lossy()
        revision = self.write(storage, "/r/a", b"with a new uid", 0, unique=True)
        self.assertEqual(len(lost), 1)
        self.assertEqual(self.reactor.run(storage.read("/r/a")).revision, revision)

    def test_lost_answer(self) -> None:
        """The outcome of other writes without a response is unknown."""
        storage, _, lost = self.lossy()
        with self.assertRaises(OutcomeUnknown) as caught:
            self.write(storage, "/r/a", b"1", 0)
        self.assertEqual(str(caught.exception), "etcdserver: request timed out")
        with self.assertRaises(OutcomeUnknown):
            self.write(storage, "/r/a", b"2", self.reactor.run(storage.read("/r/a")).revision)
        self.assertEqual(self.reactor.run(storage.read("/r/a")).value, b"2")
        with self.assertRaises(OutcomeUnknown):
            self.write(storage, "/r/a", None, self.reactor.run(storage.read("/r/a")).revision)
        with self.assertRaises(KeyNotFound):
            self.reactor.run(storage.read("/r/a"))
        self.assertEqual(len(lost), 3)

    def test_lost_answer_and_news(self) -> None:
        """The outcome is unknown too if the watch was restarted: the existing value may be of the write itself."""
        storage, wire, lost = self.lossy()
        revision = self.write(self.open(), "/r/a", b"1", 0)
        self.reactor.turn_until(lambda: storage.revision >= revision)
        answers = wire.filtering()._lost
        self.filter_frames(wire, lambda what: "events" in what or answers(what))
        self.patch(etcd, "OBSERVE_TIMEOUT", 0.0)
        with self.assertRaises(OutcomeUnknown):
            self.write(storage, "/r/a", b"2", revision)
        self.assertEqual(len(lost), 1)
        self.assertLess(storage.revision, self.reactor.run(storage.read("/r/a")).revision)

    def test_watch_from_newer(self) -> None:
        """A client that has read a newer revision than the watch has reached is not shown older state."""
        wire = self.wire()
        storage, other = self.open(wire.url), self.open()
        begun: list[set[str]] = []

        def lose(what: set[str]) -> bool:
            if "created" in what:
                begun.append(what)
            return "events" in what

        self.filter_frames(wire, lose)
        self.patch(etcd, "OBSERVE_TIMEOUT", 0.0)
        before = storage.revision
        read = [self.write(other, "/r/a", b"%d" % number) for number in range(3)][-1]
        observer = RecordingObserver()
        watching = Deferred.fromCoroutine(storage.watch("/r/", read, observer))
        # The watch is started again, since no response has arrived.
        self.reactor.turn_until(lambda: begun)
        self.assertEqual(storage.revision, before)
        self.filter_frames(wire, lambda what: False)
        self.reactor.run(watching)
        self.assertGreaterEqual(storage.revision, read)
        last = self.write(storage, "/r/b", b"")
        self.assertEqual([event.revision for event in observer.events], [last])

    def test_lost_request(self) -> None:
        """A write that compares a revision is sent again when its response is lost."""
        wire = self.wire()
        storage, other = self.open(wire.url), self.open()
        revision = self.write(storage, "/r/a", b"1", 0)
        members = storage.client.members
        submit = members[0].submit
        attempts: list[Transaction] = []

        def lose_first(txn: Transaction, timeout: float) -> Any:
            attempts.append(txn)
            return fail(NoResponse("lost")) if len(attempts) == 1 else submit(txn, timeout)

        self.patch(members[0], "submit", lose_first)
        second_attempt = self.write(storage, "/r/a", b"2", revision)
        self.assertEqual(len(attempts), 2)
        self.assertEqual(self.reactor.run(other.read("/r/a")).revision, second_attempt)
        # A write that conflicts with another one in between fails with the conflict.
        attempts.clear()
        newest = self.write(other, "/r/a", b"3", second_attempt)
        with self.assertRaises(RevisionConflict) as caught:
            self.write(storage, "/r/a", b"4", second_attempt)
        self.assertEqual(caught.exception.revision, newest)

    def test_start_without_etcd(self) -> None:
        """Opening the store waits for etcd, and fails with its address after the timeout."""
        wire = self.wire()
        self.reactor.run(maybeDeferred(wire.cut))
        storage = self.storage(wire.url, start_timeout=0.0)
        with self.assertRaises(StorageUnavailable) as caught:
            self.reactor.run(storage.open())
        self.assertIn(f"no etcd at {wire.url}", str(caught.exception))
        waiting = self.storage(wire.url)
        self.addCleanup(lambda: self.reactor.run(waiting.close()))
        opening = Deferred.fromCoroutine(waiting.open())
        wire.accept_again()
        self.reactor.run(opening)
        self.assertEqual(waiting.revision, 1)


class ClusterTests(EtcdCase):
    """The loss of one of three members."""

    members = 3

    def test_killed_member(self) -> None:
        """When the member in use is killed, another one is used; watches miss nothing."""
        storage = self.open()
        observer = self.follow(storage)
        revision = self.write(storage, "/r/a", b"0", 0)
        request = storage.client.pick_member()
        assert request is not None
        (member,) = [one for one in self.etcd.members if one.url == request.address.url]
        member.kill()
        values = [b"0"]
        for number in range(1, 6):
            value = b"%d" % number
            revision = self.write(storage, "/r/a", value, revision)
            values.append(value)
            self.assertEqual(self.reactor.run(storage.read("/r/a")).value, value)
        self.reactor.turn_until(lambda: storage.revision >= revision)
        self.assertEqual([event.value for event in observer.events], values)
        self.assertEqual(observer.reasons, [])

    def test_stopped_member(self) -> None:
        """When the member in use is stopped, writes and watches continue with another one."""
        storage = self.open()
        observer = self.follow(storage)
        revision = self.write(storage, "/r/a", b"0", 0)
        done = [b"0"]
        request = storage.client.pick_member()
        assert request is not None
        (member,) = [one for one in self.etcd.members if one.url == request.address.url]
        member.signal(SIGTERM)
        number = 0
        while member.running or len(done) < 20:
            number += 1
            try:
                revision = self.write(storage, "/r/a", b"%d" % number, revision)
                done.append(b"%d" % number)
            except (OutcomeUnknown, RevisionConflict):
                # The outcome of a write during the stop is unknown.
                revision = self.reactor.run(storage.read("/r/a")).revision
        self.reactor.turn_until(lambda: storage.revision >= revision)
        self.assertEqual([event.value for event in observer.events if event.value in done], done)
        self.assertEqual(observer.reasons, [])
        self.assertNotEqual(storage.client.pick_member(), request)

    def test_paused_member(self) -> None:
        """A member that does not respond is replaced; its watch resumes on another one."""
        first, second, third = self.etcd.members
        storage = self.storage(first.url, second.url, shuffle_members=False)
        self.addCleanup(lambda: self.reactor.run(storage.close()))
        self.reactor.run(storage.open())
        observer = self.follow(storage)
        other = self.open(second.url, third.url)
        self.write(other, "/r/a", b"1")
        self.reactor.turn_until(lambda: observer.events)
        first.signal(SIGSTOP)
        self.addCleanup(first.signal, SIGCONT)
        revision = self.reactor.run(other.read("/r/a")).revision
        second_attempt = self.write(other, "/r/a", b"2", revision)
        self.reactor.turn_until(lambda: storage.revision >= second_attempt)
        self.assertEqual([event.value for event in observer.events], [b"1", b"2"])
        self.assertEqual(self.reactor.run(storage.read("/r/a")).revision, second_attempt)


def server_and_client(authority: CertificateAuthority) -> CertKeyPair:
    """A certificate of etcd, for its clients and as a client of its gateway."""
    issuer, signing = authority.pair.parsed()
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "member")]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(usage, critical=False)
        .sign(signing, hashes.SHA256())
    )
    return CertKeyPair(certificate.public_bytes(Encoding.PEM), private_pem(key))


class TLSTests(SynchronousTestCase):
    """An etcd with TLS client authentication."""

    skip = etcd_skip_reason() or None
    transport = "grpc"

    def setUp(self) -> None:
        """Start an etcd that has a certificate and requires one of clients."""
        folder = Path(self.mktemp())
        folder.mkdir()
        self.authority = CertificateAuthority.make("etcd")
        server = server_and_client(self.authority)
        for name, content in (
            ("ca", self.authority.pair.certificate),
            ("crt", server.certificate),
            ("key", server.key),
        ):
            (folder / name).write_bytes(content)
        self.etcd = EtcdServer(tls=TLSFiles(folder / "crt", folder / "key", folder / "ca"))
        self.addCleanup(self.etcd.stop)
        self.etcd.start()
        self.reactor = RunningReactor()
        self.addCleanup(self.reactor.close)

    def storage(self, trusted: CertificateAuthority, shown: CertKeyPair) -> EtcdStorage:
        """Return a store with a CA and a client certificate."""
        settings = RESTConfig(url="", ca=trusted.pair.certificate, certificate=shown.certificate, key=shown.key)
        made = etcd_storage(self.reactor, self.etcd.urls, settings, transport=self.transport, start_timeout=0.0)
        self.addCleanup(lambda: self.reactor.run(made.close()))
        return made

    def client(self, name: str) -> CertKeyPair:
        """Return a client certificate."""
        return self.authority.issue(CertConfig(name))

    def refused(self, storage: EtcdStorage) -> str:
        """Return the error of opening a store."""
        with self.assertRaises(StorageUnavailable) as caught:
            self.reactor.run(storage.open())
        return str(caught.exception)

    def test_client_certificate(self) -> None:
        """The connection to etcd uses TLS with a client certificate; another certificate is refused."""
        mark_healthy, stranger = (
            self.storage(self.authority, self.client("kubetwist")),
            CertificateAuthority.make("strangers"),
        )
        self.reactor.run(mark_healthy.open())
        value = b"secret" * 100_000
        revision = self.reactor.run(mark_healthy.commit([Write("/r/a", value, 0)]))
        result = self.reactor.run(mark_healthy.read("/r/a"))
        self.assertEqual((result.revision, result.value, mark_healthy.revision), (revision, value, revision))
        for trusted, shown in (
            (stranger, self.client("kubetwist")),
            (self.authority, stranger.issue(CertConfig("kubetwist"))),
        ):
            self.assertIn("tls", self.refused(self.storage(trusted, shown)).lower())


class GRPCTLSTests(TLSTests):
    """TLS connections for gRPC."""

    def test_other_protocol(self) -> None:
        """A server that does not negotiate HTTP/2 is refused."""
        shown = self.client("kubetwist")
        settings = RESTConfig(url="", ca=self.authority.pair.certificate, certificate=shown.certificate, key=shown.key)
        make_member = grpc_members(self.reactor, lambda host: ClientTLS(settings, host, [b"http/1.1"]))
        client = EtcdClient(self.reactor, [Address.parse(self.etcd.urls[0])], make_member)
        storage = EtcdStorage(client, self.reactor, start_timeout=0.0)
        self.addCleanup(lambda: self.reactor.run(storage.close()))
        self.assertIn("etcd does not speak HTTP/2", self.refused(storage))

    def test_users(self) -> None:
        """With authentication in etcd, the common name of the certificate is the user and decides what is allowed."""
        storage = self.storage(self.authority, self.client("root"))
        self.reactor.run(storage.open())
        for name, message in (
            ("UserAdd", octets(1, b"root") + octets(2, b"password")),
            ("UserAdd", octets(1, b"other") + octets(2, b"password")),
            ("RoleAdd", octets(1, b"root")),
            ("UserGrantRole", octets(1, b"root") + octets(2, b"root")),
            ("AuthEnable", b""),
        ):
            (member,) = storage.client.members
            self.reactor.run(member.call_unary(f"/etcdserverpb.Auth/{name}".encode(), message, 10.0))
        revision = self.reactor.run(storage.commit([Write("/r/a", b"1", 0)]))
        self.assertEqual(self.reactor.run(storage.read("/r/a")).revision, revision)
        self.reactor.turn_until(lambda: storage.revision == revision)
        other = self.storage(self.authority, self.client("other"))
        self.assertIn("permission denied", self.refused(other))
