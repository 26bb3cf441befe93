"""Namespaces of tests: created with what controllers put there, and deleted after the test."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import urlencode

from ..api.jsontypes import JSONObject
from ._adminclient import AdminClient
from ._connection import Connection

#: The label and the annotation of namespaces of tests: the name of the test in the form of a label, and its full name.
TEST_LABEL: Final = "kubetwist.dev/test"
#: Maximum length of the prefix before the five characters that the server adds to C{generateName}.
MAX_PREFIX: Final = 57
_MAX_LABEL: Final = 63
#: What controllers create in each namespace: the controller, and the path below the namespace.
_CREATED: Final = (
    ("serviceaccount-controller", "serviceaccounts/default"),
    ("root-ca-certificate-publisher-controller", "configmaps/kube-root-ca.crt"),
)
#: Seconds to wait for these objects.
CREATED_TIMEOUT: Final = 10.0
#: Seconds that deletions may still take at the end of the run before they are reported.
DELETED_TIMEOUT: Final = 2.0
_INTERVAL: Final = 0.005
_NAMESPACES: Final = "/api/v1/namespaces"


class NamespaceError(Exception):
    """A namespace could not be created; the text has the reason."""


def namespace_prefix(test: str) -> str:
    """Return the name of a test as the beginning of a namespace's name, with a hyphen at its end."""
    name = re.sub("[^a-z0-9]+", "-", test.lower()).strip("-") or "test"
    return f"{name[: MAX_PREFIX - 1].rstrip('-')}-"


def label_value(test: str) -> str:
    """Return the name of a test as the value of a label."""
    value = re.sub("[^A-Za-z0-9_.-]+", "-", test)
    return value[:_MAX_LABEL].strip("-_.")


def created_paths(arguments: Sequence[str]) -> list[str]:
    """
    Return what controllers create in each namespace, as paths below the namespace.

    @param arguments: The flags of the server.
    """
    from ..cli.flagtable import FLAGS
    from ..cli.flagtypes import parse_flags
    from ..controllers.machinery.selection import select_controllers

    default = next(flag.default for flag in FLAGS if flag.name == "controllers")
    items = parse_flags(FLAGS, arguments).get("controllers", default)
    enabled = {factory.name for factory in select_controllers(items)}
    return [path for controller, path in _CREATED if controller in enabled]


def create_namespace(connection: Connection, test: str, full_name: str, created: Iterable[str]) -> str:
    """
    Create a namespace, and wait for what controllers create in it.

    The server chooses the end of the name, so that names are unique for all clients of the server.

    @param connection: The server.
    @param test: The name of the test.
    @param full_name: The name of the test with its file.
    @param created: What controllers create, as L{created_paths} returns it.
    @return: The name.
    @raise NamespaceError: The server rejects the namespace, or the objects are not created in time.
    """
    meta = {
        "generateName": namespace_prefix(test),
        "labels": {TEST_LABEL: label_value(test)},
        "annotations": {TEST_LABEL: full_name},
    }
    with AdminClient(connection) as client:
        code, answer = client.request("POST", _NAMESPACES, {"metadata": meta})
        if code != 201:
            raise NamespaceError(f"cannot create a namespace for the test: {code}: {answer.get('message', answer)}")
        name: str = answer["metadata"]["name"]
        deadline = time.monotonic() + CREATED_TIMEOUT
        for path in created:
            while client.request("GET", f"{_NAMESPACES}/{name}/{path}")[0] != 200:
                if time.monotonic() > deadline:
                    raise NamespaceError(f"namespace {name} has no {path} after {CREATED_TIMEOUT:.0f} s")
                time.sleep(_INTERVAL)
    return name


def delete_namespace(connection: Connection, name: str) -> None:
    """Request the deletion of a namespace, without waiting for the end; it may not exist any more."""
    with AdminClient(connection) as client:
        client.request("DELETE", f"{_NAMESPACES}/{name}")


def remaining_namespaces(connection: Connection, names: Iterable[str]) -> list[str]:
    """
    Return a message for each namespace that cannot be deleted completely, with the reason.

    Deletions that are not finished yet are waited for, at most L{DELETED_TIMEOUT} seconds in total.

    @param names: The namespaces whose deletion was requested.
    """
    wanted = frozenset(names)
    deadline = time.monotonic() + DELETED_TIMEOUT
    with AdminClient(connection) as client:
        while True:
            _, listed = client.request("GET", f"{_NAMESPACES}?{urlencode({'labelSelector': TEST_LABEL})}")
            remaining = [
                one
                for one in listed.get("items", ())
                if one["metadata"]["name"] in wanted and "deletionTimestamp" in one["metadata"]
            ]
            if not remaining or time.monotonic() > deadline:
                return [_message(namespace) for namespace in remaining]
            time.sleep(_INTERVAL)


def _message(namespace: JSONObject) -> str:
    meta = namespace["metadata"]
    reasons = [
        condition["message"]
        for condition in namespace.get("status", {}).get("conditions") or ()
        if condition.get("status") == "True" and condition.get("message")
    ]
    test = (meta.get("annotations") or {}).get(TEST_LABEL, "")
    return f"namespace {meta['name']} of {test} is not deleted: {'; '.join(reasons) or 'its deletion is not finished'}"
