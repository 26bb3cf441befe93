"""Allocator of node ports."""

from __future__ import annotations

from collections.abc import Callable

from .numberallocator import AllocationError, NumberAllocator


class NodePortAllocator(NumberAllocator):
    """
    The allocator of node ports. Dynamic allocation uses the upper part of the range first.

    @ivar low: The first port of the range.
    @ivar high: The last port of the range.
    """

    def __init__(
        self, low: int = 30000, high: int = 32767, is_allocated_in_storage: Callable[[int], bool] | None = None
    ) -> None:
        """
        @param low: The first port of the range.
        @param high: The last port of the range.
        @param is_allocated_in_storage: Returns whether a port is allocated in the object that servers share; L{None} if
            no other server uses the storage.
        """
        super().__init__()
        self.low = low
        self.high = high
        self._is_allocated_in_storage = is_allocated_in_storage

    def in_use(self, number: int) -> bool:
        """See L{NumberAllocator.in_use}."""
        return super().in_use(number) or (
            self._is_allocated_in_storage is not None and self._is_allocated_in_storage(number)
        )

    def max_in_use(self) -> int:
        """See L{NumberAllocator.max_in_use}."""
        return super().max_in_use() if self._is_allocated_in_storage is None else self.high - self.low

    def ports_in_use(self) -> set[int]:
        """Return the ports in the range that services use."""
        return {port for port in self._references if self.low <= port <= self.high}

    def allocate(self, port: int, *, anywhere: bool = False) -> None:
        """
        Allocate a requested port.

        @param anywhere: Whether the port may be out of the range, which dry runs do not check.
        @raise AllocationError: The port is in use or out of the range.
        """
        self.allocations.observe("static", lambda: self._allocate(port, anywhere))

    def _allocate(self, port: int, anywhere: bool) -> None:
        if not anywhere and not self.low <= port <= self.high:
            raise AllocationError(
                f"provided port is not in the valid range. The range of valid ports is {self.low}-{self.high}"
            )
        if self.in_use(port):
            raise AllocationError("provided port is already allocated")
        self.mark_pending(port)

    def allocate_next(self) -> int:
        """
        Allocate any free port.

        @raise AllocationError: All ports are in use.
        """
        return self.allocations.observe("dynamic", self._allocate_next)

    def _allocate_next(self) -> int:
        count = self.high - self.low + 1
        split = self.low + (min(128, max(16, count // 32)) if count > 16 else 0)
        for low, high in ((split, self.high), (self.low, split - 1)):
            port = self.pick(low, high)
            if port is not None:
                self.mark_pending(port)
                return port
        raise AllocationError("range is full")
