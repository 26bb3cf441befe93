"""Matches requests against the rules and selectors of a webhook or policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import define

from ...api.admission import (
    CREATE,
    UPDATE,
    AdmissionAttributes,
)
from ...api.errors import APIStatusError
from ...api.resource import GroupResource, GroupVersionResource, JSONObject
from ...api.selectors import LabelSelector, SelectorError, label_selector_from_object
from .equivalents import EquivalentResource
from .rules import RuleWithOperations


@define(frozen=True)
class Matcher:
    """
    The compiled form of C{rules}, C{matchPolicy}, C{namespaceSelector} and C{objectSelector}.

    @ivar match_equivalent: Whether requests for the same objects under another group or version match, too.
    @ivar namespace_selector: The selector, or the error text of a selector that does not compile. An invalid selector
        was accepted by the validation of another server; requests that match the rules fail.
    @ivar object_selector: The selector for labels of the object, or an error text.
    """

    rules: tuple[RuleWithOperations, ...]
    match_equivalent: bool
    namespace_selector: LabelSelector | str
    object_selector: LabelSelector | str

    @classmethod
    def make(cls, webhook: JSONObject) -> Matcher:
        """Compile the matching fields of a webhook or of a C{MatchResources}."""
        return cls(
            tuple(RuleWithOperations.make(rule) for rule in webhook.get("rules") or ()),
            webhook.get("matchPolicy") == "Equivalent",
            _selector(webhook.get("namespaceSelector")),
            _selector(webhook.get("objectSelector")),
        )

    def match_rules(
        self, attributes: AdmissionAttributes, equivalents: Sequence[EquivalentResource]
    ) -> EquivalentResource | None:
        """
        Return the resource and kind in which the rules match a request; L{None} if no rule matches.

        The result does not depend on the object and can be cached.

        @param equivalents: All resources under which the object can be requested.
        """
        operation, subresource = attributes.operation, attributes.subresource
        namespaced = bool(attributes.namespace)
        requested = attributes.request_resource

        def matches_rule(rule: RuleWithOperations, resource: GroupVersionResource) -> bool:
            return rule.matches(operation, resource, subresource, namespaced)

        if any(matches_rule(rule, requested) for rule in self.rules):
            return EquivalentResource(requested, attributes.request_kind)
        if self.match_equivalent:
            for rule in self.rules:
                for equivalent in equivalents:
                    if equivalent.resource != requested and matches_rule(rule, equivalent.resource):
                        return equivalent
        return None

    def match_selectors(self, attributes: AdmissionAttributes) -> bool:
        """
        Return whether the namespace selector and the object selector match a request.

        @raise APIStatusError: The namespace does not exist (404), or a selector is invalid (500).
        """
        for selector in (self.namespace_selector, self.object_selector):
            if isinstance(selector, str):
                raise APIStatusError.internal(selector)
        namespaces, objects = self.namespace_selector, self.object_selector
        assert isinstance(namespaces, LabelSelector) and isinstance(objects, LabelSelector)
        if not objects.empty:
            matches = objects.matches
            if not any(
                matches(labels)
                for labels in (_labels(attributes.object), _labels(attributes.old_object))
                if labels is not None
            ):
                return False
        if namespaces.empty or (not attributes.namespace and attributes.resource != "namespaces"):
            return True
        return namespaces.matches(namespace_labels(attributes))


def _selector(selector: JSONObject | None) -> LabelSelector | str:
    try:
        return label_selector_from_object(selector or {})
    except SelectorError as error:
        return str(error)


def _labels(obj: JSONObject | None) -> Mapping[str, str] | None:
    """Return the labels of an object; L{None} without metadata."""
    meta = obj.get("metadata") if obj is not None else None
    return None if meta is None else meta.get("labels") or {}


def namespace_labels(attributes: AdmissionAttributes) -> Mapping[str, str]:
    """
    Return the labels of the namespace of a request; for writes of a namespace, its new labels.

    @raise APIStatusError: The namespace does not exist (404).
    """
    if (
        attributes.resource == "namespaces"
        and not attributes.subresource
        and attributes.operation in (CREATE, UPDATE)
        and attributes.object is not None
    ):
        return attributes.object["metadata"].get("labels") or {}
    namespace = attributes.context.get_decoded("", "namespaces", "", attributes.namespace)
    if namespace is None:
        raise APIStatusError.not_found(GroupResource("", "namespaces"), attributes.namespace)
    return namespace["metadata"].get("labels") or {}
