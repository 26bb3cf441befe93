"""What a store is made of: its resource, and what all stores of a server share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from attrs import frozen

from ...admission.chain import AdmissionChain
from ...api.admission import AdmissionContext
from ...api.resource import JSONObject
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
    One resource, and how its objects are kept.

    @ivar info: The resource.
    @ivar strategy: The rules of its kind.
    @ivar find_cache: Given what decodes stored values, returns the cache of the resource.
    @ivar selectable: The fields that field selectors may name, and what reads them.
    @ivar ttl: Seconds that objects live; L{None} for ever.
    @ivar cached: Whether reads are answered from the cache; else they go to the backend (watches never do).
    """

    info: ResourceInfo
    strategy: Strategy
    find_cache: Callable[[Codec], WatchCache]
    selectable: tuple[tuple[str, Callable[[JSONObject], str]], ...] = ()
    ttl: float | None = None
    cached: bool = True


@frozen(eq=False)
class StoreEnvironment:
    """
    What all stores of a server share.

    @ivar backend: Where objects are stored.
    @ivar admission: The plugins that every write passes.
    @ivar context: What the plugins see of the server.
    @ivar prefix: The prefix of all keys in the backend.
    @ivar fields: Updates managed fields for writes of the server itself; L{None} leaves them out.
    @ivar protobuf: Converts objects that are stored as protobuf; L{None} where their types are not known.
    @ivar stores_protobuf: Whether objects are stored as protobuf, where kube-apiserver does so, and not as JSON.
    @ivar delete_workers: How many objects one C{deletecollection} deletes at a time.
    @ivar allows_privileged: Whether containers may be privileged.
    @ivar discards_unreadable: Whether objects that cannot be read can be deleted.
    """

    backend: IStorageBackend
    admission: AdmissionChain
    context: AdmissionContext
    prefix: str = "/registry/"
    fields: ServerFields | None = None
    protobuf: StoredProtobuf | None = None
    stores_protobuf: bool = False
    delete_workers: int = 1
    allows_privileged: bool = True
    discards_unreadable: bool = False
