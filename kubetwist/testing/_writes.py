"""Writes of tests, made by the code of the server below HTTP."""

from __future__ import annotations

from typing import Any, Final

import orjson
from attrs import frozen

from twisted.internet.defer import Deferred, execute
from twisted.web.resource import Resource
from zope.interface import implementer

from ..api.admission import CONNECT, CREATE, DELETE, OPERATIONS, UPDATE
from ..api.authorization import AuthorizerAttributes, Decision, Verdict
from ..api.featuregates import FeatureGates
from ..api.jsontypes import JSONObject
from ..api.options import CreateOptions, DeleteOptions, UpdateOptions, WriteOptions
from ..api.record import Record
from ..api.requestscope import RequestScope
from ..interfaces import IAuthorizer, ICreator, IGracefulDeleter, INamedCreator, IUpdater
from ..registry.core.servercontext import ServerContext
from ..registry.generic.admitting import admit_connection
from ..registry.generic.resourceinfo import ResourceInfo
from ..resources.customresources import CRDVersionHandlers
from ..resources.endpoint import Endpoint
from ..resources.handlers.watch import WatchFlusher
from ..resources.handlers.write import reset_system_fields
from ..resources.install import Installer
from ..resources.mux import DelegatingMux
from .memory import MemoryServer, decode_strictly, kind_of

#: The field manager of writes whose options name none.
MANAGER: Final = "test"
_OPTIONS: Final = {CREATE: CreateOptions, UPDATE: UpdateOptions, DELETE: DeleteOptions}


@frozen
class Target:
    """
    A request of a test.

    @ivar endpoint: The served resource or subresource; L{None} for CONNECT.
    @ivar obj: The object of the request; L{None} for DELETE.
    @ivar namespace: The namespace; C{""} for cluster-scoped resources.
    """

    operation: str
    info: ResourceInfo
    version: str
    subresource: str
    namespace: str
    name: str
    obj: JSONObject | None
    endpoint: Endpoint | None

    def default_options(self, dry_run: bool) -> Any:
        """Return the options of a request without options; L{None} for CONNECT."""
        make = _OPTIONS.get(self.operation)
        return None if make is None else make(dry_run=dry_run)


@implementer(IAuthorizer)
class _NoAuthorizer:
    """Allows nothing, for access reviews in a server without authorizer."""

    name = "none"

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict:
        """Return no opinion."""
        return Verdict(Decision.NO_OPINION)


class _CustomEndpoints:
    """What the endpoints of custom resources use of the server."""

    traced = False
    min_request_timeout = 1800.0
    features = FeatureGates()

    def __init__(self, server: MemoryServer) -> None:
        self.authorizer = server.context.authorizer
        self.defer_to_thread = execute


def find_endpoint(server: MemoryServer, info: ResourceInfo, version: str, subresource: str) -> Endpoint:
    """
    Return an endpoint as the server constructs it.

    @raise ValueError: There is no such version or subresource.
    """
    served = server.served(str(info.group_resource))
    if served is not None:
        custom = CRDVersionHandlers(served, served.definition.version(version), _CustomEndpoints(server))  # type: ignore[arg-type] # the part that endpoints use
        if subresource in custom.subresources():
            return custom.endpoint(subresource)
    else:
        authorizer = server.context.authorizer or _NoAuthorizer()
        context = ServerContext(
            server.stores,
            server.registry.environment,
            authorizer,
            lambda token, audiences: Deferred(),
        )
        reactor: Any = server.clock
        in_thread: Any = execute  # Nothing runs in threads, so that tests are synchronous.
        installer = Installer(
            DelegatingMux("tests", Resource()),
            context,
            server.definitions,
            reactor,
            WatchFlusher(reactor),
            defer_to_thread=in_thread,
        )
        for endpoint in installer.endpoints(info, version):
            if endpoint.subresource == subresource:
                return endpoint
    raise ValueError(f"{info.group_resource} has no subresource {subresource} in version {version}")


def _find_info(server: MemoryServer, obj: JSONObject | None, resource: str, subresource: str) -> ResourceInfo:
    """Return the resource of a name, or else of the kind of an object."""
    infos = [*server.stores.infos.values(), *(served.definition.info for served in server.all_served())]
    if resource:
        name, _, group = resource.partition(".")
        found = [info for info in infos if (info.resource, info.group) == (name, group)]
        if not found:
            raise ValueError(f"there is no resource {resource}")
        return found[0]
    if obj is None:
        raise ValueError("the resource is unknown: pass an object, or resource=")
    gvk = kind_of(obj)
    found = [info for info in infos if (info.kind, info.group) == (gvk.kind, gvk.group)]
    # Many subresources have another kind, such as PodExecOptions, which belongs to one resource.
    found += [
        info
        for info in infos
        if subresource and any((one.name, one.kind) == (subresource, gvk.kind) for one in info.subresources)
    ]
    if len({info.group_resource for info in found}) != 1:
        raise ValueError(f"the resource of kind {gvk.kind} in {gvk.api_version} is not unique: pass resource=")
    return found[0]


def find_target(
    server: MemoryServer,
    obj: JSONObject | None,
    old: JSONObject | None,
    operation: str,
    *,
    resource: str = "",
    subresource: str = "",
    name: str = "",
    namespace: str = "default",
) -> Target:
    """
    Return a request; C{old} is stored before.

    @param server: The server.
    @param obj: The object of the request.
    @param old: The stored object before the request; L{None} if there is none, or if it is stored already.
    @param operation: C{CREATE}, C{UPDATE}, C{DELETE} or C{CONNECT}.
    @param resource: The resource; C{""} derives it from C{old} or C{obj}.
    @param subresource: The subresource; C{""} for the main resource.
    @param name: The name; C{""} takes it from C{old} or C{obj}.
    @param namespace: The namespace of objects that name none.
    @raise ValueError: There is no such operation, kind, resource or subresource.
    """
    if operation not in OPERATIONS:
        raise ValueError(f"the operation {operation} is none of {', '.join(OPERATIONS)}")
    if (obj is None) != (operation == DELETE):
        raise ValueError("a DELETE has an old object only, and every further operation has an object")
    if old is not None:
        [old] = server.add([old], namespace)
    elif obj is not None and not resource and operation != CONNECT:
        server.ensure_served(obj)
    info = _find_info(server, old if old is not None else obj, resource, subresource)
    if operation == CONNECT and info.subresource(subresource) is None:
        raise ValueError(f"{info.group_resource} has no subresource {subresource}")
    version = info.storage_version if info.stored else info.versions[0]
    for one in (obj, old):
        if one is not None and (kind := kind_of(one)).kind == info.kind and kind.group == info.group:
            version = kind.version
            break
    meta: JSONObject = {}
    for one in (obj, old):
        meta = {**(one or {}).get("metadata", {}), **meta}
    return Target(
        operation,
        info,
        version,
        subresource,
        meta.get("namespace", namespace) if info.namespaced else "",
        name or meta.get("name", ""),
        obj,
        None if operation == CONNECT else find_endpoint(server, info, version, subresource),
    )


async def perform(
    server: MemoryServer, target: Target, scope: RequestScope, options: WriteOptions | DeleteOptions | None
) -> JSONObject | None:
    """
    Make a request, as the handlers of the server do it.

    @param scope: The namespace, the user, and the receivers of warnings and annotations.
    @return: The stored object, or the response of a resource without objects; L{None} for DELETE and CONNECT.
    @raise APIStatusError: The request is rejected.
    @raise ValueError: The resource does not support the operation.
    """
    endpoint, obj, name = target.endpoint, target.obj, target.name
    if endpoint is None:
        assert obj is not None, "a CONNECT has options"
        await admit_connection(target.info, server.registry.environment, scope, name, target.subresource, obj)
        return None
    storage: Any = endpoint.storage
    if target.operation == DELETE:
        if not IGracefulDeleter.providedBy(storage):
            raise ValueError(f"{target.info.group_resource} cannot be deleted")
        assert isinstance(options, DeleteOptions), "a DELETE has DeleteOptions"
        await storage.delete(scope, name, options)
        return None
    assert obj is not None and not isinstance(options, DeleteOptions | None), "creations and updates have an object"
    scope.sent, scope.dry_run = endpoint.comparable(obj), options.dry_run
    scope.floats = endpoint.floats(obj, orjson.dumps(obj))
    manager = options.field_manager or MANAGER
    if target.operation == UPDATE:
        if not IUpdater.providedBy(storage):
            raise ValueError(f"{target.info.group_resource} {target.subresource} cannot be updated")

        def change(stored: JSONObject | None) -> JSONObject:
            new = endpoint.default(decode_strictly(endpoint.codec, obj))
            if stored is not None:
                # Clients send these fields of the object that they have read.
                for field in ("uid", "resourceVersion", "creationTimestamp"):
                    if field in stored["metadata"]:
                        new["metadata"].setdefault(field, stored["metadata"][field])
                storage.check_uid(scope, new, stored)
            return endpoint.update_managed_fields(stored, new, manager, obj)

        result, _ = await storage.update(scope, name, change, options)
    elif target.subresource:
        if not INamedCreator.providedBy(storage):
            raise ValueError(f"{target.info.group_resource} {target.subresource} cannot be created")
        decoded = decode_strictly(endpoint.codec, obj)
        if endpoint.field_manager is not None:
            decoded = endpoint.defaulted(None, decoded, manager, obj)
        assert isinstance(options, CreateOptions), "a CREATE has CreateOptions"
        result = await storage.create_named(scope, name, decoded, options)
    else:
        if not ICreator.providedBy(storage):
            raise ValueError(f"{target.info.group_resource} cannot be created")
        decoded = decode_strictly(endpoint.codec, obj)
        reset_system_fields(decoded["metadata"], endpoint)
        assert isinstance(options, CreateOptions), "a CREATE has CreateOptions"
        result = await storage.create(scope, endpoint.defaulted(None, decoded, manager, obj), options)
    stored: JSONObject = orjson.loads(result.item) if isinstance(result, Record) else result
    gvk = endpoint.codec.storage
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, **stored}
