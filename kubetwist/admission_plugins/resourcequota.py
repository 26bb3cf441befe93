"""Keeps namespaces within their resource quotas, and counts in the quotas what they use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..admission.attributes import AdmissionAttributes
from ..api.errors import APIStatusError
from ..api.quantity import Quantity
from ..api.resource import GroupResource, JSONObject
from ..interfaces import IValidatingAdmission
from ..registry.podresources import Amounts, amounts
from ..registry.quotas import countable, counts, in_scope, in_text, unsaid, usage

_ZERO: Final = Quantity.parse("0")


@implementer(IValidatingAdmission)
@frozen
class ResourceQuota:
    """
    See kubernetes, C{staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota}.

    A quota counts from when its status says what is allowed. What is counted here for a write that fails later stays
    counted until the quota's controller looks again.
    """

    name: ClassVar[str] = "ResourceQuota"

    def handles(self, operation: str) -> bool:
        """Creating and updating."""
        return operation in ("CREATE", "UPDATE")

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}."""
        group, resource, obj = attributes.group, attributes.resource, attributes.object
        if not attributes.namespace or obj is None or resource == "namespaces":
            return
        if not counts(attributes.operation, group, resource, attributes.subresource):
            return
        quotas = attributes.context.lookup_all("", "resourcequotas", attributes.namespace)
        if not quotas:
            return
        concerned = [quota for quota in quotas if _concerns(quota, attributes, obj)]
        delta = usage(group, resource, obj)
        if attributes.old_object is not None:
            before = usage(group, resource, attributes.old_object)
            delta = {name: max(amount - before.get(name, _ZERO), _ZERO) for name, amount in delta.items()}
        delta = {name: amount for name, amount in delta.items() if amount}
        charged = [quota for quota in concerned if set(delta).intersection(_hard(quota))]
        for quota in charged:
            _charge(quota, delta, attributes)
        if not attributes.dry_run:
            await self._count(charged, delta, attributes)

    async def _count(self, quotas: Sequence[JSONObject], delta: Amounts, attributes: AdmissionAttributes) -> None:
        def counted(quota: JSONObject) -> None:
            # Others may have used something since it was looked at.
            quota["status"]["used"] = _charge(quota, delta, attributes)

        for quota in quotas:
            name = quota["metadata"]["name"]
            await attributes.context.amend("", "resourcequotas", attributes.namespace, name, counted)


def _hard(quota: JSONObject) -> JSONObject:
    return (quota.get("status") or {}).get("hard") or {}


def _concerns(quota: JSONObject, attributes: AdmissionAttributes, obj: JSONObject) -> bool:
    """
    Whether a quota counts this object.

    @raise APIStatusError: It does, and can not, as the object or the quota does not say enough (403).
    """
    group, resource = attributes.group, attributes.resource
    restricted = countable(group, resource, _hard(quota))
    if not restricted or not in_scope(quota, group, resource, obj):
        return False
    name = quota["metadata"]["name"]
    if not group and resource == "pods":
        missing = unsaid(obj, restricted)
        if missing:
            raise _forbidden(attributes, f"failed quota: {name}: {missing}")
    unknown = restricted.difference(quota["status"].get("used") or {})
    if unknown:
        why = f"status unknown for quota: {name}, resources: {','.join(sorted(restricted))}"
        raise _forbidden(attributes, why)
    return True


def _charge(quota: JSONObject, delta: Amounts, attributes: AdmissionAttributes) -> JSONObject:
    """
    What is used of a quota with this write.

    @raise APIStatusError: More than there is (403).
    """
    hard = amounts(_hard(quota))
    used = amounts((quota.get("status") or {}).get("used"))
    requested = {name: amount for name, amount in delta.items() if name in hard}
    total = {name: used.get(name, _ZERO) + amount for name, amount in requested.items()}
    exceeded = [name for name, amount in total.items() if amount > hard[name]]
    if exceeded:
        why = (
            f"exceeded quota: {quota['metadata']['name']}, requested: {in_text(requested, exceeded)}, "
            f"used: {in_text(used, exceeded)}, limited: {in_text(hard, exceeded)}"
        )
        raise _forbidden(attributes, why)
    return {name: str(amount) for name, amount in {**used, **total}.items()}


def _forbidden(attributes: AdmissionAttributes, why: str) -> APIStatusError:
    return APIStatusError.forbidden(GroupResource(attributes.group, attributes.resource), attributes.name, why)
