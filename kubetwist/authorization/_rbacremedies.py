"""Format C{kubectl create} commands that grant what RBAC denied, as pure functions of the request."""

from __future__ import annotations

import re
from shlex import quote

from ..api.authorization import AuthorizerAttributes
from ..api.resource import UserInfo
from ..api.users import split_service_account

_NOT_IN_NAMES = re.compile("[^a-z0-9]+")


def bind(question: AuthorizerAttributes, role: tuple[str, str]) -> str:
    """
    Return the command that binds the user to an existing role, in the namespace of the request if it has one.

    @param role: Kind and name; a C{Role} is in the namespace of the request.
    """
    kind, name = role
    words = ["kubectl", "create"]
    where = question.namespace if question.is_resource_request else ""
    words += ["rolebinding" if where else "clusterrolebinding", _name(question.user, name)]
    words += [f"--{kind.lower()}={name}", _subject(question.user)]
    if where:
        words.append(f"--namespace={where}")
    return " ".join(map(quote, words))


def create_role(question: AuthorizerAttributes) -> str:
    """Return the commands, one per line, that create a role for exactly this request and bind the user to it."""
    if question.is_resource_request:
        resource = f"{question.resource}.{question.group}" if question.group else question.resource
        if question.subresource:
            resource += f"/{question.subresource}"
        target = [f"--resource={resource}"]
        if question.name:
            target.append(f"--resource-name={question.name}")
    else:
        resource = question.path
        target = [f"--non-resource-url={question.path}"]
    kind = "Role" if question.is_resource_request and question.namespace else "ClusterRole"
    name = _in_name(f"{question.verb}-{resource}")
    words = ["kubectl", "create", kind.lower(), name, f"--verb={question.verb}", *target]
    if kind == "Role":
        words.append(f"--namespace={question.namespace}")
    return " ".join(map(quote, words)) + "\n" + bind(question, (kind, name))


def _subject(user: UserInfo) -> str:
    account = split_service_account(user.name)
    return f"--user={user.name}" if account is None else f"--serviceaccount={account[0]}:{account[1]}"


def _name(user: UserInfo, role: str) -> str:
    account = split_service_account(user.name)
    return _in_name(f"{user.name if account is None else account[1]}-{role}")


def _in_name(text: str) -> str:
    return _NOT_IN_NAMES.sub("-", text.lower()).strip("-")[:63].rstrip("-")
