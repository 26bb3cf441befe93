"""The admission plugins of webhooks. The dispatchers are imported when there are webhooks."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from zope.interface import implementer

from ...api.admission import AdmissionAttributes
from ...api.jsontypes import JSONValue
from ...interfaces import IMeasuredAdmission, IMutatingAdmission, IValidatingAdmission
from ...metrics.registry import MetricSnapshot
from ...storage.errors import StorageUnavailable
from .configurationmanager import RuleMatches, WebhookConfigurationManager
from .metrics import WebhookMetrics

if TYPE_CHECKING:
    from ...registry.admissioncontext import ServerAdmissionContext


class _Webhooks:
    """The common part of both plugins."""

    name: ClassVar[str]
    _resource: ClassVar[str]
    _type: ClassVar[str]
    #: Each webhook has a separate timeout.
    timeout: ClassVar[None] = None

    def __init__(self, server: ServerAdmissionContext, configurations: WebhookConfigurationManager) -> None:
        self._server = server
        self._configurations = configurations
        self._metrics = WebhookMetrics(self._type)
        self._exempts_reviews = server.features.enabled("ExcludeAdmissionWebhookVirtualResources")

    def collect(self) -> Iterator[MetricSnapshot]:
        """Return the metrics of webhook calls."""
        return self._metrics.collect()

    @classmethod
    def configured(cls, server: ServerAdmissionContext, configuration: JSONValue) -> Any:
        """See L{kubetwist.interfaces.IAdmissionPluginFactory.make}."""
        credentials = None
        if configuration is not None:
            from .credentials import read_credentials

            credentials = read_credentials(configuration)
        return cls(server, WebhookConfigurationManager(server, cls._resource, credentials))

    def handles(self, operation: str) -> bool:
        """Return true: the rules of webhooks decide."""
        return True

    def _matched_webhooks(self, attributes: AdmissionAttributes) -> RuleMatches:
        """
        Return the webhooks whose rules match a request.

        @raise APIStatusError: The configurations are not synced yet (403).
        """
        try:
            matched = self._configurations.matching_webhooks(attributes)
        except StorageUnavailable as error:
            raise attributes.forbidden(str(error)) from None
        if matched:
            from ...admission.matching.rules import is_exempt_admission_configuration, is_review

            if is_exempt_admission_configuration(attributes) or (self._exempts_reviews and is_review(attributes)):
                return ()
        return matched


@implementer(IMeasuredAdmission, IMutatingAdmission)
class MutatingAdmissionWebhook(_Webhooks):
    """See kubernetes/apiserver, C{pkg/admission/plugin/webhook/mutating/dispatcher.go}."""

    name = "MutatingAdmissionWebhook"
    _resource = "mutatingwebhookconfigurations"
    _type = "admit"

    def admit(self, attributes: AdmissionAttributes) -> Awaitable[None] | None:
        """See L{IMutatingAdmission.admit}."""
        matched = self._matched_webhooks(attributes)
        if not matched:
            return None
        from .mutating import MutatingDispatcher

        dispatcher = MutatingDispatcher(attributes, self._server.versions, self._configurations.webhooks, self._metrics)
        return dispatcher.dispatch(matched)


@implementer(IMeasuredAdmission, IValidatingAdmission)
class ValidatingAdmissionWebhook(_Webhooks):
    """See kubernetes/apiserver, C{pkg/admission/plugin/webhook/validating/dispatcher.go}."""

    name = "ValidatingAdmissionWebhook"
    _resource = "validatingwebhookconfigurations"
    _type = "validating"

    def validate(self, attributes: AdmissionAttributes) -> Awaitable[None] | None:
        """See L{IValidatingAdmission.validate}."""
        matched = self._matched_webhooks(attributes)
        if not matched:
            return None
        from .validating import ValidatingDispatcher

        return ValidatingDispatcher(attributes, self._server.versions, self._metrics).dispatch(matched)
