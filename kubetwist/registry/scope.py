"""What the store knows of the request it serves."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define

from ..api.resource import UserInfo


def discard(text: str) -> None:
    """A place for warnings that nobody reads: those of writes the server makes itself."""


#: Who the server is when it writes by itself.
SYSTEM_USER = UserInfo("system:apiserver", groups=("system:masters",))


@define
class RequestScope:
    """
    One request, as far as the rules of resources depend on it.

    @ivar namespace: From the path; C{""} for cluster-scoped resources and for all namespaces.
    @ivar warn: Takes a text for a Warning header.
    @ivar user_agent: As sent.
    """

    namespace: str = ""
    user: UserInfo = SYSTEM_USER
    warn: Callable[[str], object] = discard
    user_agent: str = ""
