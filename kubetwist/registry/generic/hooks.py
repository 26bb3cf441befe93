"""
The hooks of the generic store: what the store of a kind may override.

A kind extends the store in one way: a subclass of L{kubetwist.registry.generic.store.Store} overrides hooks, and
L{kubetwist.registry.assembly} constructs it for the resource. Hooks are marked with L{hook}; nothing else is
overridden. Rules that need neither the storage nor other objects belong to the kind's strategy instead. See
F{docs/decisions/0006-stores-are-extended-by-hooks.md}.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, Final, TypeVar

from ...api.options import DeleteOptions, ListOptions, WriteOptions
from ...api.record import Record
from ...api.requestscope import RequestScope
from ...api.resource import JSONObject
from ...interfaces import IWatch, IWatchSink
from . import deletion
from .allocation import NO_ALLOCATION, Allocation

_Result = TypeVar("_Result")
_Method = TypeVar("_Method", bound=Callable[..., Any])
_MARK: Final = "is_hook"


def hook(method: _Method) -> _Method:
    """Mark a method that the store of a kind may override."""
    setattr(method, _MARK, True)
    return method


def is_hook(method: object) -> bool:
    """Return whether a method is marked as a hook."""
    return bool(getattr(method, _MARK, False))


class StoreHooks:
    """
    Hooks that do nothing by default. Further ones are in L{kubetwist.registry.generic.objects.StoreBase}.

    @cvar converts: Whether objects are converted for clients by L{converted}.
    @cvar interruptions: Errors of updates after which L{resume} makes another attempt possible.
    """

    converts: bool = False
    interruptions: tuple[type[Exception], ...] = ()

    @hook
    def on_cache_synced(self) -> None:
        """Initialize state from the cache, which is filled; no request has been served yet."""

    # --- reading

    @hook
    async def ensure_converted(self, records: Iterable[Record]) -> None:
        """
        Convert records whose conversion is asynchronous, before L{StoreBase.decode_record} is called for them.

        @raise APIStatusError: The conversion failed.
        """

    @hook
    async def converted(self, result: _Result | Awaitable[_Result]) -> _Result:
        """
        Convert the result of a request; only called if L{converts}.

        @param result: A record or listing, or an awaitable of one.
        """
        return (await result) if isinstance(result, Awaitable) else result

    @hook
    async def watch_converted(self, scope: RequestScope, options: ListOptions, sink: IWatchSink) -> IWatch:
        """Start a watch whose objects are converted; only called if L{converts}."""
        raise NotImplementedError

    # --- creating and updating

    @hook
    def begin_create(self, obj: JSONObject) -> None:
        """
        Check, before admission, whether an object may be created.

        @raise APIStatusError: The object must not be created.
        """

    @hook
    async def check_escalation(
        self, scope: RequestScope, obj: JSONObject, old: JSONObject | None, options: WriteOptions
    ) -> None:
        """
        Check the write for privilege escalation, for kinds that grant permissions.

        @param obj: The object after mutating admission, before all other checks.
        @param old: The stored object; L{None} when it is created.
        @raise APIStatusError: The user lacks a permission that the object grants (403).
        """

    @hook
    def guard(
        self, scope: RequestScope, obj: JSONObject, old: JSONObject | None, options: WriteOptions
    ) -> AbstractContextManager[RequestScope] | None:
        """
        Return a context manager around one attempt to write an object; L{None} for none.

        It provides the scope of the attempt, and may replace errors.
        """
        return None

    @hook
    def reserve(self, obj: JSONObject, old: JSONObject | None, dry_run: bool) -> Allocation:
        """
        Allocate shared resources that a valid object needs, and set them in the object.

        @param old: The stored object; L{None} when it is created.
        @return: The allocation, to be committed or cancelled; also in a dry run.
        """
        return NO_ALLOCATION

    @hook
    async def dry_run_result(self, obj: JSONObject, scope: RequestScope) -> JSONObject:
        """Return the result of a dry run that would have created an object."""
        return obj

    @hook
    async def resume(self, interruption: Exception) -> None:
        """Prepare another attempt of an update that raised one of L{interruptions}."""

    # --- deleting

    @hook
    def check_delete(self, name: str) -> None:
        """
        Check whether an object may be deleted, from its name alone.

        @raise APIStatusError: The object must not be deleted.
        """

    @hook
    async def begin_deletion(
        self, scope: RequestScope, key: str, record: Record, options: DeleteOptions
    ) -> tuple[Record, bool] | None:
        """
        Mark an object as deleted, for kinds that are deleted in two steps.

        @param key: The key of the object in the cache.
        @param record: The current state of the object.
        @return: The result of the request; L{None} to continue with the deletion.
        """
        return None

    @hook
    def should_delete_during_update(self, obj: JSONObject, old: JSONObject) -> bool:
        """Return whether an update removes the last reason to keep a deleted object."""
        return deletion.should_delete_during_update(obj, old)

    @hook
    def deleted(self, obj: JSONObject) -> None:
        """Release the shared resources of a deleted object."""
