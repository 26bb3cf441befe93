"""Which requests the rules of webhooks and policies match. Pure functions on names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import frozen

from ...api.admission import AdmissionAttributes
from ...api.resource import GroupVersionResource, JSONObject

_NAMESPACES: Final = GroupVersionResource("", "v1", "namespaces")
#: What configures admission is not admitted by what it configures: nobody shall lock everybody out.
_EXEMPT: Final = frozenset(
    (
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    )
)


def is_exempt_admission_configuration(attributes: AdmissionAttributes) -> bool:
    """Whether a request is about the configuration of admission itself."""
    return attributes.group == "admissionregistration.k8s.io" and attributes.kind in _EXEMPT


def _any_of(values: Sequence[str] | None) -> frozenset[str] | None:
    """The values that match; L{None} for all."""
    found = frozenset(values or ())
    return None if "*" in found else found


@frozen
class RuleWithOperations:
    """
    A C{RuleWithOperations}. Sets are L{None} where everything matches.

    @ivar resources: Pairs of resource and subresource, each C{"*"} for all.
    @ivar scope: C{"*"}, C{"Cluster"} or C{"Namespaced"}.
    """

    operations: frozenset[str] | None
    groups: frozenset[str] | None
    versions: frozenset[str] | None
    resources: tuple[tuple[str, str], ...]
    scope: str

    @classmethod
    def make(cls, rule: JSONObject) -> RuleWithOperations:
        """The rule that an object's field is."""
        pairs = (text.partition("/") for text in rule.get("resources") or ())
        return cls(
            _any_of(rule.get("operations")),
            _any_of(rule.get("apiGroups")),
            _any_of(rule.get("apiVersions")),
            tuple((resource, subresource) for resource, _, subresource in pairs),
            rule.get("scope") or "*",
        )

    def matches(self, operation: str, resource: GroupVersionResource, subresource: str, namespaced: bool) -> bool:
        """
        Whether a request is meant.

        @param namespaced: Whether it is in a namespace. A namespace is in itself, and so is not meant by this.
        """
        if self.scope != "*":
            inside = namespaced and resource != _NAMESPACES
            if inside != (self.scope == "Namespaced"):
                return False
        return (
            (self.operations is None or operation in self.operations)
            and (self.groups is None or resource.group in self.groups)
            and (self.versions is None or resource.version in self.versions)
            and any(name in ("*", resource.resource) and part in ("*", subresource) for name, part in self.resources)
        )
