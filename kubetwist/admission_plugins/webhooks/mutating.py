"""Calls mutating webhooks one after the other, each with the result of the previous ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import orjson

from twisted.logger import Logger

from ...admission.matching.equivalents import EquivalentResource
from ...admission.reinvocation import ReinvokeContext, canonical_json, replace_in_place
from ...api.admission import (
    AdmissionAttributes,
    ReinvocationContext,
)
from ...api.decoding import BodyError, decode_json
from ...api.errors import APIStatusError
from ...api.go.quote import quoted
from ...api.jsonpatch import PatchError, apply_json_patch
from ...api.jsontypes import JSONValue
from ...registry.versions import VersionConverter
from .call import WebhookCallError, annotate_audit_event, call_webhook, json_fragment
from .review import JSON_PATCH, NULL, Response

if TYPE_CHECKING:
    from .metrics import WebhookMetrics
    from .webhook import Webhook

PREFIX: Final = "mutation.webhook.admission.k8s.io/"
_PATCHES: Final = "patch.webhook.admission.k8s.io/"


class MutatingDispatcher:
    """Calls the mutating webhooks of one request (C{mutatingDispatcher})."""

    _log = Logger()

    def __init__(
        self,
        attributes: AdmissionAttributes,
        versions: VersionConverter,
        webhooks: Sequence[Webhook],
        metrics: WebhookMetrics,
    ) -> None:
        """
        @param attributes: The admission request.
        @param versions: Converts objects between versions.
        @param webhooks: All webhooks: audit annotations contain the index in this list.
        @param metrics: The metrics of the plugin.
        """
        self._attributes = attributes
        self._versions = versions
        self._webhooks = webhooks
        self._metrics = metrics

    async def dispatch(self, matched: Sequence[tuple[Webhook, EquivalentResource]]) -> None:
        """
        Call the webhooks whose selectors and conditions match, in order.

        @raise APIStatusError: A webhook denied the request or failed.
        """
        attributes = self._attributes
        reinvocation = attributes.reinvocation or ReinvocationContext()
        reinvoke_context = reinvocation.plugin_values.setdefault("MutatingAdmissionWebhook", ReinvokeContext())
        if reinvocation.is_reinvoke and reinvoke_context.last_output != canonical_json(attributes.object):
            reinvoke_context.require_reinvocation()
        indexes = {webhook.uid: index for index, webhook in enumerate(self._webhooks)}
        for webhook, equivalent in matched:
            if not webhook.matcher.match_selectors(attributes):
                continue
            conditions = webhook.conditions
            if conditions is not None and not await conditions.matches(
                attributes, equivalent, self._versions, webhook.ignore_failures
            ):
                continue
            if reinvocation.is_reinvoke and webhook.uid not in reinvoke_context.to_reinvoke:
                continue
            key = f"round_{int(reinvocation.is_reinvoke)}_index_{indexes.get(webhook.uid, 0)}"
            if await self._call(webhook, equivalent, key):
                reinvoke_context.require_reinvocation()
                reinvocation.request_reinvocation()
            if webhook.reinvocable:
                reinvoke_context.previously_invoked.add(webhook.uid)
        reinvoke_context.last_output = canonical_json(attributes.object)

    async def _call(self, webhook: Webhook, equivalent: EquivalentResource, key: str) -> bool:
        """
        Call one webhook and apply its patch; return whether it changed the object.

        @param key: The suffix of the keys of audit annotations: round and index.
        """
        attributes = self._attributes
        changed = False
        try:
            changed = await self._apply_response(webhook, equivalent, key)
        except WebhookCallError as error:
            if not webhook.ignore_failures:
                raise APIStatusError.internal(str(error)) from None
            self._log.warn("failing open: {error}", error=error.logged)
            self._metrics.failed_open(webhook.name)
            annotate_audit_event(attributes, f"failed-open.{PREFIX}{key}", webhook.name)
        finally:
            details = {"configuration": webhook.configuration, "webhook": webhook.name, "mutated": changed}
            annotate_audit_event(attributes, f"{PREFIX}{key}", orjson.dumps(details).decode())
        return changed

    async def _apply_response(self, webhook: Webhook, equivalent: EquivalentResource, key: str) -> bool:
        attributes = self._attributes
        versions = self._versions
        names = attributes.group, attributes.resource
        versioned, old = attributes.object, attributes.old_object
        if versioned is not None:
            versioned = await versions.convert_to_gvk(*names, versioned, attributes.object_kind, equivalent.kind)
        if old is not None:
            old = await versions.convert_to_gvk(*names, old, attributes.object_kind, equivalent.kind)
        response = await call_webhook(
            webhook,
            attributes,
            equivalent,
            NULL if versioned is None else json_fragment(versioned),
            NULL if old is None else json_fragment(old),
            mutating=True,
            metrics=self._metrics,
        )
        operations = _operations(webhook, response)
        if not operations:
            return False
        if versioned is None or attributes.object is None:
            message = f"admission webhook {quoted(webhook.name)} attempted to modify the object"
            raise APIStatusError.internal(f"{message}, which is not supported for this operation")
        if response.patch_type != JSON_PATCH:
            raise WebhookCallError(webhook, "unsupported patch type", quoted(response.patch_type), " ")
        before = canonical_json(versioned)
        try:
            # The object shares values with the stored one.
            patched = apply_json_patch(orjson.loads(orjson.dumps(versioned)), operations)
            obj = await versions.decode_mutated(*names, patched, equivalent.kind, attributes.object_kind)
        except PatchError as error:
            raise APIStatusError.internal(str(error.__cause__ or error.message)) from None
        except ValueError as error:
            raise APIStatusError.internal(str(error)) from None
        details = {
            "configuration": webhook.configuration,
            "webhook": webhook.name,
            "patch": operations,
            "patchType": JSON_PATCH,
        }
        annotate_audit_event(attributes, f"{_PATCHES}{key}", orjson.dumps(details).decode(), "Request")
        replace_in_place(attributes.object, obj)
        return before != canonical_json(patched)


def _operations(webhook: Webhook, response: Response) -> JSONValue:
    """Return the decoded patch; L{None} without a patch."""
    if not response.patch:
        return None
    try:
        operations = decode_json(response.patch).value
    except BodyError as error:
        raise WebhookCallError(webhook, "received undecodable patch in webhook response", error) from None
    if operations is not None and not isinstance(operations, list):
        message = "json: cannot unmarshal object into Go value of type jsonpatch.Patch"
        raise WebhookCallError(webhook, "received undecodable patch in webhook response", message)
    return operations
