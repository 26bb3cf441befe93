"""Serves resources by storage objects, whose capabilities determine the verbs, names and Tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from attrs import evolve

from ..api.resource import GroupVersion
from ..http.negotiation import CUSTOM_PATCH_TYPES
from ..interfaces import IGetterWithOptions, INamedCreator, IResetFieldsProvider
from ..registry.customresources.codec import CustomCodec
from ..registry.customresources.fieldmanager import field_manager
from ..resources.capabilities import is_namespaced, produced_responses
from ..resources.customresources import CRDVersionHandlers, CustomResources
from ..resources.endpoint import Endpoint
from ..resources.install import VERBS, Handlers, verbs
from ..resources.servedresources import APIResource

if TYPE_CHECKING:
    from ..registry.customresources.crd import CustomVersion
    from ..registry.customresources.served import ServedResource


class StorageHandlers(CRDVersionHandlers):
    """The handlers of a version whose objects are in a storage object of the extension."""

    def __init__(self, served: ServedResource, version: CustomVersion, server: CustomResources, storage: Any) -> None:
        """@param storage: Provides the capabilities of C{kubetwist.interfaces} that are served."""
        super().__init__(served, version, server)
        self._storage = storage

    def subresources(self) -> set[str]:
        """See L{CRDVersionHandlers.subresources}."""
        return {""}

    def verbs(self) -> tuple[str, ...]:
        """See L{CRDVersionHandlers.verbs}."""
        return verbs(self._storage)

    def described(self) -> object:
        """See L{CRDVersionHandlers.described}."""
        return self._storage

    def api_resources(self) -> list[APIResource]:
        """See L{CRDVersionHandlers.api_resources}."""
        storage = self._storage
        options = storage.options_kind.kind if IGetterWithOptions.providedBy(storage) else ""
        produced = produced_responses(storage, self.verbs())
        return [evolve(super().api_resources()[0], options=options, produced=produced)]

    def handlers(self, subresource: str) -> dict[str, Callable[..., object]]:
        """See L{CRDVersionHandlers.handlers}."""
        version, definition, storage = self.version, self.version.definition, self._storage
        reset_fields = storage.reset_fields if IResetFieldsProvider.providedBy(storage) else {}
        endpoint = Endpoint(
            storage,
            definition.info,
            is_namespaced(storage, definition.name),
            GroupVersion(definition.group, version.name),
            version.gvk,
            CustomCodec(version),
            self._server.defer_to_thread,
            list_items_have_kind=True,
            list_kind=definition.list_kind,
            patch_types=CUSTOM_PATCH_TYPES,
            field_manager=field_manager(version, self.served.versions, reset_fields, ""),
            authorizer=self._server.authorizer,
            min_request_timeout=self._server.min_request_timeout,
            traced=self._server.traced,
        )
        handlers = Handlers(endpoint, self._server.reactor, self._server.flusher)
        # A subresource alone is created with a name in the path.
        served = [one for one in VERBS if one.capability.providedBy(storage) and one.capability is not INamedCreator]
        return {name: handlers.handler_for(verb) for verb in served for name in verb.names}
