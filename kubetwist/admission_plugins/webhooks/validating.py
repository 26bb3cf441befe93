"""Webhooks that refuse objects: all that concern a request are asked at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import orjson

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from ...admission.attributes import AdmissionAttributes
from ...api.errors import APIStatusError
from ...api.resource import GroupVersionKind
from ...interfaces import IValidatingAdmission
from ...registry.versions import Form
from ...storage.errors import StorageUnavailable
from .calling import CallFailed, ask, encoded, note
from .compiled import Configurations, Webhook
from .credentials import read_credentials
from .review import NULL
from .rules import exempt

_FAILED_OPEN: Final = "failed-open.validating.webhook.admission.k8s.io/"
#: An object and the one before it, as JSON.
_Shown = tuple[orjson.Fragment, orjson.Fragment]


@implementer(IValidatingAdmission)
class ValidatingAdmissionWebhook:
    """See kubernetes/apiserver, C{pkg/admission/plugin/webhook/validating/dispatcher.go}."""

    name: ClassVar[str] = "ValidatingAdmissionWebhook"
    #: Each webhook has its own.
    timeout: ClassVar[None] = None
    _log = Logger()

    def __init__(self, stores: Any, configurations: Configurations) -> None:
        self._stores = stores
        self._configurations = configurations

    @classmethod
    def configured(cls, server: Any, configuration: Any) -> ValidatingAdmissionWebhook:
        """See L{kubetwist.interfaces.IAdmissionPluginFactory.make}."""
        return cls(server, Configurations(server, "validatingwebhookconfigurations", read_credentials(configuration)))

    def handles(self, operation: str) -> bool:
        """Everything: rules decide."""
        return True

    def validate(self, attributes: AdmissionAttributes) -> Any:
        """See L{IValidatingAdmission.validate}."""
        try:
            meant = self._configurations.meant_for(attributes)
        except StorageUnavailable as error:
            raise attributes.forbidden(str(error)) from None
        return self._call_all(meant, attributes) if meant and not exempt(attributes) else None

    async def _call_all(self, meant: Sequence[tuple[Webhook, Form]], attributes: AdmissionAttributes) -> None:
        called: list[tuple[Webhook, Form]] = []
        for webhook, form in meant:
            if not webhook.selection.selects(attributes):
                continue
            conditions = webhook.conditions
            if conditions is not None and not await conditions.hold(
                attributes, form, self._stores.versions, webhook.ignores
            ):
                continue
            called.append((webhook, form))
        shown: dict[GroupVersionKind, _Shown] = {}
        for _, form in called:
            if form.kind not in shown:
                shown[form.kind] = await self._shown(attributes, form)
        if len(called) == 1:
            webhook, form = called[0]
            await self._call(webhook, form, attributes, shown[form.kind], 0)
            return
        calls = [
            Deferred.fromCoroutine(self._call(webhook, form, attributes, shown[form.kind], index))
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

    async def _shown(self, attributes: AdmissionAttributes, form: Form) -> _Shown:
        async def one(obj: Any) -> orjson.Fragment:
            if obj is None:
                return NULL
            kind = attributes.object_kind
            return encoded(
                await self._stores.versions.shown(attributes.group, attributes.resource, obj, kind, form.kind)
            )

        return await one(attributes.object), await one(attributes.old_object)

    async def _call(
        self, webhook: Webhook, form: Form, attributes: AdmissionAttributes, shown: _Shown, index: int
    ) -> None:
        try:
            await ask(webhook, attributes, form, *shown, mutating=False)
        except CallFailed as error:
            if not webhook.ignores:
                raise APIStatusError.internal(str(error)) from None
            self._log.warn("failing open: {error}", error=error)
            note(attributes, f"{_FAILED_OPEN}round_0_index_{index}", webhook.name)
