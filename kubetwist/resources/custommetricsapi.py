"""
The APIs C{custom.metrics.k8s.io} (v1beta1, v1beta2) and C{external.metrics.k8s.io/v1beta1}: metrics that tests set.

@see: kubernetes-sigs/custom-metrics-apiserver, C{pkg/apiserver/installer}: the paths.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import orjson

from klein import Klein

from ..api.errors import APIStatusError
from ..api.resource import GroupVersion, GroupVersionKind, JSONObject
from ..api.selectors import EVERYTHING, LabelSelector, SelectorError, parse_label_selector
from ..controllers.fakekubelet.setmetrics import (
    ALL,
    CUSTOM_METRICS_GROUP,
    EXTERNAL_METRICS,
    MetricObjects,
    SetMetrics,
    value_of_v1beta1,
)
from ..http.negotiation import check_router
from ..http.request import KubeRequest
from .install import group_version_path
from .metricsapi import PRIORITY
from .mux import DelegatingMux
from .routing import RoutedApp, add_route, new_app
from .servedresources import APIResource, ServedResources

CUSTOM_METRICS: Final = (
    GroupVersion(CUSTOM_METRICS_GROUP, "v1beta2"),
    GroupVersion(CUSTOM_METRICS_GROUP, "v1beta1"),
)
_JSON: Final = "application/json"


class CustomMetricsAPI:
    """
    The APIs on a server of the chain.

    Discovery does not list each metric, but has one entry for each API: some clients take an empty list as an error.

    @ivar served_resources: Their entries in discovery.
    """

    def __init__(self, mux: DelegatingMux, metrics: SetMetrics) -> None:
        """
        @param mux: The server that serves the paths.
        @param metrics: The metrics.
        """
        self._metrics = metrics
        self.served_resources = ServedResources()
        for group_version in CUSTOM_METRICS:
            self._list(group_version, "pods", ALL, "MetricValueList")
            mux.handle_prefix(group_version_path(group_version), RoutedApp(partial(self._custom_app, group_version)))
        self._list(EXTERNAL_METRICS, "externalmetrics", "", "ExternalMetricValueList")
        mux.handle_prefix(group_version_path(EXTERNAL_METRICS), RoutedApp(self._external_app))

    def _list(self, group_version: GroupVersion, resource: str, subresource: str, kind: str) -> None:
        """Add the entry of an API to discovery."""
        group, version = group_version
        gvk = GroupVersionKind(group, version, kind)
        entry = APIResource(
            group, version, resource, subresource, gvk, False, "", True, verbs=("get",), documented=False
        )
        self.served_resources.set_group_version(group_version, [entry], PRIORITY)

    # --- custom metrics

    def _custom_app(self, group_version: GroupVersion) -> Klein:
        app, base = new_app(), group_version_path(group_version)

        def of_objects(request: KubeRequest, resource: str, name: str, metric: str, namespace: str = "") -> None:
            selector = _selector(request, "labelSelector")
            self._respond(request, group_version, MetricObjects(resource, namespace, name, selector), metric)

        def of_namespace(request: KubeRequest, name: str, metric: str) -> None:
            self._respond(request, group_version, MetricObjects("namespaces", "", name), metric)

        add_route(app, "GET", f"{base}/namespaces/<namespace>/<resource>/<name>/<metric>", of_objects)
        add_route(app, "GET", f"{base}/namespaces/<name>/metrics/<metric>", of_namespace)
        add_route(app, "GET", f"{base}/<resource>/<name>/<metric>", of_objects)
        return app

    def _respond(self, request: KubeRequest, group_version: GroupVersion, objects: MetricObjects, metric: str) -> None:
        values = self._metrics.custom(objects, metric, _selector(request, "metricLabelSelector"))
        if group_version.version == "v1beta1":
            values = [value_of_v1beta1(one) for one in values]
        _send(request, group_version, "MetricValueList", values)

    # --- external metrics

    def _external_app(self) -> Klein:
        app = new_app()
        add_route(app, "GET", f"{group_version_path(EXTERNAL_METRICS)}/namespaces/<namespace>/<metric>", self._external)
        return app

    def _external(self, request: KubeRequest, namespace: str, metric: str) -> None:
        values = self._metrics.external(namespace, metric, _selector(request, "labelSelector"))
        _send(request, EXTERNAL_METRICS, "ExternalMetricValueList", values)


def _selector(request: KubeRequest, name: str) -> LabelSelector:
    """
    Return a selector of the query.

    @raise APIStatusError: It is invalid.
    """
    texts = request.query.get(name)
    if not texts or not texts[0]:
        return EVERYTHING
    try:
        return parse_label_selector(texts[0])
    except SelectorError as error:
        raise APIStatusError.bad_request(str(error)) from None


def _send(request: KubeRequest, group_version: GroupVersion, kind: str, items: list[JSONObject]) -> None:
    check_router(request.header(b"accept"), (_JSON,))
    document = {"kind": kind, "apiVersion": str(group_version), "metadata": {}, "items": items}
    request.respond(200, orjson.dumps(document) + b"\n", _JSON.encode())
