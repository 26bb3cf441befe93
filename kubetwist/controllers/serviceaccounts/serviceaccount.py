"""
Creates the service account C{default} in every namespace.

@see: kubernetes, C{pkg/controller/serviceaccount/serviceaccounts_controller.go}.
"""

from __future__ import annotations

from typing import ClassVar, Final

from ...api.errors import APIStatusError
from ...api.record import Record
from ...registry.stores import decoded_object
from ...storage.cache.window import DELETED
from ..machinery.client import is_namespace_terminating_error
from ..machinery.controller import Controller

DEFAULT: Final = "default"


class ServiceAccountController(Controller[str]):
    """Creates missing C{default} service accounts. Keys are the names of namespaces."""

    name: ClassVar[str] = "serviceaccount-controller"
    service_account: ClassVar[str] = "service-account-controller"
    workers: ClassVar[int] = 5

    def register_handlers(self) -> None:
        """Register handlers for namespaces and deleted service accounts."""
        self._accounts = self.watch("", "serviceaccounts", self._account_changed)
        self._namespaces = self.watch("", "namespaces", self._namespace_changed)

    def _account_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        if event_type == DELETED and record.name == DEFAULT:
            self.queue.add(record.namespace)

    def _namespace_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        if event_type != DELETED:
            self.queue.add(record.name)

    async def sync(self, key: str) -> None:
        """See L{Controller.sync}."""
        namespace = self._namespaces.get("", key)
        if namespace is None or self._accounts.get(key, DEFAULT) is not None:
            return
        if (decoded_object(namespace).get("status") or {}).get("phase") == "Terminating":
            return
        try:
            await self.client.create("", "serviceaccounts", {"metadata": {"name": DEFAULT, "namespace": key}})
        except APIStatusError as error:
            if error.reason != "AlreadyExists" and not is_namespace_terminating_error(error):
                raise
