"""Construction parameters of stores: the resource, and the components that all stores of a server share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from attrs import field, frozen

from ...admission.chain import AdmissionChain
from ...api.admission import AdmissionContext
from ...api.featuregates import FeatureGates
from ...api.resource import GroupVersionKind, JSONObject
from ...api.tables import Describe, TableDefinition
from ...interfaces import IStorageBackend
from ...storage.cache.reader import Codec
from ...storage.cache.watchcache import WatchCache
from .resourceinfo import ResourceInfo
from .strategy import Strategy

if TYPE_CHECKING:
    from .fieldmanager.serverfields import ServerFields
    from .storedprotobuf import StoredProtobuf


@frozen(eq=False)
class StoredResource:
    """
    A resource whose objects are stored, with the options of its storage.

    @ivar info: The resource.
    @ivar find_strategy: Returns the strategy of its kind; called at the first use.
    @ivar find_cache: Returns the cache of the resource; called with the function that decodes stored values.
    @ivar selectable: The fields that field selectors may name, with the functions that return their values.
    @ivar ttl: Seconds until objects expire; L{None} if they do not.
    @ivar cached: Whether reads are answered from the cache, and not from the backend; watches always use the cache.
    """

    info: ResourceInfo
    find_strategy: Callable[[], Strategy]
    find_cache: Callable[[Codec], WatchCache]
    selectable: tuple[tuple[str, Callable[[JSONObject], str]], ...] = ()
    ttl: float | None = None
    cached: bool = True


class StoredEncoder(Protocol):
    """The encoder of objects that are not stored as JSON."""

    def encode(self, gvk: GroupVersionKind, body: bytes) -> bytes:
        """
        Return the stored form of an object.

        @param body: The object as JSON, without kind and apiVersion.
        """


@frozen(eq=False)
class StoreEnvironment:
    """
    The components and options that all stores of a server share.

    @ivar backend: The storage.
    @ivar admission: The admission chain of all writes.
    @ivar context: The context of admission plugins.
    @ivar tables: Returns the Table of a built-in kind, as L{kubetwist.interfaces.ITableConvertor.table}.
    @ivar prefix: The prefix of all keys in the backend.
    @ivar fields: The field managers for writes by the server itself; L{None} to write no managed fields.
    @ivar protobuf: The codec of objects that are stored as protobuf; L{None} without type definitions.
    @ivar stores_protobuf: Whether objects are stored as protobuf, where kube-apiserver does so, instead of JSON.
    @ivar stores_cbor: Whether custom resources are stored as CBOR instead of JSON.
    @ivar delete_workers: Number of objects that one C{deletecollection} deletes concurrently.
    @ivar allows_privileged: Whether containers may be privileged.
    @ivar discards_unreadable: Whether objects that cannot be decoded can be deleted.
    @ivar features: The feature gates and the release of the server.
    @ivar zero_metadata: Metadata of built-in kinds that is encoded even if it is not set.
    """

    backend: IStorageBackend
    admission: AdmissionChain
    context: AdmissionContext
    tables: Callable[[GroupVersionKind, Describe], TableDefinition]
    prefix: str = "/registry/"
    fields: ServerFields | None = None
    protobuf: StoredProtobuf | None = None
    stores_protobuf: bool = False
    stores_cbor: bool = False
    delete_workers: int = 1
    allows_privileged: bool = True
    discards_unreadable: bool = False
    features: FeatureGates = field(factory=FeatureGates)
    zero_metadata: JSONObject = field(factory=dict)
