"""The two plugins; what they do with webhooks is imported when there are some."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from zope.interface import implementer

from ...api.admission import AdmissionAttributes
from ...api.jsontypes import JSONValue
from ...interfaces import IMeasuredAdmission, IMutatingAdmission, IValidatingAdmission
from ...metrics.registry import Reading
from ...storage.errors import StorageUnavailable
from .configurationmanager import Configurations, Meant
from .metrics import WebhookTally

if TYPE_CHECKING:
    from ...registry.admissioncontext import ServerAdmissionContext


class _Webhooks:
    """What both have."""

    name: ClassVar[str]
    _resource: ClassVar[str]
    _type: ClassVar[str]
    #: Each webhook has its own.
    timeout: ClassVar[None] = None

    def __init__(self, server: ServerAdmissionContext, configurations: Configurations) -> None:
        self._server = server
        self._configurations = configurations
        self._tally = WebhookTally(self._type)

    def readings(self) -> Iterator[Reading]:
        """What is counted of the calls."""
        return self._tally.readings()

    @classmethod
    def configured(cls, server: ServerAdmissionContext, configuration: JSONValue) -> Any:
        """See L{kubetwist.interfaces.IAdmissionPluginFactory.make}."""
        credentials = None
        if configuration is not None:
            from .credentials import read_credentials

            credentials = read_credentials(configuration)
        return cls(server, Configurations(server, cls._resource, credentials))

    def handles(self, operation: str) -> bool:
        """Everything: rules decide."""
        return True

    def _meant(self, attributes: AdmissionAttributes) -> Meant:
        """
        The webhooks that a request concerns.

        @raise APIStatusError: They are not known yet (403).
        """
        try:
            meant = self._configurations.meant_for(attributes)
        except StorageUnavailable as error:
            raise attributes.forbidden(str(error)) from None
        if meant:
            from ...admission.matching.rules import exempt

            if exempt(attributes):
                return ()
        return meant


@implementer(IMeasuredAdmission, IMutatingAdmission)
class MutatingAdmissionWebhook(_Webhooks):
    """See kubernetes/apiserver, C{pkg/admission/plugin/webhook/mutating/dispatcher.go}."""

    name = "MutatingAdmissionWebhook"
    _resource = "mutatingwebhookconfigurations"
    _type = "admit"

    def admit(self, attributes: AdmissionAttributes) -> Awaitable[None] | None:
        """See L{IMutatingAdmission.admit}."""
        meant = self._meant(attributes)
        if not meant:
            return None
        from .mutating import MutatingCalls

        calls = MutatingCalls(attributes, self._server.versions, self._configurations.webhooks, self._tally)
        return calls.call_all(meant)


@implementer(IMeasuredAdmission, IValidatingAdmission)
class ValidatingAdmissionWebhook(_Webhooks):
    """See kubernetes/apiserver, C{pkg/admission/plugin/webhook/validating/dispatcher.go}."""

    name = "ValidatingAdmissionWebhook"
    _resource = "validatingwebhookconfigurations"
    _type = "validating"

    def validate(self, attributes: AdmissionAttributes) -> Awaitable[None] | None:
        """See L{IValidatingAdmission.validate}."""
        meant = self._meant(attributes)
        if not meant:
            return None
        from .validating import ValidatingCalls

        return ValidatingCalls(attributes, self._server.versions, self._tally).call_all(meant)
