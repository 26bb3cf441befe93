"""
Leader election: the server that holds a Lease runs the controllers.

@see: client-go, C{tools/leaderelection/leaderelection.go}. The durations are the defaults of kube-controller-manager.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from ...api.errors import APIStatusError
from ...api.resource import JSONObject
from ...api.times import format_micro_time
from ...interfaces import IControllerFactory
from ...storage.errors import StorageError
from .context import ControllerContext
from .manager import ControllerManager

if TYPE_CHECKING:
    from twisted.internet.interfaces import IReactorTime

#: Name of the Lease. It differs from the Lease of kube-controller-manager, which may run further controllers.
NAMESPACE: Final = "kube-system"
NAME: Final = "kubetwist-controllers"
#: Seconds until an unrenewed Lease expires, until the holder gives up renewal, and between attempts.
LEASE_DURATION: Final = 15
RENEW_DEADLINE: Final = 10.0
RETRY_PERIOD: Final = 2.0


class LeaderElector:
    """
    Acquires a Lease and renews it.

    Clocks of servers are not compared: a Lease has expired if this process observed no change for the lease duration.

    @ivar is_leader: Whether this server holds the Lease.
    """

    _log = Logger()

    def __init__(
        self,
        context: ControllerContext,
        identity: str,
        on_started_leading: Callable[[], None],
        on_stopped_leading: Callable[[], Deferred[None]],
    ) -> None:
        """
        @param identity: The unique identity of this server.
        @param on_started_leading: Called when the Lease is acquired.
        @param on_stopped_leading: Called when the Lease is lost. The next attempt starts when its Deferred fires.
        """
        self._clock: IReactorTime = context.clock
        self._client = context.client("leader-election")
        self._identity = identity
        self._on_started_leading = on_started_leading
        self._on_stopped_leading = on_stopped_leading
        self._observed_record: JSONObject | None = None
        self._observed_time = 0.0
        self._renewed_at = 0.0
        self._call: IDelayedCall | None = None
        self._trying: Deferred[None] | None = None
        self._stopped = False
        self.is_leader = False

    def start(self) -> None:
        """Start trying to acquire the Lease."""
        self._call = None
        self._trying = Deferred.fromCoroutine(self._renew_once())
        self._trying.addErrback(lambda failure: self._log.failure("leader election failed", failure))
        self._trying.addCallback(self._schedule)

    def _schedule(self, _: object) -> None:
        self._trying = None
        if not self._stopped:
            self._call = self._clock.callLater(RETRY_PERIOD, self.start)

    async def stop(self) -> None:
        """Stop, and release the Lease."""
        self._stopped = True
        if self._call is not None:
            self._call.cancel()
            self._call = None
        if self._trying is not None:
            await self._trying
        if not self.is_leader:
            return
        self.is_leader = False
        await self._on_stopped_leading()
        try:
            await self._write({"holderIdentity": "", "leaseDurationSeconds": 1})
        except (APIStatusError, StorageError) as error:
            self._log.debug("cannot release lease: {error}", error=error)

    async def _renew_once(self) -> None:
        started_at = self._clock.seconds()
        if await self._try_acquire_or_renew():
            self._renewed_at = started_at
            if not self.is_leader and not self._stopped:
                self.is_leader = True
                self._log.info(
                    "acquired lease {namespace}/{name}; starting controllers", namespace=NAMESPACE, name=NAME
                )
                self._on_started_leading()
        elif self.is_leader and self._is_lost():
            self.is_leader = False
            self._log.warn("lost lease {namespace}/{name}; stopping controllers", namespace=NAMESPACE, name=NAME)
            await self._on_stopped_leading()

    def _is_lost(self) -> bool:
        held_by_other = self._observed_record is not None and self._observed_record.get("holderIdentity") not in (
            self._identity,
            "",
            None,
        )
        return held_by_other or self._clock.seconds() - self._renewed_at >= RENEW_DEADLINE

    async def _try_acquire_or_renew(self) -> bool:
        """Acquire or renew the Lease, and return whether that succeeded."""
        try:
            lease = self._client.get("coordination.k8s.io", "leases", NAMESPACE, NAME)
            if lease is None:
                await self._create()
                return True
            spec = lease.get("spec") or {}
            now = self._clock.seconds()
            if spec != self._observed_record:
                self._observed_record, self._observed_time = spec, now
            holder = spec.get("holderIdentity") or ""
            if holder not in ("", self._identity) and now < self._observed_time + (
                spec.get("leaseDurationSeconds") or 0
            ):
                return False
            changes: JSONObject = {"holderIdentity": self._identity, "leaseDurationSeconds": LEASE_DURATION}
            if holder != self._identity:
                changes["acquireTime"] = format_micro_time(now)
                changes["leaseTransitions"] = (spec.get("leaseTransitions") or 0) + 1
            await self._write(changes, int(lease["metadata"]["resourceVersion"]))
        except (APIStatusError, StorageError) as error:
            self._log.debug("cannot acquire or renew the lease: {error}", error=error)
            return False
        return True

    async def _create(self) -> None:
        now = format_micro_time(self._clock.seconds())
        spec = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": LEASE_DURATION,
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": 0,
        }
        lease = {"metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": spec}
        await self._client.create("coordination.k8s.io", "leases", lease)

    async def _write(self, changes: JSONObject, revision: int = 0) -> None:
        now = format_micro_time(self._clock.seconds())

        def change(lease: JSONObject) -> None:
            if not revision and (lease.get("spec") or {}).get("holderIdentity") != self._identity:
                # Another server has acquired it.
                return
            lease.setdefault("spec", {}).update(changes, renewTime=now)

        await self._client.update("coordination.k8s.io", "leases", NAMESPACE, NAME, change, revision=revision)


class LeaderElectedControllerManager:
    """
    Runs a L{ControllerManager} while this server is the leader.

    @ivar running: The running manager; L{None} while another server leads.
    @ivar lease_name: The name of the Lease.
    """

    lease_name: Final = NAME

    def __init__(
        self, make_context: Callable[[], ControllerContext], factories: Sequence[IControllerFactory], identity: str
    ) -> None:
        """
        @param make_context: Creates the context of controllers, each time that they start.
        """
        self.context = make_context()
        self.running: ControllerManager | None = None
        self._make_context = make_context
        self._factories = factories
        self._elector = LeaderElector(self.context, identity, self._begin, self._end)

    def start(self) -> None:
        """Start the election."""
        self._elector.start()

    def _begin(self) -> None:
        self.running = ControllerManager(self._make_context(), self._factories)
        self.running.start()

    def _end(self) -> Deferred[None]:
        running, self.running = self.running, None
        assert running is not None, "ended without having begun"
        return Deferred.fromCoroutine(running.stop())

    async def stop(self) -> None:
        """Stop the controllers and release the Lease."""
        await self._elector.stop()
        await self.context.stop()
