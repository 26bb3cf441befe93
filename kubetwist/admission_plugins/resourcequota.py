"""Enforces resource quotas of namespaces, and records their usage in the quotas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from attrs import Factory, frozen

from zope.interface import implementer

from ..api.admission import (
    AdmissionAttributes,
    Commit,
)
from ..api.errors import APIStatusError, FieldError, required
from ..api.jsontypes import JSONValue
from ..api.quantity import Quantity
from ..api.resource import JSONObject
from ..interfaces import IValidatingAdmission
from ..registry.core.pod.resources import ResourceList, amounts
from ..registry.core.resourcequota.usage import (
    handles,
    in_text,
    matches_quota,
    matching_resources,
    matching_scopes,
    missing_constraints,
    scopes_of,
    usage,
    usage_unchanged,
)
from ..storage.locks import FlatLock
from .pluginconfig import (
    collect_causes,
    decode_configuration,
    list_field,
    strict_object,
    string_field,
)

if TYPE_CHECKING:
    from ..api.admission import AdmissionContext

_ZERO: Final = Quantity.parse("0")
_API_VERSIONS: Final = (
    "apiserver.config.k8s.io/v1",
    "resourcequota.admission.k8s.io/v1beta1",
    "resourcequota.admission.k8s.io/v1alpha1",
)


@frozen
class LimitedResource:
    """
    A resource that may not be used without a quota (C{limitedResources}).

    @ivar match_contains: Substrings of resource names that are limited.
    @ivar match_scopes: Scope selector requirements of limited objects.
    """

    group: str
    resource: str
    match_contains: tuple[str, ...]
    match_scopes: tuple[JSONObject, ...]


@implementer(IValidatingAdmission)
@frozen
class ResourceQuota:
    """
    See kubernetes, C{staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota}.

    A quota is enforced once its status contains the limits. The usage is written in the same transaction as the object
    that uses it. Writes that a quota counts are serialized in each namespace to avoid conflicts.

    @ivar limited: The resources that need a quota: C{limitedResources} of the configuration.
    """

    name: ClassVar[str] = "ResourceQuota"
    limited: Sequence[LimitedResource] = ()
    _locks: dict[str, FlatLock] = Factory(dict)

    @classmethod
    def configured(cls, server: AdmissionContext, configuration: JSONValue) -> ResourceQuota:
        """See L{kubetwist.interfaces.IAdmissionPluginFactory.make}."""
        if configuration is None:
            return cls()
        kind = "ResourceQuotaConfiguration" if configuration.get("apiVersion") == _API_VERSIONS[0] else "Configuration"
        decoded = decode_configuration(configuration, kind, _API_VERSIONS, ("limitedResources",))
        with collect_causes() as causes:
            limited = [
                _limited_resource(one, f"limitedResources[{index}]", causes)
                for index, one in enumerate(list_field(decoded.get("limitedResources"), "limitedResources"))
            ]
        return cls(limited)

    def handles(self, operation: str) -> bool:
        """Return true for CREATE and UPDATE."""
        return operation in ("CREATE", "UPDATE")

    def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}."""
        namespace, resource = attributes.namespace, attributes.resource
        if not namespace or attributes.object is None or (resource == "namespaces" and not attributes.group):
            return
        if not handles(attributes.operation, attributes.group, resource, attributes.subresource):
            return
        quotas = attributes.context.list_decoded("", "resourcequotas", namespace)
        if not quotas and not self.limited:
            return
        old = attributes.old_object
        if old is not None and usage_unchanged(resource, attributes.subresource, attributes.object, old):
            return
        charges = self._quota_deltas(quotas, attributes, attributes.object)
        for quota in quotas:
            delta = charges.get(quota["metadata"]["name"])
            if delta:
                _add_usage(quota, delta, attributes)
        if charges and not attributes.dry_run:
            attributes.charge(partial(self._commit, attributes, charges))

    async def _commit(
        self, attributes: AdmissionAttributes, charges: Mapping[str, ResourceList], commit: Commit
    ) -> int:
        """
        Write the object and the new usage of its quotas in one transaction.

        @raise APIStatusError: Concurrent writes have exhausted a quota (403).
        """

        def change(quota: JSONObject) -> None:
            delta = charges[quota["metadata"]["name"]]
            quota["status"]["used"] = _add_usage(quota, delta, attributes)

        namespace = attributes.namespace
        lock = self._locks.setdefault(namespace, FlatLock())
        await lock.acquire()
        try:
            return await attributes.context.commit_with_status_updates(
                commit, "", "resourcequotas", namespace, list(charges), change
            )
        finally:
            lock.release()
            if not lock.locked:
                self._locks.pop(namespace, None)

    def _quota_deltas(
        self, quotas: Sequence[JSONObject], attributes: AdmissionAttributes, obj: JSONObject
    ) -> dict[str, ResourceList]:
        """
        Return the usage that a write adds to each quota, by quota name; quotas without added usage are omitted.

        @raise APIStatusError: A quota cannot be evaluated, or a required quota is missing.
        """
        group, resource = attributes.group, attributes.resource
        covered: set[str] = set()
        covered_scopes: list[JSONObject] = []
        matching: list[JSONObject] = []
        for quota in quotas:
            covered_scopes += matching_scopes(scopes_of(quota), group, resource, obj)
            restricted = _restricted_resources(quota, attributes, obj)
            if restricted:
                matching.append(quota)
                covered |= restricted
        used = usage(group, resource, obj)
        negative = sorted(name for name, amount in used.items() if amount < _ZERO)
        if negative:
            raise attributes.forbidden(f"quota usage is negative for resource(s): {','.join(negative)}")
        added = _delta_usage(used, attributes)
        deltas = {}
        for quota in matching:
            was_in_scope = attributes.old_object is None or matches_quota(quota, group, resource, attributes.old_object)
            delta = added if was_in_scope else {name: amount for name, amount in used.items() if amount}
            if delta:
                deltas[quota["metadata"]["name"]] = delta
        if self.limited and (deltas or (not matching and added)):
            self._check_limited_resources(attributes, obj, used, covered, covered_scopes)
        return deltas

    def _check_limited_resources(
        self,
        attributes: AdmissionAttributes,
        obj: JSONObject,
        used: ResourceList,
        covered: set[str],
        covered_scopes: Sequence[JSONObject],
    ) -> None:
        """
        Check that limited resources are covered by a quota.

        @param attributes: The request.
        @param obj: The new object.
        @param used: The usage of the object.
        @param covered: The resources that matching quotas limit.
        @param covered_scopes: The scope requirements of quotas that the object matches.
        @raise APIStatusError: A quota is missing (403).
        """
        group, resource = attributes.group, attributes.resource
        needed = {
            name
            for limited in self.limited
            if (limited.group, limited.resource) == (group, resource)
            for name, amount in used.items()
            if amount and any(substring in name for substring in limited.match_contains)
        }
        missing = sorted(needed - covered)
        if missing:
            raise attributes.forbidden(f"insufficient quota to consume: {','.join(missing)}")
        covered_names = {scope.get("scopeName") for scope in covered_scopes}
        uncovered_scopes = [
            scope
            for limited in self.limited
            for scope in matching_scopes(limited.match_scopes, group, resource, obj)
            if scope.get("scopeName") not in covered_names
        ]
        if uncovered_scopes:
            listed = " ".join(map(_format_scope, uncovered_scopes))
            raise APIStatusError.unknown(f"insufficient quota to match these scopes: [{listed}]")


def _delta_usage(used: ResourceList, attributes: AdmissionAttributes) -> ResourceList:
    """Return the usage that a write adds to the usage of the old object."""
    old = attributes.old_object
    before = {} if old is None else usage(attributes.group, attributes.resource, old)
    more = {name: amount - before[name] if name in before else amount for name, amount in used.items()}
    return {name: amount for name, amount in more.items() if amount > _ZERO}


def _hard(quota: JSONObject) -> JSONObject:
    return (quota.get("status") or {}).get("hard") or {}


def _restricted_resources(quota: JSONObject, attributes: AdmissionAttributes, obj: JSONObject) -> set[str]:
    """
    Return the resources of a quota that the object uses; empty if the quota does not match.

    @raise APIStatusError: The quota matches, but the object does not set a required resource (403).
    """
    group, resource = attributes.group, attributes.resource
    restricted = matching_resources(group, resource, _hard(quota))
    if not restricted or not matches_quota(quota, group, resource, obj):
        return set()
    name = quota["metadata"]["name"]
    if not group and resource == "pods":
        missing = missing_constraints(obj, restricted)
        if missing:
            raise attributes.forbidden(f"failed quota: {name}: {missing}")
    unknown = restricted.difference(quota["status"].get("used") or {})
    if unknown:
        message = f"status unknown for quota: {name}, resources: {','.join(sorted(restricted))}"
        raise attributes.forbidden(message)
    return restricted


def _add_usage(quota: JSONObject, delta: ResourceList, attributes: AdmissionAttributes) -> JSONObject:
    """
    Return the used amounts of a quota after this write.

    @raise APIStatusError: The quota is exceeded (403).
    """
    hard = amounts(_hard(quota))
    used = amounts((quota.get("status") or {}).get("used"))
    requested = {name: amount for name, amount in delta.items() if name in hard}
    total = {name: used.get(name, _ZERO) + amount for name, amount in requested.items()}
    exceeded = [name for name, amount in total.items() if amount > hard[name]]
    # The status contains the current usage.
    if exceeded and attributes.subresource != "status":
        message = (
            f"exceeded quota: {quota['metadata']['name']}, requested: {in_text(requested, exceeded)}, "
            f"used: {in_text(used, exceeded)}, limited: {in_text(hard, exceeded)}"
        )
        raise attributes.forbidden(message)
    return {name: str(amount) for name, amount in {**used, **total}.items()}


def _format_scope(scope: JSONObject) -> str:
    """Format a scope selector requirement as Go does."""
    return f"{{{scope.get('scopeName', '')} {scope.get('operator', '')} [{' '.join(scope.get('values') or ())}]}}"


def _limited_resource(value: JSONValue, path: str, causes: list[FieldError]) -> LimitedResource:
    limited = strict_object(value, ("apiGroup", "resource", "matchContains", "matchScopes"), path)
    resource = string_field(limited.get("resource"), f"{path}.resource")
    if not resource:
        causes.append(required(f"{path}.resource"))
    match_contains = tuple(
        string_field(one, f"{path}.matchContains") for one in list_field(limited.get("matchContains"), path)
    )
    match_scopes = tuple(
        strict_object(one, ("scopeName", "operator", "values"), f"{path}.matchScopes[{index}]")
        for index, one in enumerate(list_field(limited.get("matchScopes"), f"{path}.matchScopes"))
    )
    return LimitedResource(
        string_field(limited.get("apiGroup"), f"{path}.apiGroup"), resource, match_contains, match_scopes
    )
