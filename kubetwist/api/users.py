"""Users and groups that the API defines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .names import validate_dns1123_label, validate_dns1123_subdomain

if TYPE_CHECKING:
    from .resource import JSONObject, UserInfo

#: The user of requests without credentials.
ANONYMOUS: Final = "system:anonymous"
#: The group of all authenticated users.
AUTHENTICATED: Final = "system:authenticated"
#: The group of L{ANONYMOUS}.
UNAUTHENTICATED: Final = "system:unauthenticated"
#: The group with all permissions, independent of RBAC rules.
MASTERS: Final = "system:masters"
#: The group that may read metrics and health checks.
MONITORING: Final = "system:monitoring"
#: The group of all kubelets.
NODES: Final = "system:nodes"
_NODE: Final = "system:node:"
#: The group of all service accounts, and the prefix of the groups of one namespace.
SERVICE_ACCOUNTS: Final = "system:serviceaccounts"
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"


def service_account_user(namespace: str, name: str) -> str:
    """Return the user name of a service account."""
    return f"{_SERVICE_ACCOUNT}{namespace}:{name}"


def service_account_groups(namespace: str) -> tuple[str, ...]:
    """Return the groups of the service accounts of a namespace."""
    return SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}"


def split_service_account(user: str) -> tuple[str, str] | None:
    """Return the namespace and name in the user name of a service account; L{None} for other user names."""
    if not user.startswith(_SERVICE_ACCOUNT):
        return None
    namespace, separator, name = user.removeprefix(_SERVICE_ACCOUNT).partition(":")
    if not separator or validate_dns1123_label(namespace) or validate_dns1123_subdomain(name):
        return None
    return namespace, name


def split_node(user: str) -> str | None:
    """Return the node name in the user name of a kubelet; L{None} for other user names."""
    if not user.startswith(_NODE):
        return None
    name = user.removeprefix(_NODE)
    return None if validate_dns1123_subdomain(name) else name


def node_of(user: UserInfo) -> str | None:
    """Return the node name of a kubelet, C{""} if its user name has none; L{None} for other users."""
    if user.name.startswith(_NODE) and NODES in user.groups:
        return user.name.removeprefix(_NODE)
    return None


def user_object(user: UserInfo) -> JSONObject:
    """Return a user as an object for reviews, webhooks and policies."""
    shown: JSONObject = {"username": user.name}
    if user.uid:
        shown["uid"] = user.uid
    if user.groups:
        shown["groups"] = list(user.groups)
    if user.extra:
        shown["extra"] = {name: list(values) for name, values in user.extra.items()}
    return shown
