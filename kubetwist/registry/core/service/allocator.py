"""
Allocation of cluster IPs and node ports to services.

What is in use is what services and C{IPAddress} objects hold, whoever wrote them: the allocator follows their caches
(L{kubetwist.registry.core.service.allocatorsync}). Besides, a number belongs to the write that is to store it, until
that is done or has failed, so that concurrent writes never get the same one. What other servers do at that moment is
noticed by the transaction of the write.

See kubernetes, C{pkg/registry/core/service/storage/alloc.go}.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from attrs import define, field, frozen

from ....api.errors import APIStatusError, invalid
from ....api.go.quote import quoted
from ....api.resource import GroupKind, JSONObject
from .addressranges import AddressRange, usable_ranges
from .ipallocator import ClusterIPAllocator
from .ipfamilies import settle_families
from .numberallocator import AllocationError
from .portallocator import NodePortAllocator
from .validation import gets_node_ports, is_headless, needs_health_check

_SERVICE: Final = GroupKind("", "Service")


@frozen
class ObservedAllocations:
    """
    The numbers that a stored object holds, each once.

    @ivar ranges: The address ranges that it adds for allocation.
    """

    addresses: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    ranges: tuple[AddressRange, ...] = ()


NO_ALLOCATIONS: Final = ObservedAllocations()


def holdings(service: JSONObject) -> ObservedAllocations:
    """Return the addresses and ports of a service."""
    spec = service.get("spec") or {}
    return ObservedAllocations(tuple(dict.fromkeys(_ips(spec))), tuple(dict.fromkeys(_node_ports(spec))))


def added_ranges(service_cidr: JSONObject) -> ObservedAllocations:
    """Return the ranges of a ServiceCIDR."""
    return ObservedAllocations(ranges=tuple(AddressRange.read(cidr) for cidr in usable_ranges(service_cidr)))


@define
class Reservation:
    """The numbers that one write has allocated, and those that it releases when it succeeds."""

    ips: list[str] = field(factory=list)
    ports: list[int] = field(factory=list)
    freed_ips: list[str] = field(factory=list)
    freed_ports: list[int] = field(factory=list)


class ServiceAllocator:
    """
    Allocates addresses and ports of services, around the writes that store them.

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

    def change(self, before: ObservedAllocations, now: ObservedAllocations) -> None:
        """Replace the numbers of a stored object: none before its creation and after its deletion."""
        for allocator in self.ips.values():
            for more in now.ranges:
                allocator.add(more)
            for more in before.ranges:
                allocator.remove(more)
            for text in now.addresses:
                if (number := allocator.number(text)) is not None:
                    allocator.add_reference(number)
            for text in before.addresses:
                if (number := allocator.number(text)) is not None:
                    allocator.drop_reference(number)
        for port in now.ports:
            self.ports.add_reference(port)
        for port in before.ports:
            self.ports.drop_reference(port)

    # --- writing

    def allocate(self, obj: JSONObject, old: JSONObject | None, *, dry_run: bool = False) -> Reservation:
        """
        Set the addresses and ports in C{obj} that it needs and does not have.

        @param old: The service before this update; L{None} for a new one.
        @raise APIStatusError: The allocation failed (422); no number stays allocated.
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
        """Drop the reservations of a finished write; the stored services count from now on."""
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
                allocator.check_in_range(address)
            else:
                allocator.allocate(address)
        except AllocationError as error:
            text = str(error)
            field_error = invalid("spec.clusterIPs", given, f"failed to allocate IP {address}: {text}")
            raise APIStatusError.invalid(_SERVICE, obj["metadata"].get("name", ""), [field_error]) from None
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
            field_error = invalid(path, number, str(error))
            raise APIStatusError.invalid(_SERVICE, obj["metadata"].get("name", ""), [field_error]) from None
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
