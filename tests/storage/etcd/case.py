"""Shared parts of the tests of the store in etcd: an etcd, and a reactor that runs while a test waits."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.selectreactor import SelectReactor
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.storage import Write
from kubetwist.client.restconfig import RESTConfig
from kubetwist.client.tls import ClientTLS
from kubetwist.schema.protobuf.wire import (
    LENGTH,
    VARINT,
)
from kubetwist.server.etcdbackend import DIAL_TIMEOUT
from kubetwist.server.etcdgateway import gateway_transports
from kubetwist.storage.etcd import EtcdStorage
from kubetwist.storage.etcd._frames import DATA
from kubetwist.storage.etcd._messages import scan
from kubetwist.storage.etcd.address import Address
from kubetwist.storage.etcd.client import EtcdClient, grpc_members
from kubetwist.storage.etcd.gateway import gateway_members
from kubetwist.testing.etcd import EtcdServer, etcd_skip_reason
from kubetwist.testing.storage import DEAD, RecordingObserver, StorageReactor

from .cutwire import CutWire

T = TypeVar("T")


class RunningReactor(StorageReactor):
    """
    A L{StorageReactor} with real connections and real time, over a real reactor that runs in L{run}.
    """

    def __init__(self) -> None:
        super().__init__()
        self.real = SelectReactor()
        self.real.startRunning(installSignalHandlers=False)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def seconds(self) -> float:
        """Return the time."""
        return float(self.real.seconds())

    def callLater(self, when: float, what: Any, *args: Any, **kw: Any) -> Any:
        """Schedule a call."""
        return self.real.callLater(when, what, *args, **kw)

    def callFromThread(self, call: Any, /, *args: Any, **kw: Any) -> None:
        """Schedule a call in the reactor's thread."""
        self.real.callFromThread(call, *args, **kw)

    def run(self, awaitable: Any) -> Any:
        """Run the reactor until there is a result, and return or raise it."""
        results: list[Any] = []
        deferred = awaitable if isinstance(awaitable, Deferred) else Deferred.fromCoroutine(awaitable)
        deferred.addBoth(results.append)
        self.turn_until(lambda: bool(results))
        (result,) = results
        if isinstance(result, Failure):
            result.raiseException()
        return result

    def turn_until(self, condition: Any) -> None:
        """Run the reactor until a condition is true."""
        until = time.monotonic() + DEAD
        while not condition():
            if time.monotonic() > until:
                raise AssertionError("nothing happens any more")
            self.real.iterate(0.05)

    def close(self) -> None:
        """Release all resources."""
        self.real.fireSystemEvent("shutdown")
        self.real.iterate(0)
        self.real.removeAll()
        self.real.disconnectAll()


def etcd_client(
    reactor: Any, urls: list[str], settings: RESTConfig | None = None, shuffle_members: bool = True, *, transport: str
) -> EtcdClient:
    """
    Return a client of an etcd.

    @param settings: The credentials over TLS; L{None} for none.
    @param transport: C{"grpc"} or C{"gateway"}, as in --etcd-transport.
    """
    settings = settings or RESTConfig(url="", dial_timeout=DIAL_TIMEOUT)
    make_member = (
        gateway_members(reactor, gateway_transports(reactor, settings))
        if transport == "gateway"
        else grpc_members(reactor, lambda host: ClientTLS(settings, host, (b"h2",)))
    )
    return EtcdClient(reactor, [Address.parse(url) for url in urls], make_member, shuffle_members)


def etcd_storage(
    reactor: Any,
    urls: list[str],
    settings: RESTConfig | None = None,
    shuffle_members: bool = True,
    *,
    transport: str = "grpc",
    **options: Any,
) -> EtcdStorage:
    """Return a store in an etcd."""
    client = etcd_client(reactor, urls, settings, shuffle_members, transport=transport)
    return EtcdStorage(client, reactor, **options)


_used: dict[SynchronousTestCase, list[tuple[EtcdStorage, EtcdServer]]] = {}


def fresh_storage(case: SynchronousTestCase, reactor: Any, transport: str = "grpc") -> EtcdStorage:
    """A store in a separate etcd, which ends with the test, or when the store is closed and another one is made."""
    used = _used.setdefault(case, [])
    for storage, etcd in used:
        if storage.closed:
            etcd.stop()
    etcd = EtcdServer()
    case.addCleanup(_used.pop, case, None)
    case.addCleanup(etcd.stop)
    storage = etcd_storage(reactor, etcd.start().urls, transport=transport)
    used.append((storage, etcd))
    return storage


class FrameFilter:
    """
    The frames of a member, some of which are dropped.

    Wires have one for each connection; its messages are filtered by the test.
    """

    def __init__(self, lost: Callable[[set[str]], bool]) -> None:
        """
        @param lost: Returns whether a message is dropped. Called with its kinds: C{"written"} for the response of an
            applied write, C{"events"} for events, C{"created"} for the start of a watch.
        """
        self._lost = lost
        self._rest = b""

    def __call__(self, data: bytes) -> bytes:
        """Drop messages from received data; return the rest."""
        buffer, kept = self._rest + data, b""
        while len(buffer) >= 9:
            stop = 9 + int.from_bytes(buffer[:3], "big")
            if len(buffer) < stop:
                break
            frame, buffer = buffer[:stop], buffer[stop:]
            if frame[3] != DATA or not self._lost(self._what(frame[9:])):
                kept += frame
        self._rest = buffer
        return kept

    @staticmethod
    def _what(content: bytes) -> set[str]:
        """Return the kind of a message in one frame; responses differ in their fields."""
        tags = {tag for tag, _, _ in scan(content, 5, len(content))}
        known = {(2 << 3 | VARINT, 3 << 3 | LENGTH): "written", (11 << 3 | LENGTH,): "events"}
        what = {name for wanted, name in known.items() if tags.issuperset(wanted)}
        return what | {"created"} if tags == {1 << 3 | LENGTH, 3 << 3 | VARINT} else what


class JSONFilter:
    """The messages of a member's gateway, some of which are dropped; each arrives in one piece."""

    def __init__(self, lost: Callable[[set[str]], bool]) -> None:
        """
        @param lost: See L{FrameFilter}.
        """
        self._lost = lost

    def __call__(self, data: bytes) -> bytes:
        """Drop received data if it has a message to drop."""
        known = {b'"succeeded":true': "written", b'"events":': "events", b'"created":true': "created"}
        return b"" if self._lost({name for text, name in known.items() if text in data}) else data


class EtcdCase(SynchronousTestCase):
    """Starts an etcd, and opens stores in it."""

    skip = etcd_skip_reason() or None
    members = 1
    flags: tuple[str, ...] = ()
    transport = "grpc"

    def setUp(self) -> None:
        """Start etcd."""
        self.etcd = EtcdServer(self.members, flags=self.flags)
        self.addCleanup(self.etcd.stop)
        self.etcd.start()
        self.reactor = RunningReactor()
        self.addCleanup(self.reactor.close)

    def storage(self, *urls: str, **options: Any) -> EtcdStorage:
        """Return a store; by default with all members."""
        return etcd_storage(self.reactor, list(urls) or self.etcd.urls, transport=self.transport, **options)

    def open(self, *urls: str, **options: Any) -> EtcdStorage:
        """Open a store until the end of the test; by default with all members."""
        storage = self.storage(*urls, **options)
        self.addCleanup(lambda: self.reactor.run(storage.close()))
        self.reactor.run(storage.open())
        return storage

    def wire(self, member: int = 0) -> CutWire:
        """Return a cut wire to a member."""
        wire = CutWire(self.reactor, self.etcd.members[member].port)
        self.addCleanup(lambda: self.reactor.run(maybeDeferred(wire.cut)))
        return wire

    def filter_frames(self, wire: CutWire, lost: Callable[[set[str]], bool]) -> None:
        """Drop messages on a wire, on existing and new connections; see L{FrameFilter} and L{JSONFilter}."""
        make = FrameFilter if self.transport == "grpc" else JSONFilter
        wire.filtering = lambda: make(lost)
        for end in wire.ends:
            if end.from_server:
                end.filter = make(lost)

    def follow(self, storage: EtcdStorage, prefix: str = "/r/") -> RecordingObserver:
        """Return an observer of all later events of a store."""
        observer = RecordingObserver()
        self.reactor.run(storage.watch(prefix, storage.revision, observer))
        return observer

    def write(
        self, storage: EtcdStorage, key: str, value: bytes | None, expected: int | None = None, **options: Any
    ) -> int:
        """Write one key."""
        return self.reactor.run(storage.commit([Write(key, value, expected, **options)]))
