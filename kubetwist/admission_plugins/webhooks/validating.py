"""Webhooks that refuse objects: all that concern a request are asked at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import orjson

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from ...admission.matching.equivalents import Form
from ...api.admission import AdmissionAttributes
from ...api.errors import APIStatusError
from ...api.jsontypes import JSONValue
from ...api.resource import GroupVersionKind
from ...registry.versions import Versions
from .call import CallFailed, ask, encoded, note
from .review import NULL

if TYPE_CHECKING:
    from .metrics import WebhookTally
    from .webhook import Webhook

_FAILED_OPEN: Final = "failed-open.validating.webhook.admission.k8s.io/"
#: An object and the one before it, as JSON.
_Shown = tuple[orjson.Fragment, orjson.Fragment]


class ValidatingCalls:
    """The calls that a request makes necessary."""

    _log = Logger()

    def __init__(self, attributes: AdmissionAttributes, versions: Versions, tally: WebhookTally) -> None:
        self._attributes = attributes
        self._versions = versions
        self._tally = tally

    async def call_all(self, meant: Sequence[tuple[Webhook, Form]]) -> None:
        """
        Call those that select the request.

        @raise APIStatusError: One refuses, or fails.
        """
        attributes = self._attributes
        called: list[tuple[Webhook, Form]] = []
        for webhook, form in meant:
            if not webhook.selection.selects(attributes):
                continue
            conditions = webhook.conditions
            if conditions is not None and not await conditions.hold(attributes, form, self._versions, webhook.ignores):
                continue
            called.append((webhook, form))
        shown: dict[GroupVersionKind, _Shown] = {}
        for _, form in called:
            if form.kind not in shown:
                shown[form.kind] = await self._shown(form)
        if len(called) == 1:
            webhook, form = called[0]
            await self._call(webhook, form, shown[form.kind], 0)
            return
        calls = [
            Deferred.fromCoroutine(self._call(webhook, form, shown[form.kind], index))
            for index, (webhook, form) in enumerate(called)
        ]
        refused: list[Failure] = []

        def heard(failure: Failure) -> Failure | None:
            if failure.check(CancelledError):
                return failure
            refused.append(failure)
            return None

        try:
            # All are heard to the end, as each may have warnings; of several refusals the first is told.
            for call in calls:
                await call.addErrback(heard)
        finally:
            for call in calls:
                call.addErrback(lambda _: None).cancel()
        if refused:
            refused[0].raiseException()

    async def _shown(self, form: Form) -> _Shown:
        attributes = self._attributes

        async def one(obj: JSONValue) -> orjson.Fragment:
            if obj is None:
                return NULL
            kind = attributes.object_kind
            return encoded(await self._versions.shown(attributes.group, attributes.resource, obj, kind, form.kind))

        return await one(attributes.object), await one(attributes.old_object)

    async def _call(self, webhook: Webhook, form: Form, shown: _Shown, index: int) -> None:
        attributes = self._attributes
        try:
            await ask(webhook, attributes, form, *shown, mutating=False, tally=self._tally)
        except CallFailed as error:
            if not webhook.ignores:
                raise APIStatusError.internal(str(error)) from None
            self._log.warn("failing open: {error}", error=error.logged)
            self._tally.failed_open(webhook.name)
            note(attributes, f"{_FAILED_OPEN}round_0_index_{index}", webhook.name)
