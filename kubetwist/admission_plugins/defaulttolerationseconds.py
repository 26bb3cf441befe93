"""DefaultTolerationSeconds: adds tolerations of limited duration for failed nodes to pods without such tolerations."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.jsontypes import JSONValue
from ..interfaces import IMutatingAdmission

if TYPE_CHECKING:
    from ..api.admission import AdmissionContext

TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


@implementer(IMutatingAdmission)
@frozen
class DefaultTolerationSeconds:
    """
    See kubernetes, C{plugin/pkg/admission/defaulttolerationseconds/admission.go}.

    @ivar seconds: The duration in seconds for each of L{TAINTS}: C{--default-not-ready-toleration-seconds} and
        C{--default-unreachable-toleration-seconds}.
    """

    name: ClassVar[str] = "DefaultTolerationSeconds"
    resources: ClassVar[tuple[str, ...]] = ("pods",)
    seconds: tuple[int, int] = (300, 300)

    @classmethod
    def configured(cls, server: AdmissionContext, configuration: JSONValue) -> DefaultTolerationSeconds:
        """See L{kubetwist.interfaces.IAdmissionPluginFactory.make}."""
        return cls(server.toleration_seconds)

    def handles(self, operation: str) -> bool:
        """Return true for CREATE and UPDATE."""
        return operation in ("CREATE", "UPDATE")

    def admit(self, attributes: AdmissionAttributes) -> None:
        """See L{IMutatingAdmission.admit}."""
        pod = attributes.object
        assert pod is not None
        spec = pod["spec"]
        tolerations = spec.get("tolerations") or []
        covered = {
            toleration.get("key") or ""
            for toleration in tolerations
            if (toleration.get("effect") or "NoExecute") == "NoExecute"
        }
        if "" in covered:
            return
        added = [
            {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
            for taint, seconds in zip(TAINTS, self.seconds, strict=True)
            if taint not in covered
        ]
        if added:
            spec["tolerations"] = [*tolerations, *added]
