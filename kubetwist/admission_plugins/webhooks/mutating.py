"""Webhooks that change objects: one after the other, each sees what those before have made of the object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import orjson

from twisted.logger import Logger

from ...admission.matching.equivalents import Form
from ...admission.reinvocation import Rounds, dumped, replace
from ...api.admission import (
    AdmissionAttributes,
    Reinvocation,
)
from ...api.decoding import BodyError, decode_json
from ...api.errors import APIStatusError
from ...api.go.quote import quoted
from ...api.jsonpatch import PatchError, apply_json_patch
from ...api.jsontypes import JSONValue
from ...registry.versions import Versions
from .call import CallFailed, ask, encoded, note
from .review import JSON_PATCH, NULL, Response

if TYPE_CHECKING:
    from .metrics import WebhookTally
    from .webhook import Webhook

PREFIX: Final = "mutation.webhook.admission.k8s.io/"
_PATCHES: Final = "patch.webhook.admission.k8s.io/"


class MutatingCalls:
    """The calls that a request makes necessary."""

    _log = Logger()

    def __init__(
        self, attributes: AdmissionAttributes, versions: Versions, webhooks: Sequence[Webhook], tally: WebhookTally
    ) -> None:
        """
        @param webhooks: All that there are, whether they are meant or not: their places are told to the audit.
        """
        self._attributes = attributes
        self._versions = versions
        self._webhooks = webhooks
        self._tally = tally

    async def call_all(self, meant: Sequence[tuple[Webhook, Form]]) -> None:
        """
        Call those that select the request, in their order.

        @raise APIStatusError: One refuses, or fails.
        """
        attributes = self._attributes
        reinvocation = attributes.reinvocation or Reinvocation()
        rounds = reinvocation.notes.setdefault("MutatingAdmissionWebhook", Rounds())
        if reinvocation.second and rounds.last != dumped(attributes.object):
            rounds.changed()
        places = {webhook.uid: place for place, webhook in enumerate(self._webhooks)}
        for webhook, form in meant:
            if not webhook.selection.selects(attributes):
                continue
            conditions = webhook.conditions
            if conditions is not None and not await conditions.hold(attributes, form, self._versions, webhook.ignores):
                continue
            if reinvocation.second and webhook.uid not in rounds.due:
                continue
            place = f"round_{int(reinvocation.second)}_index_{places.get(webhook.uid, 0)}"
            if await self._call(webhook, form, place):
                rounds.changed()
                reinvocation.request()
            if webhook.again:
                rounds.called.add(webhook.uid)
        rounds.last = dumped(attributes.object)

    async def _call(self, webhook: Webhook, form: Form, place: str) -> bool:
        """Call one; whether it changed the object."""
        attributes = self._attributes
        changed = False
        try:
            changed = await self._changed(webhook, form, place)
        except CallFailed as error:
            if not webhook.ignores:
                raise APIStatusError.internal(str(error)) from None
            self._log.warn("failing open: {error}", error=error.logged)
            self._tally.failed_open(webhook.name)
            note(attributes, f"failed-open.{PREFIX}{place}", webhook.name)
        finally:
            said = {"configuration": webhook.configuration, "webhook": webhook.name, "mutated": changed}
            note(attributes, f"{PREFIX}{place}", orjson.dumps(said).decode())
        return changed

    async def _changed(self, webhook: Webhook, form: Form, place: str) -> bool:
        attributes = self._attributes
        versions = self._versions
        names = attributes.group, attributes.resource
        shown, old = attributes.object, attributes.old_object
        if shown is not None:
            shown = await versions.shown(*names, shown, attributes.object_kind, form.kind)
        if old is not None:
            old = await versions.shown(*names, old, attributes.object_kind, form.kind)
        response = await ask(
            webhook,
            attributes,
            form,
            NULL if shown is None else encoded(shown),
            NULL if old is None else encoded(old),
            mutating=True,
            tally=self._tally,
        )
        operations = _operations(webhook, response)
        if not operations:
            return False
        if shown is None or attributes.object is None:
            why = f"admission webhook {quoted(webhook.name)} attempted to modify the object"
            raise APIStatusError.internal(f"{why}, which is not supported for this operation")
        if response.patch_type != JSON_PATCH:
            raise CallFailed(webhook, "unsupported patch type", quoted(response.patch_type), " ")
        before = dumped(shown)
        try:
            patched = apply_json_patch(shown, operations)
            obj = await versions.taken(*names, patched, form.kind, attributes.object_kind)
        except PatchError as error:
            raise APIStatusError.internal(str(error.__cause__ or error.message)) from None
        except ValueError as error:
            raise APIStatusError.internal(str(error)) from None
        said = {
            "configuration": webhook.configuration,
            "webhook": webhook.name,
            "patch": operations,
            "patchType": JSON_PATCH,
        }
        note(attributes, f"{_PATCHES}{place}", orjson.dumps(said).decode(), "Request")
        replace(attributes.object, obj)
        return before != dumped(patched)


def _operations(webhook: Webhook, response: Response) -> JSONValue:
    """The decoded patch; empty for none."""
    if not response.patch:
        return None
    try:
        operations = decode_json(response.patch).value
    except BodyError as error:
        raise CallFailed(webhook, "received undecodable patch in webhook response", error) from None
    if operations is not None and not isinstance(operations, list):
        why = "json: cannot unmarshal object into Go value of type jsonpatch.Patch"
        raise CallFailed(webhook, "received undecodable patch in webhook response", why)
    return operations
