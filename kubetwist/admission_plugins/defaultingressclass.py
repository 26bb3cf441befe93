"""DefaultIngressClass: sets the default IngressClass of the cluster on Ingresses without a class."""

from __future__ import annotations

from typing import ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..interfaces import IMutatingAdmission
from .defaultstorageclass import newest_default

DEFAULT: Final = "ingressclass.kubernetes.io/is-default-class"
_CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"


@implementer(IMutatingAdmission)
@frozen
class DefaultIngressClass:
    """See kubernetes, C{plugin/pkg/admission/network/defaultingressclass/admission.go}."""

    name: ClassVar[str] = "DefaultIngressClass"
    resources: ClassVar[tuple[str, ...]] = ("ingresses.networking.k8s.io",)

    def handles(self, operation: str) -> bool:
        """Return true for CREATE; the class is not defaulted later."""
        return operation == "CREATE"

    def admit(self, attributes: AdmissionAttributes) -> None:
        """See L{IMutatingAdmission.admit}."""
        ingress = attributes.object
        assert ingress is not None
        if ingress["spec"].get("ingressClassName") is not None:
            return
        if _CLASS_ANNOTATION in (ingress["metadata"].get("annotations") or {}):
            return
        classes = attributes.context.list_decoded("networking.k8s.io", "ingressclasses")
        default_class = newest_default(classes, (DEFAULT,))
        if default_class is not None:
            ingress["spec"]["ingressClassName"] = default_class["metadata"]["name"]
