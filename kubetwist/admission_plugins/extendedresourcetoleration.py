"""ExtendedResourceToleration: adds tolerations for dedicated nodes to pods that request extended resources."""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.podspecs import declared_containers
from ..api.resource import JSONObject
from ..interfaces import IMutatingAdmission
from ..registry.core.pod.validation.resources import is_extended


@implementer(IMutatingAdmission)
@frozen
class ExtendedResourceToleration:
    """See kubernetes, C{plugin/pkg/admission/extendedresourcetoleration/admission.go}."""

    name: ClassVar[str] = "ExtendedResourceToleration"
    resources: ClassVar[tuple[str, ...]] = ("pods",)

    def handles(self, operation: str) -> bool:
        """Return true for CREATE and UPDATE."""
        return operation in ("CREATE", "UPDATE")

    def admit(self, attributes: AdmissionAttributes) -> None:
        """See L{IMutatingAdmission.admit}."""
        assert attributes.object is not None
        spec = attributes.object["spec"]
        names = {
            name
            for container, _, _ in declared_containers(spec)
            for name in (container.get("resources") or {}).get("requests") or ()
            if is_extended(name)
        }
        for name in sorted(names):
            _tolerate(spec, {"key": name, "operator": "Exists", "effect": "NoSchedule"})


def _tolerate(spec: JSONObject, toleration: JSONObject) -> None:
    """Add a toleration, replacing one that differs only in its seconds."""
    tolerations = spec.get("tolerations") or ()
    if toleration in tolerations:
        return
    replaced = [toleration if _identity(one) == _identity(toleration) else one for one in tolerations]
    spec["tolerations"] = replaced if toleration in replaced else [*replaced, toleration]


def _identity(toleration: JSONObject) -> tuple[str, ...]:
    """Return all fields of a toleration except for its seconds."""
    return tuple(toleration.get(field) or "" for field in ("key", "effect", "operator", "value"))
