"""A server with lists of objects, such as classes, and calls of single plugins."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.admission import AdmissionAttributes
from kubetwist.api.errors import APIStatusError
from kubetwist.api.frozen import frozen
from kubetwist.api.resource import JSONObject, UserInfo
from tests.admission_plugins.fakes import Context


class Objects(Context):
    """A context with objects by resource."""

    def __init__(self, **result: list[JSONObject]) -> None:
        super().__init__()
        self._objects = result

    def get_decoded(self, group: str, resource: str, namespace: str, name: str) -> JSONObject | None:
        """See L{Context.get_decoded}."""
        return next((one for one in self.list_decoded(group, resource) if one["metadata"]["name"] == name), None)

    def list_decoded(self, group: str, resource: str, namespace: str = "") -> list[JSONObject]:
        """See L{Context.list_decoded}."""
        return [frozen(one) for one in self._objects.get(resource, [])]


def named(name: str, created: str = "2026-01-01T00:00:00Z", **fields: Any) -> JSONObject:
    """Return an object with a name."""
    meta = {"name": name, "creationTimestamp": created, **fields.pop("metadata", {})}
    return {"metadata": meta, **fields}


class ClassTestCase(SynchronousTestCase):
    """A test case of single plugins."""

    def call(
        self,
        method: Any,
        resource: str,
        obj: JSONObject,
        old: JSONObject | None = None,
        group: str = "",
        subresource: str = "",
        **result: list[JSONObject],
    ) -> Deferred[None]:
        """Call a plugin and return its result."""
        operation = "UPDATE" if old else "CREATE"
        context = Objects(**result)
        attributes = AdmissionAttributes(
            operation, group, "v1", resource, subresource, "", "ns", "x", obj, old, UserInfo("u"), False, context
        )
        return maybeDeferred(method, attributes)

    def assert_admitted(self, *arguments: Any, **named: Any) -> None:
        """Call a plugin that must admit the request."""
        self.successResultOf(self.call(*arguments, **named))

    def error_text(self, *arguments: Any, **named: Any) -> str:
        """Return the message of the rejection."""
        error = self.failureResultOf(self.call(*arguments, **named), APIStatusError).value
        assert isinstance(error, APIStatusError)
        self.assertEqual(error.code, 403)
        return error.message.partition("is forbidden: ")[2]
