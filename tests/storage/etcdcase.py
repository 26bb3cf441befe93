"""What tests of the store in etcd share: an etcd, and a reactor that turns as long as something is waited for."""

from __future__ import annotations

import time
from typing import Any, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.selectreactor import SelectReactor
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.storage.etcd import EtcdStorage
from kubetwist.storage.etcdclient import EtcdClient
from kubetwist.storage.etcdhttp import Address
from kubetwist.testing.etcd import EtcdServer
from kubetwist.testing.storage import DEAD, StorageReactor

T = TypeVar("T")


class TurningReactor(StorageReactor):
    """
    A L{StorageReactor} with real connections: what it is not asked itself, a real reactor is, which turns in L{run}.

    Time is real here.
    """

    def __init__(self) -> None:
        super().__init__()
        self.real = SelectReactor()
        self.real.startRunning(installSignalHandlers=False)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def seconds(self) -> float:
        """The time."""
        return float(self.real.seconds())

    def callLater(self, when: float, what: Any, *args: Any, **kw: Any) -> Any:
        """Call something later."""
        return self.real.callLater(when, what, *args, **kw)

    def callFromThread(self, call: Any, /, *args: Any, **kw: Any) -> None:
        """Have something called in this thread."""
        self.real.callFromThread(call, *args, **kw)

    def run(self, awaitable: Any) -> Any:
        """Turn until there is a result, and return or raise that."""
        results: list[Any] = []
        deferred = awaitable if isinstance(awaitable, Deferred) else Deferred.fromCoroutine(awaitable)
        deferred.addBoth(results.append)
        self.turn_until(lambda: bool(results))
        (result,) = results
        if isinstance(result, Failure):
            result.raiseException()
        return result

    def turn_until(self, condition: Any) -> None:
        """Turn until something is so."""
        until = time.monotonic() + DEAD
        while not condition():
            if time.monotonic() > until:
                raise AssertionError("nothing happens any more")
            self.real.iterate(0.05)

    def close(self) -> None:
        """Let go of what it has."""
        self.real.fireSystemEvent("shutdown")
        self.real.iterate(0)
        self.real.removeAll()
        self.real.disconnectAll()


def etcd_storage(reactor: Any, urls: list[str], **how: Any) -> EtcdStorage:
    """A store in an etcd."""
    return EtcdStorage(EtcdClient(reactor, [Address.parse(url) for url in urls]), reactor, **how)


_used: dict[SynchronousTestCase, list[tuple[EtcdStorage, EtcdServer]]] = {}


def fresh_storage(case: SynchronousTestCase, reactor: Any) -> EtcdStorage:
    """A store in an etcd of its own, which ends with the test, or when the store is closed and another one is made."""
    used = _used.setdefault(case, [])
    for storage, etcd in used:
        if storage.closed:
            etcd.stop()
    etcd = EtcdServer()
    case.addCleanup(_used.pop, case, None)
    case.addCleanup(etcd.stop)
    storage = etcd_storage(reactor, etcd.start().urls)
    used.append((storage, etcd))
    return storage
