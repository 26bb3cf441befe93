"""PodTolerationRestriction: adds a namespace's default tolerations to its pods, and enforces its whitelist."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.decoding import decode_json, json_type
from ..api.errors import APIStatusError
from ..api.jsontypes import JSONValue
from ..api.resource import GroupResource, JSONObject
from ..interfaces import IMutatingAdmission, IValidatingAdmission
from ..registry.core.pod.qos import qos_class
from .pluginconfig import (
    InvalidConfiguration,
    decode_configuration,
    list_field,
)
from .tolerations import implies, merge_tolerations

if TYPE_CHECKING:
    from ..api.admission import AdmissionContext

_DEFAULTS: Final = "scheduler.alpha.kubernetes.io/defaultTolerations"
_ALLOWED: Final = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
_API_VERSION: Final = "podtolerationrestriction.admission.k8s.io/v1alpha1"
_PRESSURE: Final = {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}
_FIELDS: Final = {"key": str, "operator": str, "value": str, "effect": str, "tolerationSeconds": int}


@implementer(IMutatingAdmission, IValidatingAdmission)
@frozen
class PodTolerationRestriction:
    """
    See kubernetes, C{plugin/pkg/admission/podtolerationrestriction/admission.go}.

    @ivar default: The tolerations of pods in namespaces without an annotation.
    @ivar allowed: The tolerations allowed in such pods; an empty list allows all.
    """

    name: ClassVar[str] = "PodTolerationRestriction"
    resources: ClassVar[tuple[str, ...]] = ("pods",)
    default: Sequence[JSONObject] = ()
    allowed: Sequence[JSONObject] = ()

    @classmethod
    def configured(cls, server: AdmissionContext, configuration: JSONValue) -> PodTolerationRestriction:
        """See L{kubetwist.interfaces.IAdmissionPluginFactory.make}."""
        if configuration is None:
            return cls()
        decoded = decode_configuration(configuration, "Configuration", (_API_VERSION,), ("default", "whitelist"))
        lists = []
        for field in ("default", "whitelist"):
            try:
                lists.append(_tolerations(list_field(decoded.get(field), field)))
            except ValueError as error:
                raise InvalidConfiguration(f"{field}: {error}") from error
        return cls(*lists)

    def handles(self, operation: str) -> bool:
        """Return true for CREATE and UPDATE."""
        return operation in ("CREATE", "UPDATE")

    def admit(self, attributes: AdmissionAttributes) -> None:
        """See L{IMutatingAdmission.admit}."""
        assert attributes.object is not None
        spec = attributes.object["spec"]
        added: list[JSONObject] = []
        if attributes.operation == "CREATE":
            defaults = _namespace_tolerations(attributes, _DEFAULTS)
            added += self.default if defaults is None else defaults
        if qos_class(spec) != "BestEffort":
            added.append(_PRESSURE)
        if added:
            spec["tolerations"] = merge_tolerations(spec.get("tolerations") or (), [dict(one) for one in added])
        self.validate(attributes)

    def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}."""
        assert attributes.object is not None
        tolerations = attributes.object["spec"].get("tolerations")
        if not tolerations:
            return
        allowed: Sequence[JSONObject] | None = _namespace_tolerations(attributes, _ALLOWED)
        scope = "namespace"
        if allowed is None:
            allowed, scope = self.allowed, "cluster"
        if allowed and not all(any(implies(wide, one) for wide in allowed) for one in tolerations):
            raise APIStatusError.unknown(
                "pod tolerations (possibly merged with namespace default tolerations) conflict with its "
                f"{scope} whitelist"
            )


def _namespace_tolerations(attributes: AdmissionAttributes, annotation: str) -> list[JSONObject] | None:
    """
    Return the tolerations in an annotation of the namespace; L{None} if there is no such annotation.

    @raise APIStatusError: The annotation is invalid (500), or the namespace does not exist (404).
    """
    namespace = attributes.context.get_decoded("", "namespaces", "", attributes.namespace)
    if namespace is None:
        raise APIStatusError.not_found(GroupResource("", "namespaces"), attributes.namespace)
    value = (namespace["metadata"].get("annotations") or {}).get(annotation)
    if value is None:
        return None
    if not value:
        return []
    try:
        return _tolerations(decode_json(value.encode()).value)
    except ValueError as error:
        raise APIStatusError.unknown(str(error)) from error


def _tolerations(value: JSONValue) -> list[JSONObject]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError(f"json: cannot unmarshal {json_type(value)} into Go value of type []v1.Toleration")
    tolerations: list[JSONObject] = []
    for one in value:
        if not isinstance(one, dict):
            raise ValueError(f"json: cannot unmarshal {json_type(one)} into Go value of type v1.Toleration")
        toleration: JSONObject = {}
        for field, kind in _FIELDS.items():
            field_value = one.get(field)
            if field_value is None:
                continue
            if type(field_value) is not kind:
                actual, go_type = json_type(field_value), "string" if kind is str else "int64"
                raise ValueError(
                    f"json: cannot unmarshal {actual} into Go struct field Toleration.{field} of type {go_type}"
                )
            toleration[field] = field_value
        tolerations.append(toleration)
    return tolerations
