"""
Who has which cluster IP and which node port: the numbers that services are given and that no two may share.

What is in use is what services and C{IPAddress} objects hold, whoever wrote them: the allocator follows their caches
(L{kubetwist.registry.core.service.allocatorsync}). Besides, a number belongs to the write that is to store it, until
that is done or has failed, so that concurrent writes never get the same one. What other servers do at that moment is
noticed by the transaction of the write.

See kubernetes, C{pkg/registry/core/service/storage/alloc.go}.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from time import perf_counter
from typing import Final, TypeVar

from attrs import define, field, frozen

from ....api.errors import APIStatusError, invalid
from ....api.go.quote import quoted
from ....api.resource import GroupKind, JSONObject
from ....metrics.registry import Distribution
from .addressranges import AddressRange, usable_ranges
from .ipfamilies import settle_families
from .validation import gets_node_ports, is_headless, needs_health_check

_SERVICE: Final = GroupKind("", "Service")
_SCOPES: Final = ("static", "dynamic")
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_T = TypeVar("_T")


class AllocationError(Exception):
    """A number can not be had; the text tells why."""


class Allocations:
    """
    How often numbers were wanted.

    @ivar given: How often one was got, C{"static"} where it was asked for by its name, C{"dynamic"} where any would do.
    @ivar refused: How often there was none to be had, likewise.
    @ivar seconds: How long it took.
    """

    def __init__(self) -> None:
        self.given = dict.fromkeys(_SCOPES, 0)
        self.refused = dict.fromkeys(_SCOPES, 0)
        self.seconds = Distribution(_SECONDS)

    def count(self, scope: str, take: Callable[[], _T]) -> _T:
        """
        Count one attempt.

        @raise AllocationError: C{take} has raised it.
        """
        began = perf_counter()
        try:
            taken = take()
        except AllocationError:
            self.refused[scope] += 1
            raise
        self.given[scope] += 1
        self.seconds.observe(perf_counter() - began)
        return taken


class Numbers:
    """
    Which numbers are in use, and why: what is stored holds them, or a write that is under way.

    @ivar allocations: What is counted.
    """

    def __init__(self) -> None:
        self.allocations = Allocations()
        #: How many hold each: a service, and the object of its address.
        self._held: dict[int, int] = {}
        self._taken: set[int] = set()

    def in_use(self, number: int) -> bool:
        """Whether nobody else can have a number."""
        return number in self._held or number in self._taken

    def learn_number(self, number: int) -> None:
        """Something that is stored has this number."""
        self._held[number] = self._held.get(number, 0) + 1

    def release_number(self, number: int) -> None:
        """Something that had it is gone, or has it no more."""
        left = self._held.get(number, 0) - 1
        if left > 0:
            self._held[number] = left
        else:
            self._held.pop(number, None)

    def take(self, number: int) -> None:
        """A write is under way that will have something hold it."""
        self._taken.add(number)

    def settle(self, number: int) -> None:
        """That write is over."""
        self._taken.discard(number)

    def under_way(self) -> set[int]:
        """What writes that are not done yet will have something hold."""
        return set(self._taken)

    def pick(self, low: int, high: int) -> int | None:
        """A number from C{low} to C{high} that is free: by chance while many are, by search when few are."""
        if low > high:
            return None
        start: int = low
        for _ in range(16):
            start = random.randint(low, high)
            if not self.in_use(start):
                return start
        for step in range(min(high - low, self.most()) + 1):
            candidate = low + (start - low + step) % (high - low + 1)
            if not self.in_use(candidate):
                return candidate
        return None

    def most(self) -> int:
        """No more than so many are in use: a range may be far larger."""
        return len(self._held) + len(self._taken)


class ClusterIPAllocator(Numbers):
    """
    The addresses of one family, for services.

    Addresses that clients do not choose come from the upper part of the range as long as there are any, so that the
    lower part, where people choose theirs, stays free; from other ranges only when this one is full.

    @ivar network: The range of the command line.
    """

    def __init__(self, cidr: str) -> None:
        """
        @param cidr: One range of C{--service-cluster-ip-range}.
        @raise ValueError: It is none.
        """
        super().__init__()
        self._range = AddressRange.read(cidr)
        #: Those that are added besides, by how many ServiceCIDRs.
        self._more: dict[AddressRange, int] = {}
        self.network = self._range.network
        self.family = "IPv4" if self.network.version == 4 else "IPv6"
        self.size = self._range.size

    def add(self, more: AddressRange) -> None:
        """Addresses of this range can be had, too."""
        if more.network.version == self.network.version and more != self._range:
            self._more[more] = self._more.get(more, 0) + 1

    def remove(self, more: AddressRange) -> None:
        """Somebody who has added a range does no longer."""
        left = self._more.pop(more, 0) - 1
        if left > 0:
            self._more[more] = left

    def allocate(self, text: str) -> None:
        """
        Take this address.

        @raise AllocationError: It is taken or out of the range.
        """
        self.allocations.count("static", lambda: self._allocate(text))

    def try_out(self, text: str) -> None:
        """
        Look whether an address could be taken, for a dry run: who has it is not asked then.

        @raise AllocationError: It is out of the range, which is then told in other words than by L{allocate}.
        """
        if not self._covers(text):
            raise AllocationError(
                f"the provided IP ({text}) is not in the valid range. The range of valid IPs is {self.network}"
            )

    def _covers(self, text: str) -> bool:
        address = ip_address(text)
        return self._range.covers(address) or any(more.covers(address) for more in self._more)

    def _allocate(self, text: str) -> None:
        if not self._covers(text):
            raise AllocationError("the provided network does not match the current range")
        number = int(ip_address(text))
        if self.in_use(number):
            raise AllocationError("provided IP is already allocated")
        self.take(number)

    def allocate_next(self) -> str:
        """
        Take any address.

        @raise AllocationError: All are taken.
        """
        return self.allocations.count("dynamic", self._allocate_next)

    def _allocate_next(self) -> str:
        for one in (self._range, *self._more):
            for low, high in ((one.split, one.last), (one.first, one.split - 1)):
                number = self.pick(low, high)
                if number is not None:
                    self.take(number)
                    return one.text(number)
        raise AllocationError("range is full")

    def number(self, text: str) -> int | None:
        """What an address is here; L{None} where it is of another family, or none at all."""
        try:
            address = ip_address(text)
        except ValueError:
            return None
        return int(address) if address.version == self.network.version else None

    def has(self, text: str) -> bool:
        """Whether an address is in use."""
        return self.in_use(int(ip_address(text)))


class NodePortAllocator(Numbers):
    """
    The ports that services have on every node; those that clients do not choose come from the upper part first.

    @ivar elsewhere: Says of a port whether the servers that share the storage have agreed that it is taken.
    """

    def __init__(self, low: int = 30000, high: int = 32767) -> None:
        super().__init__()
        self.low = low
        self.high = high
        self.elsewhere: Callable[[int], bool] | None = None

    def in_use(self, number: int) -> bool:
        """See L{Numbers.in_use}."""
        return super().in_use(number) or (self.elsewhere is not None and self.elsewhere(number))

    def most(self) -> int:
        """See L{Numbers.most}."""
        return super().most() if self.elsewhere is None else self.high - self.low

    def held(self) -> set[int]:
        """The ports in the range that services have."""
        return {port for port in self._held if self.low <= port <= self.high}

    def allocate(self, port: int, *, anywhere: bool = False) -> None:
        """
        Take this port.

        @param anywhere: Whether it may be out of the range, as dry runs do not look at that.
        @raise AllocationError: It is taken or out of the range.
        """
        self.allocations.count("static", lambda: self._allocate(port, anywhere))

    def _allocate(self, port: int, anywhere: bool) -> None:
        if not anywhere and not self.low <= port <= self.high:
            raise AllocationError(
                f"provided port is not in the valid range. The range of valid ports is {self.low}-{self.high}"
            )
        if self.in_use(port):
            raise AllocationError("provided port is already allocated")
        self.take(port)

    def allocate_next(self) -> int:
        """
        Take any port.

        @raise AllocationError: All are taken.
        """
        return self.allocations.count("dynamic", self._allocate_next)

    def _allocate_next(self) -> int:
        count = self.high - self.low + 1
        split = self.low + (min(128, max(16, count // 32)) if count > 16 else 0)
        for low, high in ((split, self.high), (self.low, split - 1)):
            port = self.pick(low, high)
            if port is not None:
                self.take(port)
                return port
        raise AllocationError("range is full")


@frozen
class Holdings:
    """
    The numbers that something stored holds, each once.

    @ivar ranges: Those that it adds to what there is to be held.
    """

    addresses: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    ranges: tuple[AddressRange, ...] = ()


NO_HOLDINGS: Final = Holdings()


def holdings(service: JSONObject) -> Holdings:
    """What a service holds."""
    spec = service.get("spec") or {}
    return Holdings(tuple(dict.fromkeys(_ips(spec))), tuple(dict.fromkeys(_node_ports(spec))))


def added_ranges(service_cidr: JSONObject) -> Holdings:
    """What a ServiceCIDR adds."""
    return Holdings(ranges=tuple(AddressRange.read(cidr) for cidr in usable_ranges(service_cidr)))


@define
class Reservation:
    """What one write has taken, and what it lets go when it succeeds."""

    ips: list[str] = field(factory=list)
    ports: list[int] = field(factory=list)
    freed_ips: list[str] = field(factory=list)
    freed_ports: list[int] = field(factory=list)


class ServiceAllocator:
    """
    Gives services what they need, around the writes that store them.

    Call L{allocate} with the object before it is encoded, and L{settle} with what it returned when the write is done,
    has failed, or was none.
    """

    def __init__(self, ranges: Iterable[str] = ("10.0.0.0/24",), ports: NodePortAllocator | None = None) -> None:
        """
        @param ranges: C{--service-cluster-ip-range}: one range, or one of each family; the first is the default one.
        """
        self.ips = {one.family: one for one in (ClusterIPAllocator(cidr) for cidr in ranges)}
        self.families = list(self.ips)
        self.ports = ports or NodePortAllocator()

    # --- knowing

    def change(self, before: Holdings, now: Holdings) -> None:
        """Something that is stored holds other numbers than before; none before it was there, and when it is gone."""
        for allocator in self.ips.values():
            for more in now.ranges:
                allocator.add(more)
            for more in before.ranges:
                allocator.remove(more)
            for text in now.addresses:
                if (number := allocator.number(text)) is not None:
                    allocator.learn_number(number)
            for text in before.addresses:
                if (number := allocator.number(text)) is not None:
                    allocator.release_number(number)
        for port in now.ports:
            self.ports.learn_number(port)
        for port in before.ports:
            self.ports.release_number(port)

    # --- writing

    def allocate(self, obj: JSONObject, old: JSONObject | None, *, dry_run: bool = False) -> Reservation:
        """
        Fill in C{obj} what it asks for and does not have.

        @param old: The service before this update; L{None} for a new one.
        @raise APIStatusError: It can not be had (422); nothing is taken then.
        """
        reservation = Reservation()
        before = (old or {}).get("spec") or {}
        try:
            settle_families(obj, before, self.families)
            self._cluster_ips(obj, before, reservation, dry_run)
            self._node_ports(obj, before, reservation, dry_run)
            self._health_check(obj, before, reservation, dry_run)
        except BaseException:
            self.settle(reservation)
            raise
        return reservation

    def settle(self, reservation: Reservation) -> None:
        """The write is over: from now on counts what services hold."""
        for text in reservation.ips:
            for allocator in self.ips.values():
                if (number := allocator.number(text)) is not None:
                    allocator.settle(number)
        for port in reservation.ports:
            self.ports.settle(port)

    # --- addresses

    def _cluster_ips(self, obj: JSONObject, before: JSONObject, reservation: Reservation, dry_run: bool) -> None:
        """
        Allocate the addresses of a new service or those that an update adds, and release those that it removes.

        An update that changes an address allocates nothing: validation refuses it (C{updateClusterIPs} in C{alloc.go}).

        @param obj: The service; its addresses are set.
        @param before: The spec of the stored service; empty for a new one.
        @param reservation: Records allocated and released addresses.
        @param dry_run: Whether nothing is stored.
        """
        spec = obj["spec"]
        kind, families = spec.get("type"), spec.get("ipFamilies") or ()
        if not before or before.get("type") == "ExternalName":
            if kind != "ExternalName" and not is_headless(spec):
                self._take_addresses(obj, 0, reservation, dry_run)
            return
        held = _ips(before)
        if not held or is_headless(spec):
            return
        if kind == "ExternalName":
            reservation.freed_ips.extend(held)
        elif len(held) == 1 and len(families) == 2:
            self._take_addresses(obj, 1, reservation, dry_run)
        elif len(held) == 2 and len(families) == 1:
            reservation.freed_ips.append(held[1])

    def _take_addresses(self, obj: JSONObject, first: int, reservation: Reservation, dry_run: bool) -> None:
        """
        Allocate an address per family, the requested one or any.

        @param obj: The service; its addresses are set.
        @param first: Index of the first family.
        @param reservation: Records the addresses.
        @param dry_run: Whether nothing is stored.
        """
        spec = obj["spec"]
        addresses = list(spec.get("clusterIPs") or ())
        given = list(addresses)
        for index, family in enumerate(spec["ipFamilies"][first:], first):
            if index < len(addresses):
                self._take(obj, self.ips[family], addresses[index], given, reservation, dry_run)
                continue
            try:
                address = self.ips[family].allocate_next()
            except AllocationError as error:
                name = quoted(obj["metadata"].get("name", ""))
                text = f"failed to allocate a serviceIP for Service {name}: {error}"
                raise APIStatusError.internal(text) from None
            reservation.ips.append(address)
            addresses.append(address)
        spec["clusterIPs"] = addresses
        spec["clusterIP"] = addresses[0]

    def _take(
        self,
        obj: JSONObject,
        allocator: ClusterIPAllocator,
        address: str,
        given: list[str],
        reservation: Reservation,
        dry_run: bool,
    ) -> None:
        try:
            if dry_run:
                allocator.try_out(address)
            else:
                allocator.allocate(address)
        except AllocationError as error:
            text = str(error)
            cause = invalid("spec.clusterIPs", given, f"failed to allocate IP {address}: {text}")
            raise APIStatusError.invalid(_SERVICE, obj["metadata"].get("name", ""), [cause]) from None
        if not dry_run:
            reservation.ips.append(address)

    # --- ports

    def _node_ports(self, obj: JSONObject, before: JSONObject, reservation: Reservation, dry_run: bool) -> None:
        spec = obj["spec"]
        held = [port["nodePort"] for port in before.get("ports") or () if port.get("nodePort")]
        if spec.get("type") not in ("NodePort", "LoadBalancer"):
            reservation.freed_ports.extend(held)
        elif before:
            self._update_node_ports(obj, held, reservation, dry_run)
        else:
            self._new_node_ports(obj, reservation, dry_run)

    def _new_node_ports(self, obj: JSONObject, reservation: Reservation, dry_run: bool) -> None:
        """
        Allocate the node ports of a new service; ports with the same number in several protocols share one.

        See C{initNodePorts} in C{alloc.go}.
        """
        ports = obj["spec"].get("ports") or ()
        shared: dict[int, int] = {}
        for index, port in enumerate(ports):
            wanted, number = port.get("nodePort") or 0, port.get("port") or 0
            path = f"spec.ports[{index}].nodePort"
            if not wanted and not gets_node_ports(obj["spec"]):
                continue
            if number not in shared:
                # Any of the ports with this number may request a node port.
                asked = (one.get("nodePort") for one in ports if (one.get("port") or 0) == number)
                first = next(filter(None, asked), 0)
                if first:
                    self._take_port(obj, first, path, reservation, dry_run)
                port["nodePort"] = shared[number] = first or self._next_port(reservation)
            elif not wanted:
                port["nodePort"] = shared[number]
            elif wanted != shared[number]:
                self._take_port(obj, wanted, path, reservation, dry_run)

    def _update_node_ports(self, obj: JSONObject, held: list[int], reservation: Reservation, dry_run: bool) -> None:
        """
        Allocate the node ports that an update adds, and release those that it removes.

        See C{updateNodePorts} in C{alloc.go}.

        @raise APIStatusError: A node port cannot be allocated (422), or occurs twice in one protocol (500).
        """
        spec = obj["spec"]
        taken: set[int] = set()
        seen: set[tuple[str, int]] = set()
        for index, port in enumerate(spec.get("ports") or ()):
            number = port.get("nodePort") or 0
            if number:
                if number not in held and number not in taken:
                    self._take_port(obj, number, f"spec.ports[{index}].nodePort", reservation, dry_run)
                    taken.add(number)
            elif gets_node_ports(spec):
                port["nodePort"] = number = self._next_port(reservation)
            else:
                continue
            pair = (port.get("protocol") or "", number)
            if pair in seen:
                raise APIStatusError.unknown(f"duplicate nodePort: {{{pair[0]} {number}}}")
            seen.add(pair)
        numbers = {number for _, number in seen}
        reservation.freed_ports.extend(number for number in held if number not in numbers)

    def _next_port(self, reservation: Reservation) -> int:
        try:
            number = self.ports.allocate_next()
        except AllocationError as error:
            raise APIStatusError.internal(f"failed to allocate a nodePort: {error}") from None
        reservation.ports.append(number)
        return number

    def _take_port(self, obj: JSONObject, number: int, path: str, reservation: Reservation, dry_run: bool) -> None:
        try:
            self.ports.allocate(number, anywhere=dry_run)
        except AllocationError as error:
            cause = invalid(path, number, str(error))
            raise APIStatusError.invalid(_SERVICE, obj["metadata"].get("name", ""), [cause]) from None
        reservation.ports.append(number)

    def _health_check(self, obj: JSONObject, before: JSONObject, reservation: Reservation, dry_run: bool) -> None:
        """
        Allocate a port for health checks if a service begins to need one; an update does not change it.

        @param obj: The service; its port is set.
        @param before: The spec of the stored service; empty for a new one.
        @param reservation: Records the allocated or released port.
        @param dry_run: Whether nothing is stored.
        """
        spec = obj["spec"]
        needed = bool(before) and needs_health_check(before)
        if not needs_health_check(spec):
            if needed and before.get("healthCheckNodePort"):
                reservation.freed_ports.append(before["healthCheckNodePort"])
            return
        if needed:
            return
        wanted = spec.get("healthCheckNodePort") or 0
        if wanted:
            try:
                self.ports.allocate(wanted, anywhere=dry_run)
            except AllocationError as error:
                text = f"failed to allocate requested HealthCheck NodePort {wanted}: {error}"
                raise APIStatusError.internal(text) from None
            reservation.ports.append(wanted)
            return
        try:
            number = self.ports.allocate_next()
        except AllocationError as error:
            raise APIStatusError.internal(f"failed to allocate a HealthCheck NodePort {error}") from None
        reservation.ports.append(number)
        spec["healthCheckNodePort"] = number


def _ips(spec: JSONObject) -> list[str]:
    return [
        one for one in spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else ()) if one != "None"
    ]


def _node_ports(spec: JSONObject) -> list[int]:
    found = [port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")]
    if spec.get("healthCheckNodePort"):
        found.append(spec["healthCheckNodePort"])
    return found
