"""
Publishes the CA bundle of the server as ConfigMap kube-root-ca.crt in every namespace.

@see: kubernetes, C{pkg/controller/certificates/rootcacertpublisher/publisher.go}.
"""

from __future__ import annotations

from typing import ClassVar, Final

from ..api.errors import APIStatusError
from ..api.record import Record
from ..api.resource import JSONObject
from ..registry.stores import decoded_object
from ..storage.cache.window import (
    ADDED,
    DELETED,
)
from .machinery.client import is_namespace_terminating_error
from .machinery.controller import Controller

CONFIG_MAP: Final = "kube-root-ca.crt"
_ANNOTATION: Final = "kubernetes.io/description"
_DESCRIPTION: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the"
    " internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes"
    " clusters."
)


class RootCAPublisher(Controller[str]):
    """Creates and corrects the ConfigMaps. Keys are the names of namespaces."""

    name: ClassVar[str] = "root-ca-certificate-publisher-controller"
    service_account: ClassVar[str] = "root-ca-cert-publisher"
    workers: ClassVar[int] = 5

    def register_handlers(self) -> None:
        """Register handlers for namespaces, the ConfigMaps and the CA bundle."""
        self._maps = self.watch("", "configmaps", self._map_changed)
        self._namespaces = self.watch("", "namespaces", self._namespace_changed)
        self.context.on_root_ca_changed(self._ca_bundle_changed)

    def _map_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        if record.name == CONFIG_MAP and event_type != ADDED:
            self.queue.add(record.namespace)

    def _namespace_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        if event_type != DELETED:
            self.queue.add(record.name)

    def _ca_bundle_changed(self) -> None:
        for namespace in self._namespaces.list():
            self.queue.add(namespace.name)

    async def sync(self, key: str) -> None:
        """See L{Controller.sync}."""
        namespace = self._namespaces.get("", key)
        if namespace is None or (decoded_object(namespace).get("status") or {}).get("phase") == "Terminating":
            return
        data = {"ca.crt": self.context.root_ca}
        existing = self._maps.get_decoded(key, CONFIG_MAP)
        if existing is None:
            meta = {"name": CONFIG_MAP, "namespace": key, "annotations": {_ANNOTATION: _DESCRIPTION}}
            try:
                await self.client.create("", "configmaps", {"metadata": meta, "data": data})
            except APIStatusError as error:
                if error.code != 404 and not is_namespace_terminating_error(error):
                    raise
            return
        if existing.get("data") == data and (existing["metadata"].get("annotations") or {}).get(_ANNOTATION):
            return

        def change(obj: JSONObject) -> None:
            obj["data"] = data
            obj["metadata"].setdefault("annotations", {})[_ANNOTATION] = _DESCRIPTION

        await self.client.update("", "configmaps", key, CONFIG_MAP, change)
