"""Rules of webhooks and policies. Pure functions on names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import frozen

from ...api.admission import AdmissionAttributes
from ...api.resource import GroupVersionResource, JSONObject

_NAMESPACES: Final = GroupVersionResource("", "v1", "namespaces")
#: Webhook configurations and policies are exempt from webhooks and policies, so that a faulty one can be repaired.
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

#: Requests of authentication and authorization, which are not stored: a faulty policy must not stop them.
_REVIEWS: Final = frozenset(
    (
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authorization.k8s.io", "localsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
    )
)


def is_review(attributes: AdmissionAttributes) -> bool:
    """
    Return whether a request asks for a decision of authentication or authorization.

    Policies never apply to them; webhooks do not from 1.37 on. See kubernetes,
    C{pkg/kubeapiserver/admission/exclusion/resources.go}.
    """
    return (attributes.group, attributes.resource) in _REVIEWS


def is_exempt_admission_configuration(attributes: AdmissionAttributes) -> bool:
    """Return whether a request is for a webhook configuration, a policy or a binding."""
    return attributes.group == "admissionregistration.k8s.io" and attributes.kind in _EXEMPT


def _any_of(values: Sequence[str] | None) -> frozenset[str] | None:
    """Return the matching values; L{None} for all."""
    matching = frozenset(values or ())
    return None if "*" in matching else matching


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
        """Compile a rule."""
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
        Return whether the rule matches a request.

        @param operation: C{CREATE}, C{UPDATE}, C{DELETE} or C{CONNECT}.
        @param resource: The resource.
        @param subresource: The subresource; C{""} for the main resource.
        @param namespaced: Whether the request has a namespace. Namespaces themselves are cluster-scoped.
        """
        if self.scope != "*":
            is_namespaced = namespaced and resource != _NAMESPACES
            if is_namespaced != (self.scope == "Namespaced"):
                return False
        return (
            (self.operations is None or operation in self.operations)
            and (self.groups is None or resource.group in self.groups)
            and (self.versions is None or resource.version in self.versions)
            and any(name in ("*", resource.resource) and sub in ("*", subresource) for name, sub in self.resources)
        )
