"""PodNodeSelector: adds the node selector of a namespace to its pods, and rejects conflicting selectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.errors import APIStatusError
from ..api.go.quote import quoted
from ..api.jsontypes import JSONValue
from ..api.names import validate_label_value, validate_qualified_name
from ..api.resource import GroupResource
from ..interfaces import IMutatingAdmission, IValidatingAdmission
from .pluginconfig import (
    strict_object,
    string_field,
)

if TYPE_CHECKING:
    from ..api.admission import AdmissionContext

_ANNOTATION: Final = "scheduler.alpha.kubernetes.io/node-selector"
_DEFAULT: Final = "clusterDefaultNodeSelector"


@implementer(IMutatingAdmission, IValidatingAdmission)
@frozen
class PodNodeSelector:
    """
    See kubernetes, C{plugin/pkg/admission/podnodeselector/admission.go}.

    @ivar selectors: By namespace, the allowed labels in node selectors; by C{clusterDefaultNodeSelector}, the selector
        of namespaces without the annotation.
    """

    name: ClassVar[str] = "PodNodeSelector"
    resources: ClassVar[tuple[str, ...]] = ("pods",)
    selectors: Mapping[str, str] = {}

    @classmethod
    def configured(cls, server: AdmissionContext, configuration: JSONValue) -> PodNodeSelector:
        """See L{kubetwist.interfaces.IAdmissionPluginFactory.make}."""
        decoded = strict_object(configuration, ("podNodeSelectorPluginConfig", "imagePolicy"), "")
        value = decoded.get("podNodeSelectorPluginConfig")
        selectors = value if isinstance(value, dict) else strict_object(value, (), "podNodeSelectorPluginConfig")
        return cls(
            {name: string_field(text, f"podNodeSelectorPluginConfig.{name}") for name, text in selectors.items()}
        )

    def handles(self, operation: str) -> bool:
        """Return true for CREATE."""
        return operation == "CREATE"

    def admit(self, attributes: AdmissionAttributes) -> None:
        """See L{IMutatingAdmission.admit}."""
        pod = attributes.object
        assert pod is not None
        pod_selector = pod["spec"].get("nodeSelector") or {}
        namespace_selector = self._namespace_selector(attributes, pod_selector)
        if namespace_selector:
            pod["spec"]["nodeSelector"] = {**namespace_selector, **pod_selector}
        self.validate(attributes)

    def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}."""
        pod = attributes.object
        assert pod is not None
        pod_selector = pod["spec"].get("nodeSelector") or {}
        self._namespace_selector(attributes, pod_selector)
        allowed = parse_labels(self.selectors.get(attributes.namespace, ""))
        if allowed and not pod_selector.items() <= allowed.items():
            raise _forbidden(attributes, "pod node label selector labels conflict with its namespace whitelist")

    def _namespace_selector(self, attributes: AdmissionAttributes, pod_selector: Mapping[str, str]) -> dict[str, str]:
        """
        Return the node selector that the namespace sets on its pods.

        @raise APIStatusError: The pod's selector conflicts with it (403), or the annotation is invalid (500).
        """
        namespace = attributes.context.get_decoded("", "namespaces", "", attributes.namespace)
        if namespace is None:
            raise APIStatusError.not_found(GroupResource("", "namespaces"), attributes.namespace)
        annotation = (namespace["metadata"].get("annotations") or {}).get(_ANNOTATION)
        selector = parse_labels(self.selectors.get(_DEFAULT, "") if annotation is None else annotation)
        if any(pod_selector.get(key, value) != value for key, value in selector.items()):
            raise _forbidden(attributes, "pod node label selector conflicts with its namespace node label selector")
        return selector


def _forbidden(attributes: AdmissionAttributes, message: str) -> APIStatusError:
    name = (attributes.object or {})["metadata"].get("name") or ""
    return APIStatusError.forbidden(attributes.group_resource, name, message)


def parse_labels(selector: str) -> dict[str, str]:
    """
    Parse a selector such as C{a=b,c=d}; other forms are not supported.

    @raise APIStatusError: The selector has another form (500, without a reason).
    @see: kubernetes/apimachinery, C{pkg/labels/labels.go}: ConvertSelectorToLabelsMap.
    """
    labels: dict[str, str] = {}
    if not selector:
        return labels
    for part in selector.split(","):
        pieces = part.split("=")
        if len(pieces) != 2:
            raise APIStatusError.unknown(f"invalid selector: [{' '.join(pieces)}]")
        key, value = pieces[0].strip(), pieces[1].strip()
        problems = validate_qualified_name(key)
        if problems:
            raise APIStatusError.unknown(f"<nil>: Invalid value: {quoted(key)}: {'; '.join(problems)}")
        problems = validate_label_value(value)
        if problems:
            raise APIStatusError.unknown(f"[{key}]: Invalid value: {quoted(value)}: {'; '.join(problems)}")
        labels[key] = value
    return labels
