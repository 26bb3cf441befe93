"""Keeps the pods of a namespace on the nodes that are for it."""

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
    only,
    text,
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

    @ivar selectors: By namespace, which labels pods may select by; and what namespaces without an own selector have.
    """

    name: ClassVar[str] = "PodNodeSelector"
    resources: ClassVar[tuple[str, ...]] = ("pods",)
    selectors: Mapping[str, str] = {}

    @classmethod
    def configured(cls, server: AdmissionContext, configuration: JSONValue) -> PodNodeSelector:
        """See L{kubetwist.interfaces.IAdmissionPluginFactory.make}."""
        said = only(configuration, ("podNodeSelectorPluginConfig", "imagePolicy"), "")
        selectors = said.get("podNodeSelectorPluginConfig")
        known = selectors if isinstance(selectors, dict) else only(selectors, (), "podNodeSelectorPluginConfig")
        return cls({name: text(value, f"podNodeSelectorPluginConfig.{name}") for name, value in known.items()})

    def handles(self, operation: str) -> bool:
        """Return true for CREATE."""
        return operation == "CREATE"

    def admit(self, attributes: AdmissionAttributes) -> None:
        """See L{IMutatingAdmission.admit}."""
        pod = attributes.object
        assert pod is not None
        own = pod["spec"].get("nodeSelector") or {}
        wanted = self._wanted(attributes, own)
        if wanted:
            pod["spec"]["nodeSelector"] = {**wanted, **own}
        self.validate(attributes)

    def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}."""
        pod = attributes.object
        assert pod is not None
        own = pod["spec"].get("nodeSelector") or {}
        self._wanted(attributes, own)
        allowed = parse_labels(self.selectors.get(attributes.namespace, ""))
        if allowed and not own.items() <= allowed.items():
            raise _refused(attributes, "pod node label selector labels conflict with its namespace whitelist")

    def _wanted(self, attributes: AdmissionAttributes, own: Mapping[str, str]) -> dict[str, str]:
        """
        Return the node selector that the namespace sets on its pods.

        @raise APIStatusError: The pod says otherwise (403), or the namespace nothing that makes sense (500).
        """
        namespace = attributes.context.get_decoded("", "namespaces", "", attributes.namespace)
        if namespace is None:
            raise APIStatusError.not_found(GroupResource("", "namespaces"), attributes.namespace)
        said = (namespace["metadata"].get("annotations") or {}).get(_ANNOTATION)
        wanted = parse_labels(self.selectors.get(_DEFAULT, "") if said is None else said)
        if any(own.get(key, value) != value for key, value in wanted.items()):
            raise _refused(attributes, "pod node label selector conflicts with its namespace node label selector")
        return wanted


def _refused(attributes: AdmissionAttributes, why: str) -> APIStatusError:
    name = (attributes.object or {})["metadata"].get("name") or ""
    return APIStatusError.forbidden(attributes.group_resource, name, why)


def parse_labels(selector: str) -> dict[str, str]:
    """
    Parse a selector such as C{a=b,c=d}; other forms are not supported.

    @raise APIStatusError: It is another one (500, without a reason).
    @see: kubernetes/apimachinery, C{pkg/labels/labels.go}: ConvertSelectorToLabelsMap.
    """
    found: dict[str, str] = {}
    if not selector:
        return found
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
        found[key] = value
    return found
