"""The group admissionregistration.k8s.io: webhook configurations, admission policies and bindings."""

from __future__ import annotations

from typing import Final

from ..generic.resourceinfo import Kind, SubresourceInfo, define_kind

#: The resources of the group, in every release.
KINDS: Final[tuple[Kind, ...]] = (
    define_kind(
        "admissionregistration.k8s.io",
        "mutatingadmissionpolicies",
        "MutatingAdmissionPolicy",
        versions="v1:36 v1beta1:34 v1alpha1:32",
        categories="api-extensions",
    ),
    define_kind(
        "admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings",
        "MutatingAdmissionPolicyBinding",
        versions="v1:36 v1beta1:34 v1alpha1:32",
        categories="api-extensions",
    ),
    define_kind(
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
        "MutatingWebhookConfiguration",
        categories="api-extensions",
    ),
    define_kind(
        "admissionregistration.k8s.io",
        "validatingadmissionpolicies",
        "ValidatingAdmissionPolicy",
        versions="v1:30 v1beta1:28 v1alpha1:26",
        categories="api-extensions",
        subresources=(SubresourceInfo("status", "ValidatingAdmissionPolicy", since=27),),
    ),
    define_kind(
        "admissionregistration.k8s.io",
        "validatingadmissionpolicybindings",
        "ValidatingAdmissionPolicyBinding",
        versions="v1:30 v1beta1:28 v1alpha1:26",
        categories="api-extensions",
    ),
    define_kind(
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        categories="api-extensions",
    ),
)
