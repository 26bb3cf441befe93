"""
RBAC stores with the privilege escalation check.

To write a role, a user must have all permissions in it, or be allowed to C{escalate} it; to write a binding, a user
must have all permissions of its role, or be allowed to C{bind} the role. The check applies with any authorizers.
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
from ..generic.allocation import NO_ALLOCATION, Allocation
from ..generic.environment import StoredResource, StoreEnvironment
from ..generic.keys import check_key
from ..generic.store import Store
from .ruleresolver import GROUP, RoleNotFound, RuleResolver

#: Fields of the metadata that updates of the garbage collector change; they grant no permissions.
_GC_FIELDS: Final = ("ownerReferences", "finalizers", "selfLink", "managedFields", "resourceVersion")


class EscalationCheckedStore(Store):
    """The common store of roles and bindings."""

    def __init__(
        self,
        resource: StoredResource,
        environment: StoreEnvironment,
        grants: RuleResolver,
        authorizer: IAuthorizer | None,
    ) -> None:
        """
        @param resource: The resource and its storage options.
        @param environment: The shared components of stores.
        @param grants: The index of roles and bindings.
        @param authorizer: Authorizes the verbs C{escalate} and C{bind}; L{None} denies both.
        """
        self._grants = grants
        self._authorizer = authorizer
        super().__init__(resource, environment)

    async def commit(
        self, key: str, draft: Draft | None, expected: int, allocation: Allocation = NO_ALLOCATION, *more: Any
    ) -> int:
        """
        Commit a write; see L{Store.commit}. It returns when the rule resolver contains the write.

        @param more: The further parameters of L{Store.commit}.
        """
        revision = await super().commit(key, draft, expected, allocation, *more)
        await self._grants.wait_until_fresh(revision)
        return revision

    async def check_escalation(
        self, scope: RequestScope, obj: JSONObject, old: JSONObject | None, options: WriteOptions
    ) -> None:
        """
        See L{kubetwist.registry.generic.hooks.StoreHooks.check_escalation}.

        @raise APIStatusError: The user lacks a permission that the object grants (403).
        """
        if MASTERS in scope.user.groups or (old is not None and without_gc_fields(obj) == without_gc_fields(old)):
            return
        created = isinstance(options, CreateOptions)
        await self.authorize_grant(scope, obj, old, "" if created else obj["metadata"].get("name", ""))

    async def authorize_grant(self, scope: RequestScope, obj: JSONObject, old: JSONObject | None, name: str) -> None:
        """
        Check the permissions that an object grants.

        @param obj: The new object.
        @param old: The stored object; L{None} when it is created.
        @param name: The name in the path of the request; C{""} for POST.
        @raise APIStatusError: The user lacks a granted permission (403), or the role does not exist (404).
        """
        raise NotImplementedError

    def confirm_no_escalation(self, scope: RequestScope, obj: JSONObject, rules: Sequence[Rule]) -> None:
        """
        Check that the user has all permissions of C{rules} in the namespace (Go: C{ConfirmNoEscalation}).

        @raise APIStatusError: A permission is missing (403).
        """
        user = scope.user
        user_rules, errors = self._grants.rules_for(user, scope.namespace)
        missing = uncovered_rules(user_rules, rules)
        if missing:
            message = escalation_message(user.name, user.groups, missing)
            if errors:
                texts = list(dict.fromkeys(str(self.role_not_found(error)) for error in errors))
                message += f"; resolution errors: [{texts[0] if len(texts) == 1 else '[' + ', '.join(texts) + ']'}]"
            raise self.forbidden(obj, message)

    def role_not_found(self, error: RoleNotFound) -> APIStatusError:
        """
        Return the error for a missing role: its name is invalid (400), or it does not exist (404).

        As in the reference, the error names the resource that is written instead of that of the role.
        """
        try:
            check_key(error.name, error.namespace)
        except APIStatusError as invalid_key:
            return invalid_key
        return self.not_found(error.name)

    def forbidden(self, obj: JSONObject, message: str) -> APIStatusError:
        """Return the 403 Forbidden for a write."""
        return APIStatusError.forbidden(self.group_resource, obj["metadata"].get("name", ""), message)

    async def allowed(self, scope: RequestScope, verb: str, group: str, resource: str, name: str) -> bool:
        """
        Return whether the authorizers allow the user a special verb.

        @param verb: C{"escalate"} or C{"bind"}.
        @param group: The group of the role.
        @param resource: C{"roles"} or C{"clusterroles"}.
        @param name: The name of the role; C{""} for any.
        """
        authorizer = self._authorizer
        if authorizer is None:
            return False
        attributes = AuthorizerAttributes(
            scope.user, verb, group=group, version="*", resource=resource, namespace=scope.namespace, name=name
        )
        verdict = await decide(authorizer, attributes)
        return verdict.decision is Decision.ALLOW


class RoleStore(EscalationCheckedStore):
    """The store of Roles or ClusterRoles."""

    async def authorize_grant(self, scope: RequestScope, obj: JSONObject, old: JSONObject | None, name: str) -> None:
        """
        Require all permissions of the role, or the verb C{escalate}.

        @param obj: The new role.
        @param old: The stored role; L{None} when it is created.
        @param name: The name in the path of the request; C{""} for POST.
        @raise APIStatusError: A permission is missing (403).
        """
        if await self.allowed(scope, "escalate", GROUP, self.info.resource, name):
            return
        self.confirm_no_escalation(scope, obj, obj.get("rules") or ())
        if obj.get("aggregationRule") or (old is not None and old.get("aggregationRule")):
            user_rules, _ = self._grants.rules_for(scope.user, scope.namespace)
            if uncovered_rules(user_rules, FULL_AUTHORITY):
                raise self.forbidden(obj, "must have cluster-admin privileges to use the aggregationRule")


class BindingStore(EscalationCheckedStore):
    """The store of RoleBindings or ClusterRoleBindings."""

    async def authorize_grant(self, scope: RequestScope, obj: JSONObject, old: JSONObject | None, name: str) -> None:
        """
        Require all permissions of the bound role, or the verb C{bind} for it.

        @param obj: The new binding.
        @param old: The stored binding; L{None} when it is created.
        @param name: The name in the path of the request; C{""} for POST.
        @raise APIStatusError: A permission is missing (403), or the role does not exist (404).
        """
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


def without_gc_fields(obj: JSONObject) -> JSONObject:
    """Return an object without the metadata that garbage collection changes (Go: C{IsOnlyMutatingGCFields})."""
    meta = {name: value for name, value in obj["metadata"].items() if name not in _GC_FIELDS}
    rest = {name: value for name, value in obj.items() if name not in ("kind", "apiVersion", "metadata")}
    return {**rest, "metadata": meta}
