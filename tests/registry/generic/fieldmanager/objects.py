"""Objects with managed fields, for tests."""

from __future__ import annotations

from typing import Any

import orjson

from kubetwist.api.featuregates import FeatureGates
from kubetwist.api.resource import JSONObject
from kubetwist.registry.generic.fieldmanager.manager import (
    BuiltInVersionConverter,
    FieldManager,
)
from kubetwist.registry.generic.fieldmanager.resetfields import reset_fields_filter
from kubetwist.registry.kinds import kinds_for
from tests.schema.release import definitions

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"


INFOS = {info.resource: info for info in kinds_for(set(definitions().gvks()), FeatureGates())}


def endpoint(resource: str, version: str = "v1", subresource: str = "") -> FieldManager:
    """Return the field manager of an endpoint."""
    info = INFOS[resource]
    kinds = {info.gvk(one).api_version: info.gvk(one) for one in info.known_versions}
    gvk = info.gvk(version)
    return FieldManager(
        gvk,
        BuiltInVersionConverter(definitions(), kinds),
        definitions().type_for(gvk).zero,
        stored=info.storage_kind,
        subresource=subresource,
        filters=dict.fromkeys(kinds, reset_fields_filter(info, subresource)),
    )


CONFIG_MAPS = endpoint("configmaps")


def config_map(**data: str) -> JSONObject:
    """Return a ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": data}


def created(obj: JSONObject, manager: str = "maker", fields: FieldManager = CONFIG_MAPS) -> JSONObject:
    """Return an object as it was created by POST."""
    obj = copied(obj)
    fields.update(None, obj, manager, NOW)
    return stored(obj)


def stored(obj: JSONObject) -> JSONObject:
    """Return an object as it is read from the store."""
    obj = copied(obj)
    obj["metadata"].update(uid="u-1", resourceVersion="7")
    obj.pop("kind", None)
    obj.pop("apiVersion", None)
    return obj


def copied(obj: JSONObject) -> JSONObject:
    """Return a deep copy of an object."""
    copy: JSONObject = orjson.loads(orjson.dumps(obj))
    return copy


def owners(obj: JSONObject) -> dict[str, Any]:
    """Return the fields of each manager."""
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"].get("managedFields", ())}


def updated(live: JSONObject, manager: str = "other", fields: FieldManager = CONFIG_MAPS, **parts: Any) -> JSONObject:
    """Return an object with changed fields, as it was updated."""
    obj = {**copied(live), **copied(parts)}
    fields.update(live, obj, manager, LATER)
    return stored(obj)
