"""
Allocation of cluster IPs and node ports to services.

The numbers in use are those of the stored services and C{IPAddress} objects of all servers, which the allocator gets
from watches (L{kubetwist.registry.core.service.allocatorsync}), and those reserved by pending writes, so that
concurrent writes do not get the same number. The transaction of a write detects conflicts with other servers.

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
from .ipfamilies import default_ip_families
from .numberallocator import AllocationError
from .portallocator import NodePortAllocator
from .validation import gets_node_ports, is_headless, needs_health_check

_SERVICE: Final = GroupKind("", "Service")


@frozen
class ObservedAllocations:
    """
    The numbers that a stored object uses, without duplicates.

    @ivar ranges: The address ranges that the object adds for allocation.
    """

    addresses: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    ranges: tuple[AddressRange, ...] = ()


NO_ALLOCATIONS: Final = ObservedAllocations()


def allocations_of_service(service: JSONObject) -> ObservedAllocations:
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
    The allocator of addresses and ports for writes of services.

    Call L{allocate} with the object before it is encoded, and L{finish} with the reservation after the write, whether
    it succeeded, failed or did not take place.
    """

    def __init__(self, ranges: Iterable[str] = ("10.0.0.0/24",), ports: NodePortAllocator | None = None) -> None:
        """
        @param ranges: The ranges of C{--service-cluster-ip-range}: one, or one of each IP family; the first is the
            default.
        @param ports: The allocator of node ports.
        """
        self.ips = {allocator.family: allocator for allocator in (ClusterIPAllocator(cidr) for cidr in ranges)}
        self.families = list(self.ips)
        self.ports = ports or NodePortAllocator()

    # --- synchronization

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
        Allocate the missing addresses and ports of a service, and set them.

        @param obj: The service; modified.
        @param old: The stored service; L{None} when it is created.
        @param dry_run: Whether nothing is stored.
        @raise APIStatusError: The allocation failed (422); no number stays reserved.
        """
        reservation = Reservation()
        before = (old or {}).get("spec") or {}
        try:
            default_ip_families(obj, before, self.families)
            self._cluster_ips(obj, before, reservation, dry_run)
            self._node_ports(obj, before, reservation, dry_run)
            self._health_check(obj, before, reservation, dry_run)
        except BaseException:
            self.finish(reservation)
            raise
        return reservation

    def finish(self, reservation: Reservation) -> None:
        """Drop the reservations of a finished write; the stored services count from now on."""
        for text in reservation.ips:
            for allocator in self.ips.values():
                if (number := allocator.number(text)) is not None:
                    allocator.finish(number)
        for port in reservation.ports:
            self.ports.finish(port)

    # --- addresses

    def _cluster_ips(self, obj: JSONObject, before: JSONObject, reservation: Reservation, dry_run: bool) -> None:
        """
        Allocate the addresses of a new service or those that an update adds, and release those that it removes.

        An update that changes an address allocates nothing: validation rejects it (C{updateClusterIPs} in C{alloc.go}).

        @param obj: The service; its addresses are set.
        @param before: The spec of the stored service; empty for a new one.
        @param reservation: Records allocated and released addresses.
        @param dry_run: Whether nothing is stored.
        """
        spec = obj["spec"]
        kind, families = spec.get("type"), spec.get("ipFamilies") or ()
        if not before or before.get("type") == "ExternalName":
            if kind != "ExternalName" and not is_headless(spec):
                self._allocate_addresses(obj, 0, reservation, dry_run)
            return
        stored = _ips(before)
        if not stored or is_headless(spec):
            return
        if kind == "ExternalName":
            reservation.freed_ips.extend(stored)
        elif len(stored) == 1 and len(families) == 2:
            self._allocate_addresses(obj, 1, reservation, dry_run)
        elif len(stored) == 2 and len(families) == 1:
            reservation.freed_ips.append(stored[1])

    def _allocate_addresses(self, obj: JSONObject, first: int, reservation: Reservation, dry_run: bool) -> None:
        """
        Allocate an address for each IP family, the requested one or any.

        @param obj: The service; its addresses are set.
        @param first: Index of the first family.
        @param reservation: Records the addresses.
        @param dry_run: Whether nothing is stored.
        """
        spec = obj["spec"]
        addresses = list(spec.get("clusterIPs") or ())
        requested = list(addresses)
        for index, family in enumerate(spec["ipFamilies"][first:], first):
            if index < len(addresses):
                self._allocate_address(obj, self.ips[family], addresses[index], requested, reservation, dry_run)
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

    def _allocate_address(
        self,
        obj: JSONObject,
        allocator: ClusterIPAllocator,
        address: str,
        requested: list[str],
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
            field_error = invalid("spec.clusterIPs", requested, f"failed to allocate IP {address}: {text}")
            raise APIStatusError.invalid(_SERVICE, obj["metadata"].get("name", ""), [field_error]) from None
        if not dry_run:
            reservation.ips.append(address)

    # --- ports

    def _node_ports(self, obj: JSONObject, before: JSONObject, reservation: Reservation, dry_run: bool) -> None:
        spec = obj["spec"]
        stored = [port["nodePort"] for port in before.get("ports") or () if port.get("nodePort")]
        if spec.get("type") not in ("NodePort", "LoadBalancer"):
            reservation.freed_ports.extend(stored)
        elif before:
            self._update_node_ports(obj, stored, reservation, dry_run)
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
            node_port, number = port.get("nodePort") or 0, port.get("port") or 0
            path = f"spec.ports[{index}].nodePort"
            if not node_port and not gets_node_ports(obj["spec"]):
                continue
            if number not in shared:
                # Any of the ports with this number may request a node port.
                requested = (one.get("nodePort") for one in ports if (one.get("port") or 0) == number)
                first = next(filter(None, requested), 0)
                if first:
                    self._allocate_port(obj, first, path, reservation, dry_run)
                port["nodePort"] = shared[number] = first or self._next_port(reservation)
            elif not node_port:
                port["nodePort"] = shared[number]
            elif node_port != shared[number]:
                self._allocate_port(obj, node_port, path, reservation, dry_run)

    def _update_node_ports(self, obj: JSONObject, stored: list[int], reservation: Reservation, dry_run: bool) -> None:
        """
        Allocate the node ports that an update adds, and release those that it removes.

        See C{updateNodePorts} in C{alloc.go}.

        @raise APIStatusError: A node port cannot be allocated (422), or occurs twice in one protocol (500).
        """
        spec = obj["spec"]
        added: set[int] = set()
        seen: set[tuple[str, int]] = set()
        for index, port in enumerate(spec.get("ports") or ()):
            number = port.get("nodePort") or 0
            if number:
                if number not in stored and number not in added:
                    self._allocate_port(obj, number, f"spec.ports[{index}].nodePort", reservation, dry_run)
                    added.add(number)
            elif gets_node_ports(spec):
                port["nodePort"] = number = self._next_port(reservation)
            else:
                continue
            pair = (port.get("protocol") or "", number)
            if pair in seen:
                raise APIStatusError.unknown(f"duplicate nodePort: {{{pair[0]} {number}}}")
            seen.add(pair)
        numbers = {number for _, number in seen}
        reservation.freed_ports.extend(number for number in stored if number not in numbers)

    def _next_port(self, reservation: Reservation) -> int:
        try:
            number = self.ports.allocate_next()
        except AllocationError as error:
            raise APIStatusError.internal(f"failed to allocate a nodePort: {error}") from None
        reservation.ports.append(number)
        return number

    def _allocate_port(self, obj: JSONObject, number: int, path: str, reservation: Reservation, dry_run: bool) -> None:
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
        requested = spec.get("healthCheckNodePort") or 0
        if requested:
            try:
                self.ports.allocate(requested, anywhere=dry_run)
            except AllocationError as error:
                text = f"failed to allocate requested HealthCheck NodePort {requested}: {error}"
                raise APIStatusError.internal(text) from None
            reservation.ports.append(requested)
            return
        try:
            number = self.ports.allocate_next()
        except AllocationError as error:
            raise APIStatusError.internal(f"failed to allocate a HealthCheck NodePort {error}") from None
        reservation.ports.append(number)
        spec["healthCheckNodePort"] = number


def _ips(spec: JSONObject) -> list[str]:
    return [
        ip for ip in spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else ()) if ip != "None"
    ]


def _node_ports(spec: JSONObject) -> list[int]:
    found = [port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")]
    if spec.get("healthCheckNodePort"):
        found.append(spec["healthCheckNodePort"])
    return found
