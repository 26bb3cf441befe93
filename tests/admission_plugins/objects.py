"""A fake context of a few objects, and writes for admission plugins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubetwist.api.admission import AdmissionAttributes
from kubetwist.api.frozen import frozen
from kubetwist.api.resource import JSONObject, UserInfo
from tests.admission_plugins.fakes import Context


class Objects(Context):
    """A context with a dictionary of objects by resource and name."""

    def __init__(self, **result: JSONObject) -> None:
        super().__init__()
        self._objects = result

    def get_decoded(self, group: str, resource: str, namespace: str, name: str) -> JSONObject | None:
        """See L{Context.get_decoded}."""
        result = self._objects.get(f"{resource}_{name}".replace("-", "_"))
        return None if result is None else frozen(result)


async def call_plugin(method: Callable[[AdmissionAttributes], Any], attributes: AdmissionAttributes) -> None:
    """Call a plugin, synchronous or asynchronous."""
    answer = method(attributes)
    if answer is not None:
        await answer


def attributes(
    obj: JSONObject | None,
    resource: str = "pods",
    operation: str = "CREATE",
    context: Objects | None = None,
    name: str = "x",
    namespace: str = "ns",
    old: JSONObject | None = None,
) -> AdmissionAttributes:
    """Return the attributes of a write."""
    return AdmissionAttributes(
        operation, "", "v1", resource, "", "", namespace, name, obj, old, UserInfo("u"), False, context or Objects()
    )


ACCOUNT: JSONObject = {"metadata": {"name": "default"}}
