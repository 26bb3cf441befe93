"""What an admission plugin sees of a request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from attrs import define

from ..api.resource import JSONObject, UserInfo


class AdmissionContext(Protocol):
    """What plugins may ask the server for."""

    def lookup(self, group: str, resource: str, namespace: str, name: str) -> JSONObject | None:
        """A copy of a stored object from the watch caches, without I/O; L{None} when there is none."""

    def lookup_all(self, group: str, resource: str, namespace: str) -> list[JSONObject]:
        """Copies of all objects of a namespace, likewise."""

    async def amend(
        self, group: str, resource: str, namespace: str, name: str, change: Callable[[JSONObject], None]
    ) -> None:
        """
        Change the status of a stored object, as the server itself.

        @param change: Called with the newest state, which it changes; again after a conflict.
        @raise APIStatusError: There is no such object; or whatever C{change} raises.
        """


@define
class AdmissionAttributes:
    """
    One write on its way in.

    @ivar object: What will be stored; mutating plugins change it in place. L{None} for DELETE.
    @ivar old_object: What is stored now, a copy made for this request; L{None} for CREATE.
    @ivar operation: C{CREATE}, C{UPDATE}, C{DELETE} or C{CONNECT}.
    @ivar resource: The plural; C{subresource} is C{""} for the main resource.
    @ivar version: The version that C{object} is in, which is the one it is stored in.
    """

    operation: str
    group: str
    version: str
    resource: str
    subresource: str
    kind: str
    namespace: str
    name: str
    object: JSONObject | None
    old_object: JSONObject | None
    user: UserInfo
    dry_run: bool
    context: AdmissionContext
