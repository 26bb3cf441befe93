"""
RBAC stores with the privilege escalation check.

A user who writes a role must hold all rules in it, or be allowed to C{escalate} it; one who writes a binding must hold
all rules of its role, or be allowed to C{bind} that role. This is asked whatever the authorizers are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...admission.decisions import decide
from ...api.authorization import AuthorizerAttributes, Decision
from ...api.errors import APIStatusError
from ...api.options import CreateOptions, WriteOptions
from ...api.rbacrules import FULL_AUTHORITY, Rule, escalation_message, uncovered_rules
from ...api.record import Draft
from ...api.requestscope import RequestScope
from ...api.resource import JSONObject
from ...api.users import MASTERS
from ...interfaces import IAuthorizer
from ..generic.allocation import NOTHING, Allocation
from ..generic.environment import StoredResource, StoreEnvironment
from ..generic.keys import check_key
from ..generic.store import Store
from .ruleresolver import GROUP, RoleNotFound, RuleResolver

#: What the garbage collector changes, and what changes with it: nothing of this gives anything to anyone.
_HARMLESS: Final = ("ownerReferences", "finalizers", "selfLink", "managedFields", "resourceVersion")


class EscalationCheckedStore(Store):
    """What roles and bindings have in common."""

    def __init__(
        self,
        resource: StoredResource,
        environment: StoreEnvironment,
        grants: RuleResolver,
        authorizer: IAuthorizer | None,
    ) -> None:
        """
        @param grants: What roles and bindings say now.
        @param authorizer: Asked about the verbs C{escalate} and C{bind}; L{None} denies both.
        """
        self._grants = grants
        self._authorizer = authorizer
        super().__init__(resource, environment)

    async def commit(
        self, key: str, draft: Draft | None, expected: int, allocation: Allocation = NOTHING, *more: Any
    ) -> int:
        """See L{Store.commit}; on return the rule resolver has the write."""
        revision = await super().commit(key, draft, expected, allocation, *more)
        await self._grants.seen(revision)
        return revision

    async def check_escalation(
        self, scope: RequestScope, obj: JSONObject, old: JSONObject | None, options: WriteOptions
    ) -> None:
        """See L{kubetwist.registry.generic.hooks.StoreHooks.check_escalation}."""
        if MASTERS in scope.user.groups or (old is not None and content(obj) == content(old)):
            return
        created = isinstance(options, CreateOptions)
        await self.authorize_grant(scope, obj, old, "" if created else obj["metadata"].get("name", ""))

    async def authorize_grant(self, scope: RequestScope, obj: JSONObject, old: JSONObject | None, name: str) -> None:
        """
        Look at what a write gives away.

        @param name: As in the request's path.
        @raise APIStatusError: It is more than the writer has.
        """
        raise NotImplementedError

    def confirm_no_escalation(self, scope: RequestScope, obj: JSONObject, rules: Sequence[Rule]) -> None:
        """
        Compare with what the writer has where the object is.

        @raise APIStatusError: Something is missing (403).
        """
        user = scope.user
        held, errors = self._grants.rules_for(user, scope.namespace)
        missing = uncovered_rules(held, rules)
        if missing:
            why = escalation_message(user.name, user.groups, missing)
            if errors:
                texts = list(dict.fromkeys(str(self.role_not_found(error)) for error in errors))
                why += f"; resolution errors: [{texts[0] if len(texts) == 1 else '[' + ', '.join(texts) + ']'}]"
            raise self.forbidden(obj, why)

    def role_not_found(self, error: RoleNotFound) -> APIStatusError:
        """
        The error for a role: the name is invalid (400), or there is no such role (404).

        The reference then names the resource that is being written instead.
        """
        try:
            check_key(error.name, error.namespace)
        except APIStatusError as impossible:
            return impossible
        return self.not_found(error.name)

    def forbidden(self, obj: JSONObject, why: str) -> APIStatusError:
        """The 403 for a write."""
        return APIStatusError.forbidden(self.group_resource, obj["metadata"].get("name", ""), why)

    async def allowed(self, scope: RequestScope, verb: str, group: str, resource: str, name: str) -> bool:
        """Whether the authorizers let the writer use one of the two verbs that are made for this."""
        authorizer = self._authorizer
        if authorizer is None:
            return False
        question = AuthorizerAttributes(
            scope.user, verb, group=group, version="*", resource=resource, namespace=scope.namespace, name=name
        )
        verdict = await decide(authorizer, question)
        return verdict.decision is Decision.ALLOW


class RoleStore(EscalationCheckedStore):
    """Roles and cluster roles."""

    async def authorize_grant(self, scope: RequestScope, obj: JSONObject, old: JSONObject | None, name: str) -> None:
        """Hold all rules, or be allowed to C{escalate}."""
        if await self.allowed(scope, "escalate", GROUP, self.info.resource, name):
            return
        self.confirm_no_escalation(scope, obj, obj.get("rules") or ())
        if obj.get("aggregationRule") or (old is not None and old.get("aggregationRule")):
            held, _ = self._grants.rules_for(scope.user, scope.namespace)
            if uncovered_rules(held, FULL_AUTHORITY):
                raise self.forbidden(obj, "must have cluster-admin privileges to use the aggregationRule")


class BindingStore(EscalationCheckedStore):
    """Role bindings and cluster role bindings."""

    async def authorize_grant(self, scope: RequestScope, obj: JSONObject, old: JSONObject | None, name: str) -> None:
        """Hold all rules of the role, or be allowed to C{bind} it."""
        reference = obj.get("roleRef") or {}
        kind, role = reference.get("kind", ""), reference.get("name", "")
        known = kind in ("Role", "ClusterRole")
        if known and await self.allowed(scope, "bind", reference.get("apiGroup", ""), f"{kind.lower()}s", role):
            return
        try:
            rules = self._grants.role((kind, role), scope.namespace).rules
        except RoleNotFound as error:
            if not known:
                raise APIStatusError.unknown(str(error)) from None
            raise self.role_not_found(error) from None
        self.confirm_no_escalation(scope, obj, rules)


def content(obj: JSONObject) -> JSONObject:
    """Return the object without metadata that garbage collection changes (Go C{IsOnlyMutatingGCFields})."""
    meta = {name: value for name, value in obj["metadata"].items() if name not in _HARMLESS}
    rest = {name: value for name, value in obj.items() if name not in ("kind", "apiVersion", "metadata")}
    return {**rest, "metadata": meta}
