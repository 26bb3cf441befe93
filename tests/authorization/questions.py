"""Questions to authorizers."""

from __future__ import annotations

from kubetwist.api.authorization import AuthorizerAttributes
from kubetwist.api.resource import UserInfo

ALICE = UserInfo("alice", groups=("system:authenticated",))


def pods(user: UserInfo) -> AuthorizerAttributes:
    """The question whether a user may list pods."""
    return AuthorizerAttributes(user, "list", version="v1", resource="pods", path="/api/v1/pods")
