"""The other processes of a front and of the storage process, for L{kubetwist.server.peers.Peers}."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import isawaitable
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, DeferredList

if TYPE_CHECKING:
    from .control import ControlConnection
    from .fronts import Front, Fronts


class FrontPeers:
    """
    The other processes of a front, which are called through the storage process.

    @ivar functions: The functions that other processes may call, by name.
    @ivar control: The connection to the storage process, once there is one.
    """

    def __init__(self) -> None:
        self.functions: dict[str, Callable[..., object]] = {}
        self.control: ControlConnection | None = None

    def register(self, name: str, function: Callable[..., object]) -> None:
        """See L{kubetwist.server.peers.Peers.register}."""
        self.functions[name] = function

    async def call(self, name: str, *arguments: object) -> Sequence[object]:
        """See L{kubetwist.server.peers.Peers.call}."""
        assert self.control is not None, "the connection exists before the server"
        results: Sequence[object] = await self.control.call("call peers", name, arguments)
        return results


class StoragePeers:
    """
    The other processes of the storage process.

    @ivar functions: The functions that fronts may call, by name.
    @ivar fronts: The fronts, once there are any.
    """

    def __init__(self) -> None:
        self.functions: dict[str, Callable[..., object]] = {}
        self.fronts: Fronts | None = None

    def register(self, name: str, function: Callable[..., object]) -> None:
        """See L{kubetwist.server.peers.Peers.register}."""
        self.functions[name] = function

    async def call(self, name: str, *arguments: object) -> Sequence[object]:
        """See L{kubetwist.server.peers.Peers.call}."""
        return await self._call_fronts(None, name, arguments)

    async def call_peers(self, caller: Front, name: str, arguments: Sequence[object]) -> Sequence[object]:
        """
        Call a function in this process, and in all fronts but one.

        @param caller: The front that has all results.
        @param name: The name of the function.
        @param arguments: Its arguments.
        """
        of_fronts = Deferred.fromCoroutine(self._call_fronts(caller, name, arguments))
        result = self.functions[name](*arguments)
        if isawaitable(result):
            result = await result
        return [result, *await of_fronts]

    async def _call_fronts(self, caller: Front | None, name: str, arguments: Sequence[object]) -> Sequence[object]:
        if self.fronts is None:
            return []
        results = await DeferredList(self.fronts.call_peers(caller, name, *arguments), consumeErrors=True)
        return [result for succeeded, result in results if succeeded]
