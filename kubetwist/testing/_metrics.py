"""Writes the metrics that tests set, as the ConfigMaps of L{kubetwist.controllers.fakekubelet.setmetrics}."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from decimal import Decimal
from hashlib import sha256
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from ._objectwatch import ObjectClient
from ._references import Reference, ResourceTable
from ._simulation import SimulationError, send

if TYPE_CHECKING:
    from ._connection import Connection

#: Seconds for the discovery of a resource.
_TIMEOUT: Final = 10.0
_APPLY: Final = "application/apply-patch+yaml"


def set_metric(
    connection: Connection,
    metric: str,
    value: str | float | Decimal | None,
    target: object,
    pods: str | None,
    namespace: str,
    labels: Mapping[str, str],
) -> None:
    """
    Write or remove a metric. See L{kubetwist.testing._simulation.SimulationMixin.set_metric}.

    @param connection: The connection of the admin.
    @param metric: The name of the metric.
    @param value: A quantity; L{None} removes the metric.
    @param target: The object that is described.
    @param pods: The label selector of the pods that are described.
    @param namespace: The namespace.
    @param labels: The labels of the metric.
    """
    from ..controllers.fakekubelet.setmetrics import LABEL, NAMESPACE, MetricSeries

    if not metric or "/" in metric:
        raise ValueError(f"invalid name of a metric: {metric!r}")
    if target is not None and pods is not None:
        raise ValueError("a metric describes an object or pods, not both")
    for key, one in labels.items():
        if any(sign in f"{key}{one}" for sign in ",=") or not key:
            raise ValueError(f"invalid label of a metric: {key!r}: {one!r}")
    data = {"metric": metric, "labels": ",".join(f"{key}={one}" for key, one in sorted(labels.items()))}
    default = namespace or connection.namespace or "default"
    if target is not None:
        resource, scope, name = _described(connection, target, default)
        data |= {"resource": resource, "namespace": scope, "name": name}
    elif pods is not None:
        data |= {"resource": "pods", "namespace": default, "selector": pods}
    else:
        data["namespace"] = namespace
    identity = json.dumps(sorted(data.items()))
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/kubetwist-metric-{sha256(identity.encode()).hexdigest()[:20]}"
    if value is None:
        code, content = connection.request("DELETE", path)
        if code not in (200, 404):
            message = content.get("message") if isinstance(content, dict) else content
            raise SimulationError(f"{message} ({code})")
        return
    data["value"] = str(value)
    # The server ignores invalid metrics.
    MetricSeries.parse(data)
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": path.rpartition("/")[2], "namespace": NAMESPACE, "labels": {LABEL: "true"}},
        "data": {name: text for name, text in data.items() if text},
    }
    send(connection, "PATCH", f"{path}?fieldManager={quote('kubetwist-tests')}&force=true", body, _APPLY)


def _described(connection: Connection, target: object, default: str) -> tuple[str, str, str]:
    """
    Return the resource with its group, the namespace and the name of an object.

    @param default: The namespace of an object that names none.
    """
    reference = Reference.of(target)
    if not reference.name:
        raise ValueError(f"{target!r} names no object: use text such as 'services/web'")
    client = ObjectClient(connection, time.monotonic() + _TIMEOUT)
    try:
        resource = ResourceTable.fetch(client.discover).find(reference)
    finally:
        client.disconnect()
    name = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
    return name, (reference.namespace or default) if resource.namespaced else "", reference.name
