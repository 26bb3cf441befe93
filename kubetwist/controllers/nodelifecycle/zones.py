"""
The state of the zones of nodes, and the rates at which nodes are tainted so that their pods are evicted.

@see: kubernetes, C{pkg/controller/nodelifecycle/node_lifecycle_controller.go}: C{handleDisruption},
    C{ComputeZoneState}; C{pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Final

from attrs import define, field, fields, frozen

_REGION: Final = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")
_ZONE: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
#: The smallest number of unready nodes with which a zone may be partially disrupted.
_MIN_UNREADY: Final = 3


class ZoneState(Enum):
    """The state of a zone."""

    NORMAL = "normal"
    PARTIAL = "partial disruption"
    FULL = "full disruption"


@frozen
class EvictionRates:
    """
    The settings of evictions, under the names of kube-controller-manager's flags.

    @ivar node_eviction_rate: Nodes per second in a zone that is healthy, or fully disrupted.
    @ivar secondary_node_eviction_rate: Nodes per second in a partially disrupted zone of more than
        C{large_cluster_size_threshold} nodes; smaller zones have no evictions then.
    @ivar unhealthy_zone_threshold: The share of unready nodes from which a zone is partially disrupted.
    @ivar large_cluster_size_threshold: See above.
    """

    node_eviction_rate: float = 0.1
    secondary_node_eviction_rate: float = 0.01
    unhealthy_zone_threshold: float = 0.55
    large_cluster_size_threshold: int = 50

    @classmethod
    def of(cls, get: Callable[[str], Any]) -> EvictionRates:
        """
        Return the settings of flags; flags that do not exist have their defaults.

        @param get: Returns the value of a flag, or L{None}.
        """
        values = {one.name: get(one.name.replace("_", "-")) for one in fields(cls)}
        return cls(**{name: value for name, value in values.items() if value is not None})

    def state(self, ready: int, unready: int) -> ZoneState:
        """
        Return the state of a zone.

        @param ready: The number of its ready nodes.
        @param unready: The number of its other nodes.
        """
        if unready and not ready:
            return ZoneState.FULL
        if unready >= _MIN_UNREADY and unready / (ready + unready) >= self.unhealthy_zone_threshold:
            return ZoneState.PARTIAL
        return ZoneState.NORMAL

    def rate(self, state: ZoneState, size: int) -> float:
        """
        Return the nodes per second whose pods are evicted in a zone.

        @param state: The state of the zone.
        @param size: The number of its nodes.
        """
        if state is not ZoneState.PARTIAL:
            return self.node_eviction_rate
        return self.secondary_node_eviction_rate if size > self.large_cluster_size_threshold else 0.0


def zone_of(labels: Mapping[str, str]) -> str:
    """
    Return the zone of a node with its region; C{""} for the zone of nodes without labels.

    @param labels: The labels of the node.
    @see: kubernetes/component-helpers, C{node/topology/helpers.go}: C{GetZoneKey}.
    """
    region = next((labels[one] for one in _REGION if labels.get(one)), "")
    zone = next((labels[one] for one in _ZONE if labels.get(one)), "")
    # The separator cannot be part of a label.
    return f"{region}:\0:{zone}" if region or zone else ""


@define
class _Zone:
    """
    A zone.

    @ivar ready: The names of its ready nodes.
    @ivar unready: The names of its other nodes.
    @ivar rate: Evictions per second.
    @ivar tokens: The evictions that are permitted, at most one.
    @ivar at: When C{tokens} was computed.
    """

    ready: set[str] = field(factory=set)
    unready: set[str] = field(factory=set)
    rate: float = 0.0
    tokens: float = 1.0
    at: float = 0.0


class EvictionLimiter:
    """
    Decides when an unready node may be tainted so that its pods are evicted.

    If no zone has a ready node, no pods are evicted: the fault is probably elsewhere. A node that was admitted remains
    so until it is ready.
    """

    def __init__(self, rates: EvictionRates) -> None:
        """
        @param rates: The settings.
        """
        self._rates = rates
        self._zones: dict[str, _Zone] = {}
        self._zone_of: dict[str, str] = {}
        self._admitted: set[str] = set()
        self._ready_count = 0

    @property
    def stopped(self) -> bool:
        """Return whether no pods are evicted, because no node is ready."""
        return bool(self._zone_of) and not self._ready_count

    def has_node(self, name: str) -> bool:
        """Return whether a node is known."""
        return name in self._zone_of

    def set_node(self, name: str, zone: str, ready: bool, now: float) -> Iterable[str]:
        """
        Record the state of a node.

        @param name: The name of the node.
        @param zone: See L{zone_of}.
        @param ready: Whether it is ready.
        @param now: The current time.
        @return: The unready nodes whose evictions may now be permitted, or forbidden.
        """
        old = self._zone_of.get(name)
        if old == zone and name in (self._zones[zone].ready if ready else self._zones[zone].unready):
            return ()
        before = self._summary(zone)
        found = self._zones.get(zone)
        if found is None:
            found = self._zones[zone] = _Zone(rate=self._rates.node_eviction_rate, at=now)
        self._remove(name, now, keep=zone)
        self._zone_of[name] = zone
        (found.ready if ready else found.unready).add(name)
        self._ready_count += ready
        self._update(found, now)
        return self._changed(before, zone)

    def set_unready(self, name: str, now: float) -> Iterable[str]:
        """
        Record that a node no longer reports.

        @return: As L{set_node}.
        """
        zone = self._zone_of.get(name)
        return () if zone is None else self.set_node(name, zone, False, now)

    def remove_node(self, name: str, now: float) -> Iterable[str]:
        """
        Forget a deleted node.

        @return: As L{set_node}.
        """
        zone = self._zone_of.get(name, "")
        before = self._summary(zone)
        self._remove(name, now)
        return self._changed(before, zone)

    def _remove(self, name: str, now: float, keep: str | None = None) -> None:
        """
        Remove a node from its zone, and the zone with its last node.

        @param keep: The zone that remains, since it gets a node.
        """
        zone = self._zone_of.pop(name, None)
        self._admitted.discard(name)
        if zone is None:
            return
        found = self._zones[zone]
        self._ready_count -= name in found.ready
        found.ready.discard(name)
        found.unready.discard(name)
        if found.ready or found.unready:
            self._update(found, now)
        elif zone != keep:
            del self._zones[zone]

    def _summary(self, zone: str) -> tuple[bool, float | None]:
        """Return whether evictions are stopped, and the rate of a zone."""
        found = self._zones.get(zone)
        return self.stopped, None if found is None else found.rate

    def _changed(self, before: tuple[bool, float | None], zone: str) -> list[str]:
        """Return the unready nodes that a change concerns: of all zones, of the zone, or none."""
        after = self._summary(zone)
        if after == before:
            return []
        stopped = after[0] != before[0]
        zones = self._zones.values() if stopped else [one for name, one in self._zones.items() if name == zone]
        found = [name for one in zones for name in sorted(one.unready)]
        if self.stopped:
            # All start again when a node is ready.
            self._admitted.clear()
        return found

    def state(self, zone: str) -> ZoneState:
        """Return the state of a zone."""
        found = self._zones[zone]
        return self._rates.state(len(found.ready), len(found.unready))

    def is_admitted(self, name: str) -> bool:
        """Return whether a node is tainted so that its pods are evicted."""
        return name in self._admitted and not self.stopped

    def mark_admitted(self, name: str) -> None:
        """Record that a node is tainted already, at the start of the controller."""
        self._admitted.add(name)

    def admit(self, name: str, now: float) -> float | None:
        """
        Ask whether an unready node may be tainted now.

        @param name: The name of the node.
        @param now: The current time.
        @return: 0 if it may; the seconds until the next attempt; L{None} if evictions are stopped in its zone, until
            the state of a node changes.
        """
        zone = self._zone_of.get(name)
        if zone is None or self.stopped:
            return None
        if name in self._admitted:
            return 0.0
        found = self._zones[zone]
        self._refill(found, now)
        if found.rate <= 0:
            return None
        if found.tokens < 1:
            return (1 - found.tokens) / found.rate
        found.tokens -= 1
        self._admitted.add(name)
        return 0.0

    def _refill(self, zone: _Zone, now: float) -> None:
        zone.tokens = min(1.0, zone.tokens + max(0.0, now - zone.at) * zone.rate)
        zone.at = now

    def _update(self, zone: _Zone, now: float) -> None:
        """Use the rate of the present state of a zone."""
        self._refill(zone, now)
        state = self._rates.state(len(zone.ready), len(zone.unready))
        rate = self._rates.rate(state, len(zone.ready) + len(zone.unready))
        if rate != zone.rate:
            # A new limiter takes over the tokens of the old one (SwapLimiter).
            zone.rate = rate
