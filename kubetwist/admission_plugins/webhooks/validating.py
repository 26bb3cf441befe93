"""Calls validating webhooks concurrently."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import orjson

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from ...admission.matching.equivalents import EquivalentResource
from ...api.admission import AdmissionAttributes
from ...api.errors import APIStatusError
from ...api.jsontypes import JSONValue
from ...api.resource import GroupVersionKind
from ...registry.versions import VersionConverter
from .call import WebhookCallError, annotate_audit_event, call_webhook, json_fragment
from .review import NULL

if TYPE_CHECKING:
    from .metrics import WebhookMetrics
    from .webhook import Webhook

_FAILED_OPEN: Final = "failed-open.validating.webhook.admission.k8s.io/"
#: An object and the old object, as JSON.
_VersionedObjects = tuple[orjson.Fragment, orjson.Fragment]


class ValidatingDispatcher:
    """Calls the validating webhooks of one request (C{validatingDispatcher})."""

    _log = Logger()

    def __init__(self, attributes: AdmissionAttributes, versions: VersionConverter, metrics: WebhookMetrics) -> None:
        self._attributes = attributes
        self._versions = versions
        self._metrics = metrics

    async def dispatch(self, matched: Sequence[tuple[Webhook, EquivalentResource]]) -> None:
        """
        Call the webhooks whose selectors and conditions match, concurrently.

        @raise APIStatusError: A webhook denied the request or failed.
        """
        attributes = self._attributes
        to_call: list[tuple[Webhook, EquivalentResource]] = []
        for webhook, equivalent in matched:
            if not webhook.matcher.match_selectors(attributes):
                continue
            conditions = webhook.conditions
            if conditions is not None and not await conditions.matches(
                attributes, equivalent, self._versions, webhook.ignore_failures
            ):
                continue
            to_call.append((webhook, equivalent))
        versioned: dict[GroupVersionKind, _VersionedObjects] = {}
        for _, equivalent in to_call:
            if equivalent.kind not in versioned:
                versioned[equivalent.kind] = await self._versioned(equivalent)
        if len(to_call) == 1:
            webhook, equivalent = to_call[0]
            await self._call(webhook, equivalent, versioned[equivalent.kind], 0)
            return
        calls = [
            Deferred.fromCoroutine(self._call(webhook, equivalent, versioned[equivalent.kind], index))
            for index, (webhook, equivalent) in enumerate(to_call)
        ]
        failures: list[Failure] = []

        def on_failure(failure: Failure) -> Failure | None:
            if failure.check(CancelledError):
                return failure
            failures.append(failure)
            return None

        try:
            # All calls are awaited, because each may add warnings; the first denial is raised.
            for call in calls:
                await call.addErrback(on_failure)
        finally:
            for call in calls:
                call.addErrback(lambda _: None).cancel()
        if failures:
            failures[0].raiseException()

    async def _versioned(self, equivalent: EquivalentResource) -> _VersionedObjects:
        attributes = self._attributes

        async def one(obj: JSONValue) -> orjson.Fragment:
            if obj is None:
                return NULL
            kind = attributes.object_kind
            return json_fragment(
                await self._versions.convert_to_gvk(attributes.group, attributes.resource, obj, kind, equivalent.kind)
            )

        return await one(attributes.object), await one(attributes.old_object)

    async def _call(
        self, webhook: Webhook, equivalent: EquivalentResource, versioned: _VersionedObjects, index: int
    ) -> None:
        attributes = self._attributes
        try:
            await call_webhook(webhook, attributes, equivalent, *versioned, mutating=False, metrics=self._metrics)
        except WebhookCallError as error:
            if not webhook.ignore_failures:
                raise APIStatusError.internal(str(error)) from None
            self._log.warn("failing open: {error}", error=error.logged)
            self._metrics.failed_open(webhook.name)
            annotate_audit_event(attributes, f"{_FAILED_OPEN}round_0_index_{index}", webhook.name)
