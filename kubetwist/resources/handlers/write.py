"""The handlers that write: create, update, patch, delete, deletecollection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson
from attrs import evolve

from ...admission.decisions import decide
from ...api.authorization import Decision
from ...api.changes import ReadOnlyChange
from ...api.errors import APIStatusError
from ...api.listoptions import (
    parse_create_options,
    parse_delete_options_from_body,
    parse_delete_options_from_query,
    parse_patch_options,
    parse_update_options,
    refuse_unreadable_collection,
)
from ...api.options import DeleteOptions, ListOptions, WriteOptions
from ...api.record import Record
from ...api.resource import GroupResource, JSONObject
from ...filters.authorization import authorizer_attributes, forbidden
from ...http.negotiation import APPLY_PATCH, patch_media, unrouted_patch
from ...http.request import KubeRequest
from ...http.responses import respond_object, respond_status
from ...interfaces import ICorruptObjectDeleter
from ...registry.generic.reading import continue_token
from ..endpoint import Endpoint
from ..views import negotiate_output
from .auditobjects import log_delete_options, log_request_object
from .bodies import decode_object, name_mismatch, namespace_mismatch, read_delete_body, read_document
from .patch import Patch, make_patch
from .read import ReadHandlers, check_name

if TYPE_CHECKING:
    from ...api.requestscope import RequestScope

#: Metadata that clients cannot set on a new object: reset before admission.
_SET_BY_SERVER: Final = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
#: Maximum bytes of a field manager's name.
MAX_MANAGER_LENGTH = 128
#: The verb for deletions of unreadable objects.
UNSAFE_DELETE_VERB = "unsafe-delete-ignore-read-errors"


def reset_system_fields(metadata: JSONObject, endpoint: Endpoint) -> None:
    """Reset the metadata of a new object that clients cannot set (C{rest.WipeObjectMetaSystemFields})."""
    for field in _SET_BY_SERVER:
        metadata.pop(field, None)
    if endpoint.zero_metadata:
        metadata.update(endpoint.zero_metadata)


class WriteHandlers:
    """Answers POST, PUT, PATCH and DELETE of one endpoint."""

    def __init__(self, endpoint: Endpoint, reads: ReadHandlers) -> None:
        self.endpoint = endpoint
        self._reads = reads

    async def create(self, request: KubeRequest, namespace: str = "") -> None:
        """Handle the POST on a collection."""
        endpoint = self.endpoint
        output = negotiate_output(endpoint, request, collection=False)
        document, data = await read_document(request, endpoint)
        options = parse_create_options(request.query)
        scope = endpoint.scope(request, namespace, data)
        # Most objects are small, and handled without a thread.
        large = scope.is_large()
        sent = (request, endpoint, document, data, options.field_validation)
        obj = await scope.compute(0, decode_object, *sent) if large else decode_object(*sent)
        if request.audit is not None:
            log_request_object(request.audit, endpoint, obj)
        reset_system_fields(obj["metadata"], endpoint)
        manager = manager_of(request, options)
        scope.sent = endpoint.comparable(document.value)
        scope.floats = endpoint.floats(document.value, data)
        # Only empty lists in the body are significant for the managed fields.
        decoded = (None, obj, manager, document.value if document.by_map or b"[" in data else None)
        obj = await scope.compute(0, endpoint.defaulted, *decoded) if large else endpoint.defaulted(*decoded)
        result = await endpoint.storage.create(scope, obj, options)
        respond_object(request, 201, await output.encode_async(result, scope), output.content_type)

    async def create_named(self, request: KubeRequest, name: str, namespace: str = "") -> None:
        """Handle the POST on a subresource of an object."""
        endpoint = self.endpoint
        check_name(name)
        output = negotiate_output(endpoint, request, collection=False)
        document, data = await read_document(request, endpoint)
        options = parse_create_options(request.query)
        scope = endpoint.scope(request, namespace, data)
        obj = await scope.compute(0, decode_object, request, endpoint, document, data, options.field_validation)
        if request.audit is not None:
            log_request_object(request.audit, endpoint, obj)
        if endpoint.field_manager is not None:
            manager = manager_of(request, options)
            obj = await scope.compute(0, endpoint.defaulted, None, obj, manager, document.value)
        result = await endpoint.storage.create_named(scope, name, obj, options)
        if isinstance(result, dict) and result.get("kind") == "Status":
            respond_status(request, 201, result, output.protobuf, output.content_type)
        else:
            respond_object(request, 201, await output.encode_async(result, scope), output.content_type)

    async def update(self, request: KubeRequest, name: str, namespace: str = "") -> None:
        """Handle the PUT of an object."""
        endpoint = self.endpoint
        check_name(name)
        output = negotiate_output(endpoint, request, collection=False)
        document, data = await read_document(request, endpoint)
        options = parse_update_options(request.query)
        scope = endpoint.scope(request, namespace, data)
        decoded = await scope.compute(0, decode_object, request, endpoint, document, data, options.field_validation)
        if request.audit is not None:
            log_request_object(request.audit, endpoint, decoded)
        metadata = decoded["metadata"]
        mismatch = namespace_mismatch(scope.namespace, metadata.get("namespace"))
        mismatch = mismatch or name_mismatch(name, metadata.get("name"))
        if mismatch is not None:
            raise APIStatusError.bad_request(mismatch)
        scope.sent, scope.dry_run = endpoint.comparable(document.value), options.dry_run
        scope.floats = endpoint.floats(document.value, data)
        first_decoded: list[JSONObject] = [decoded]
        manager = manager_of(request, options)

        def change(stored: JSONObject | None) -> JSONObject:
            # The store modifies its argument, so an attempt after a conflict starts from the document again.
            obj = (
                first_decoded.pop()
                if first_decoded
                else endpoint.codec.decode(document.value, [], data, json=not document.by_map)
            )
            obj = endpoint.default(obj)
            if stored is not None:
                endpoint.storage.check_uid(scope, obj, stored)
            return endpoint.update_managed_fields(stored, obj, manager, document.value)

        result, created = await endpoint.storage.update(
            scope, name, ReadOnlyChange(change), options, may_create=lambda: self.check_create(request)
        )
        respond_object(request, 201 if created else 200, await output.encode_async(result, scope), output.content_type)

    async def check_create(self, request: KubeRequest) -> None:
        """
        Check whether a client that may update may create, too.

        @raise APIStatusError: The client may not (403).
        """
        authorizer = self.endpoint.authorizer
        if authorizer is None:
            return
        attributes = evolve(authorizer_attributes(request), verb="create")
        verdict = await decide(authorizer, attributes)
        if verdict.decision is not Decision.ALLOW:
            raise forbidden(attributes, verdict.reason)

    async def patch(self, request: KubeRequest, name: str, namespace: str = "") -> None:
        """Handle the PATCH of an object."""
        endpoint = self.endpoint
        check_name(name)
        try:
            media = patch_media(
                request.getHeader(b"content-type"), endpoint.supported_patch_types(request), routed=endpoint.built_in
            )
        except APIStatusError:
            if endpoint.old_router and endpoint.built_in and not request.read_body():
                raise unrouted_patch(request.getHeader(b"content-length")) from None
            raise
        output = negotiate_output(endpoint, request, collection=False)
        options = parse_patch_options(request.query, media)
        scope = endpoint.scope(request, namespace, request.read_body())
        patch: Patch = await make_patch(media, request, endpoint, options)
        if request.audit is not None:
            request.audit.log_request_patch(patch.audited(request.read_body()), yaml=media == APPLY_PATCH)
        manager = manager_of(request, options)
        body = request.read_body()

        def change(stored: JSONObject | None) -> JSONObject:
            obj = patch.apply_to_stored(stored)
            scope.sent = endpoint.comparable(patch.last_result)
            scope.floats = endpoint.floats(patch.last_result, body)
            # This warning precedes the warnings of admission and validation, and is sent even if the patch fails.
            for text in patch.problems:
                request.warn(text)
            mismatch = name_mismatch(name, obj["metadata"].get("name"))
            if mismatch is not None:
                raise APIStatusError.bad_request(mismatch)
            if patch.foreign:
                endpoint.codec.check_kind(obj)
            obj = endpoint.default(obj)
            if patch.foreign:
                obj["metadata"].pop("managedFields", None)
                return obj
            if patch.updates_managed_fields:
                scope.applied = True
                return obj
            return endpoint.update_managed_fields(stored, obj, manager, patch.last_result)

        result, created = await endpoint.storage.update(
            scope,
            name,
            ReadOnlyChange(change) if patch.new_object else change,
            options,
            patching=True,
            creating=patch.creates,
            may_create=lambda: self.check_create(request),
        )
        respond_object(request, 201 if created else 200, await output.encode_async(result, scope), output.content_type)

    async def delete(self, request: KubeRequest, name: str, namespace: str = "") -> None:
        """Handle the DELETE of an object."""
        endpoint = self.endpoint
        check_name(name)
        output = negotiate_output(endpoint, request, collection=False)
        options = await self.delete_options(request)
        scope = endpoint.scope(request, namespace)
        if options.ignore_store_read_error:
            await self.delete_corrupt(request, scope, name, output.protobuf)
            return
        result, deleted = await endpoint.storage.delete(scope, name, options)
        code = 202 if not deleted and options.orphan_dependents is False else 200
        if endpoint.delete_returns_object() or not deleted:
            respond_object(request, code, await output.encode_async(result, scope), output.content_type)
        else:
            status = await scope.compute(len(result.item), self.success, result)
            respond_status(request, code, status, output.protobuf, output.content_type)

    def success(self, record: Record) -> JSONObject:
        """Return the Status of a successful deletion."""
        info = self.endpoint.info
        details: dict[str, Any] = {"name": record.name}
        if info.group:
            details["group"] = info.group
        details["kind"] = info.resource
        details["uid"] = orjson.loads(record.item)["metadata"].get("uid", "")
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}

    async def delete_corrupt(self, request: KubeRequest, scope: RequestScope, name: str, protobuf: bool) -> None:
        """
        Handle the DELETE of an unreadable object, which needs an additional permission.

        @param request: The request.
        @param scope: The scope of the request.
        @param name: The name of the object.
        @param protobuf: Whether the response is encoded in protobuf.
        @raise APIStatusError: The client may not delete it (403), or it is readable.
        """
        request.annotate("apiserver.k8s.io/unsafe-delete-ignore-read-error", "", "Metadata")
        await self.check_unsafe_delete(request, name)
        await self.endpoint.storage.delete_corrupt(scope, name)
        details = {"name": name, "kind": self.endpoint.info.kind}
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        respond_status(request, 200, {**status, "code": 200}, protobuf)

    async def check_unsafe_delete(self, request: KubeRequest, name: str) -> None:
        """
        Check whether a client may delete unreadable objects.

        @raise APIStatusError: The client may not (403).
        """
        authorizer = self.endpoint.authorizer
        if authorizer is None:
            return
        attributes = evolve(authorizer_attributes(request), verb=UNSAFE_DELETE_VERB)
        verdict = await decide(authorizer, attributes)
        if verdict.decision is not Decision.ALLOW:
            info = self.endpoint.info
            reason = f'not permitted to do "{UNSAFE_DELETE_VERB}", reason: {verdict.reason}'
            raise APIStatusError.forbidden(GroupResource(info.group, info.resource), name, reason)

    async def delete_collection(self, request: KubeRequest, namespace: str = "") -> None:
        """Handle the DELETE of a collection."""
        endpoint = self.endpoint
        output = negotiate_output(endpoint, request, collection=True)
        selection: ListOptions = await self._reads.options_async(request)
        options = await self.delete_options(request)
        refuse_unreadable_collection(options)
        scope = endpoint.scope(request, namespace)
        listing = await endpoint.storage.delete_collection(scope, options, selection)
        # Without a limit the list is complete, regardless of its number of pages.
        token = continue_token(listing, scope, endpoint.namespaced) if selection.limit else ""
        pending = self._reads.respond_list(request, output, listing, token)
        if pending is not None:
            await pending

    async def delete_options(self, request: KubeRequest) -> DeleteOptions:
        """
        Return the delete options: from the body, or without a body from the query.

        @raise APIStatusError: They are invalid (400, 422), or in an unsupported media type (415).
        """
        data = request.read_body()
        unreadable = ICorruptObjectDeleter.providedBy(self.endpoint.storage)
        if not data:
            return parse_delete_options_from_query(request.query, unreadable)
        body = await read_delete_body(request, self.endpoint, data)
        if request.audit is not None:
            log_delete_options(request.audit, body)
        return parse_delete_options_from_body(body, unreadable)


def manager_of(request: KubeRequest, options: WriteOptions) -> str:
    """Return the field manager of a write: from the query, or else the program name in the User-Agent."""
    if options.field_manager:
        return options.field_manager
    program = request.user_agent.partition("/")[0]
    if len(program) <= MAX_MANAGER_LENGTH and program.isascii() and program.isprintable():
        return program
    program = "".join(filter(str.isprintable, program))
    return program.encode()[:MAX_MANAGER_LENGTH].decode("utf-8", "ignore")
