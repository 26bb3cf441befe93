"""
Store of ResourceClaims and ResourceClaimTemplates: admin access requires a label on the namespace.

See kubernetes, C{pkg/registry/resource/utils.go}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from ...api.errors import FieldError, forbidden
from ...api.resource import JSONObject
from ..generic.environment import StoredResource, StoreEnvironment
from ..generic.store import Store

if TYPE_CHECKING:
    from ..stores import Stores

_LABEL: Final = "resource.kubernetes.io/admin-access"


class ClaimStore(Store):
    """A store that checks admin access before validation."""

    def __init__(self, resource: StoredResource, environment: StoreEnvironment, stores: Stores) -> None:
        """
        @param stores: All stores, including the store of namespaces.
        """
        self._stores = stores
        super().__init__(resource, environment)

    def run_validation(
        self, validate: Callable[..., Sequence[FieldError]], *objects: JSONObject
    ) -> Sequence[FieldError]:
        """See L{kubetwist.registry.generic.objects.StoreBase.run_validation}; admin access is checked first."""
        path = _admin_access_path(*objects)
        errors = super().run_validation(validate, *objects)
        if not path or self._is_labelled(objects[0]["metadata"].get("namespace") or ""):
            return errors
        text = f"admin access to devices requires the `{_LABEL}: true` label on the containing namespace"
        return [forbidden(path, text), *errors]

    def _is_labelled(self, namespace: str) -> bool:
        namespaces = self._stores.get("", "namespaces")
        record = namespaces.cache.get(namespaces.cache_key("", namespace))
        return record is not None and record.labels.get(_LABEL) == "true"


def _admin_access_path(obj: JSONObject, old: JSONObject | None = None) -> str:
    """
    Return the path of the first new request for admin access; C{""} for none.

    It is in the spec of a new object, or in the allocation of a changed status. The spec of a claim is immutable.
    """
    if old is None:
        spec = obj.get("spec") or {}
        devices = spec.get("devices") or (spec.get("spec") or {}).get("devices") or {}
        place = _first(one.get("exactly") for one in devices.get("requests") or ())
        # The reference reports the path of claims for templates as well.
        return "" if place is None else f"spec.devices.requests[{place}].adminAccess"
    if _first(_results(old)) is not None:
        return ""
    place = _first(_results(obj))
    return "" if place is None else f"status.allocation.devices.results[{place}].adminAccess"


def _results(obj: JSONObject) -> list[JSONObject]:
    allocation = (obj.get("status") or {}).get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or []


def _first(requests: Iterable[JSONObject | None]) -> int | None:
    return next((place for place, one in enumerate(requests) if one is not None and one.get("adminAccess")), None)
