"""Attributes of requests for tests of authorizers."""

from __future__ import annotations

from kubetwist.api.authorization import AuthorizerAttributes
from kubetwist.api.resource import UserInfo

ALICE = UserInfo("alice", groups=("system:authenticated",))


def pods(user: UserInfo) -> AuthorizerAttributes:
    """Return the attributes of a list of pods by a user."""
    return AuthorizerAttributes(user, "list", version="v1", resource="pods", path="/api/v1/pods")
