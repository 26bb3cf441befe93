"""Format C{kubectl create} commands that grant what RBAC denied, as pure functions of the request."""

from __future__ import annotations

import re
from shlex import quote

from ..api.authorization import AuthorizerAttributes
from ..api.resource import UserInfo
from ..api.users import split_service_account

_NOT_IN_NAMES = re.compile("[^a-z0-9]+")


def bind(attributes: AuthorizerAttributes, role: tuple[str, str]) -> str:
    """
    Return the command that binds the user to an existing role, in the namespace of the request if it has one.

    @param role: Kind and name; a C{Role} is in the namespace of the request.
    """
    kind, name = role
    words = ["kubectl", "create"]
    namespace = attributes.namespace if attributes.is_resource_request else ""
    words += ["rolebinding" if namespace else "clusterrolebinding", _name(attributes.user, name)]
    words += [f"--{kind.lower()}={name}", _subject(attributes.user)]
    if namespace:
        words.append(f"--namespace={namespace}")
    return " ".join(map(quote, words))


def create_role(attributes: AuthorizerAttributes) -> str:
    """Return the commands, one per line, that create a role for exactly this request and bind the user to it."""
    if attributes.is_resource_request:
        resource = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
        if attributes.subresource:
            resource += f"/{attributes.subresource}"
        target = [f"--resource={resource}"]
        if attributes.name:
            target.append(f"--resource-name={attributes.name}")
    else:
        resource = attributes.path
        target = [f"--non-resource-url={attributes.path}"]
    kind = "Role" if attributes.is_resource_request and attributes.namespace else "ClusterRole"
    name = _in_name(f"{attributes.verb}-{resource}")
    words = ["kubectl", "create", kind.lower(), name, f"--verb={attributes.verb}", *target]
    if kind == "Role":
        words.append(f"--namespace={attributes.namespace}")
    return " ".join(map(quote, words)) + "\n" + bind(attributes, (kind, name))


def _subject(user: UserInfo) -> str:
    account = split_service_account(user.name)
    return f"--user={user.name}" if account is None else f"--serviceaccount={account[0]}:{account[1]}"


def _name(user: UserInfo, role: str) -> str:
    account = split_service_account(user.name)
    return _in_name(f"{user.name if account is None else account[1]}-{role}")


def _in_name(text: str) -> str:
    return _NOT_IN_NAMES.sub("-", text.lower()).strip("-")[:63].rstrip("-")
