"""Implements L{kubetwist.api.admission.AdmissionContext} with the stores of the server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from twisted.internet.interfaces import IReactorTime

from ..api.admission import RENAMED_CONTEXT_METHODS, Commit
from ..api.errors import APIStatusError
from ..api.featuregates import FeatureGates, parse_release
from ..api.options import CreateOptions
from ..api.renamed import renamed_attributes
from ..api.requestscope import RequestScope
from ..api.resource import GroupResource, JSONObject
from ..api.storage import Write
from ..interfaces import IAuthorizer
from ..storage.errors import KeyNotFound, RevisionConflict
from .generic.bootstrap import SERVER
from .generic.objectwait import wait_for_object
from .generic.store import Store
from .generic.updates import ATTEMPTS
from .stores import Stores, decoded_object
from .versions import VersionConverter

if TYPE_CHECKING:
    from ..client.factory import ClientFactory
    from ..schema.definitions import Definitions

#: The release of a server without type definitions.
NEWEST_RELEASE: Final = "1.36"


class ServerAdmissionContext:
    """
    The services of the server for admission plugins.

    L{kubetwist.api.admission.AdmissionContext} describes the methods.

    @ivar stores: The stores; those of built-in resources are added before the first write.
    @ivar definitions: The type definitions of the release; L{None} in servers without them.
    @ivar versions: The mapper between the served versions of resources.
    @ivar reactor: The reactor, or a clock in tests.
    @ivar authorizer: The authorizer of further permissions; L{None} if none are granted.
    @ivar outgoing: The factory of clients for other servers; L{None} if no server is called.
    @ivar toleration_seconds: Seconds until pods are evicted from nodes that are not ready, and from unreachable ones.
    @ivar features: The feature gates and the release of the server.
    """

    def __init__(
        self,
        stores: Stores,
        reactor: IReactorTime,
        *,
        definitions: Definitions | None = None,
        authorizer: IAuthorizer | None = None,
        outgoing: ClientFactory | None = None,
        toleration_seconds: tuple[int, int] = (300, 300),
        features: FeatureGates | None = None,
    ) -> None:
        self.stores = stores
        self.reactor = reactor
        self.definitions = definitions
        self.authorizer = authorizer
        self.outgoing = outgoing
        self.toleration_seconds = toleration_seconds
        self.features = features or FeatureGates(parse_release(self.release))
        self.versions = VersionConverter(stores, definitions)
        # Plugins call these methods in every request: attributes save a call.
        self.get_copy = stores.get_copy
        self.list_copies = stores.list_copies
        self.get_decoded = stores.get_decoded
        self.list_decoded = stores.list_decoded
        self.list_lazy = stores.list_lazy
        self.ensure_cached = stores.ensure_cached
        self.resources_for_kind = stores.resources_for_kind

    if not TYPE_CHECKING:
        __getattr__ = renamed_attributes("AdmissionContext", RENAMED_CONTEXT_METHODS)

    @property
    def release(self) -> str:
        """See L{kubetwist.api.admission.AdmissionContext.release}."""
        return NEWEST_RELEASE if self.definitions is None else self.definitions.minor

    async def wait_for_object(
        self, group: str, resource: str, namespace: str, name: str, seconds: float
    ) -> JSONObject | None:
        """
        See L{kubetwist.api.admission.AdmissionContext.wait_for_object}.

        @param seconds: The timeout.
        """
        store = self.stores.find_cached(group, resource)
        if store is None:
            return None
        await store.cache.on_demand.ensure()
        record = await wait_for_object(store.cache, store.cache_key(namespace, name), seconds, self.reactor)
        return None if record is None else decoded_object(record)

    async def create(self, group: str, resource: str, namespace: str, obj: JSONObject) -> None:
        """
        See L{kubetwist.api.admission.AdmissionContext.create}.

        @param obj: The object in the stored version; its defaults are set.
        """
        store = self.stores.get(group, resource)
        store.strategy.default(obj)
        await store.create(RequestScope(namespace), obj, CreateOptions())

    async def commit_with_status_updates(
        self,
        commit: Commit,
        group: str,
        resource: str,
        namespace: str,
        names: Sequence[str],
        change: Callable[[JSONObject], None],
    ) -> int:
        """
        See L{kubetwist.api.admission.AdmissionContext.commit_with_status_updates}, which describes the parameters.

        @raise APIStatusError: The objects still conflict after all attempts (409).
        """
        store = self.stores.get(group, resource)
        for _ in range(ATTEMPTS):
            writes = [write for name in names if (write := self._status_write(store, namespace, name, change))]
            try:
                revision = await commit(writes)
            except (RevisionConflict, KeyNotFound) as error:
                if all(error.key != write.key for write in writes):
                    raise
                # A concurrent write changed one of the objects: retry with its new state.
                await store.cache.wait_until_fresh_or_timeout(error.revision)
                continue
            await store.cache.wait_until_fresh_or_timeout(revision)
            return revision
        raise APIStatusError.modified(GroupResource(group, resource), names[0])

    def _status_write(
        self, store: Store, namespace: str, name: str, change: Callable[[JSONObject], None]
    ) -> Write | None:
        """Return the write that changes the status of an object; L{None} if nothing changes."""
        key = store.cache_key(namespace, name)
        record = store.cache.get(key)
        if record is None:
            return None
        old, new = store.decode_record(record), store.decode_record(record)
        change(new)
        if new == old:
            return None
        store.update_managed_fields(old, new, "status", SERVER)
        draft = store.encode(new)
        return Write(store.storage_key(key), store.encode_value(draft), record.revision, store.ttl, draft)
