"""The authorizer: allows what the rules of the file allow to the owners of a namespace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from zope.interface import implementer

from kubetwist.api.authorization import AuthorizerAttributes, Decision, Verdict
from kubetwist.api.flagvalues import FlagValues
from kubetwist.api.jsontypes import JSONObject
from kubetwist.api.rbacrules import RoleRules
from kubetwist.api.resource import UserInfo
from kubetwist.interfaces import IAuthorizer, IRuleResolver
from kubetwist.server.context import PluginContext
from kubetwist.server.errors import StartError
from namespaceowners.rules import Configuration, read_configuration

NAME: Final = "NamespaceOwners"
_NO_OPINION: Final = Verdict(Decision.NO_OPINION)
_NO_RULES: Final = RoleRules(())

#: Returns an object by group, resource, namespace and name; L{None} if it does not exist.
GetObject = Callable[[str, str, str, str], JSONObject | None]


@implementer(IAuthorizer, IRuleResolver)
class NamespaceOwners:
    """
    Allows requests of the owners of a namespace; has no opinion on other requests, so that RBAC decides.

    @ivar configuration: The content of the file; replaced when it has changed.
    """

    name = NAME

    def __init__(self, configuration: Configuration, get_object: GetObject) -> None:
        """
        @param get_object: Reads objects of the server, without I/O.
        """
        self.configuration = configuration
        self._get_object = get_object

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict:
        """See L{IAuthorizer.authorize}."""
        if not attributes.is_resource_request or not attributes.namespace:
            return _NO_OPINION
        group = self._owning_group(attributes.user, attributes.namespace)
        if not group or not self.configuration.rules.allow(attributes):
            return _NO_OPINION
        return Verdict(Decision.ALLOW, f"the group {group} owns the namespace {attributes.namespace}")

    def rules_for(self, user: UserInfo, namespace: str) -> JSONObject:
        """See L{IRuleResolver.rules_for}: the rules of L{authorize}, for C{kubectl auth can-i --list}."""
        rules = self.configuration.rules if self._owning_group(user, namespace) else _NO_RULES
        return {
            "resourceRules": [dict(rule) for rule in rules.rules],
            "nonResourceRules": [],
            "incomplete": False,
        }

    def _owning_group(self, user: UserInfo, namespace: str) -> str:
        """Return the group of the user that owns a namespace; C{""} if none does."""
        obj = self._get_object("", "namespaces", "", namespace)
        if obj is None:
            return ""
        group: str = (obj["metadata"].get("labels") or {}).get(self.configuration.label, "")
        return group if group in user.groups else ""

    def use(self, configuration: Configuration) -> None:
        """Replace the configuration."""
        self.configuration = configuration


def make(options: FlagValues, server: PluginContext) -> NamespaceOwners:
    """
    Return the authorizer for C{--authorization-mode=NamespaceOwners,RBAC}.

    @raise StartError: There is no file for it.
    """
    authorizer = NamespaceOwners(Configuration("", _NO_RULES), server.stores.get_decoded)
    configuration = server.watch_config(NAME, read_configuration, authorizer.use)
    if configuration is None:
        raise StartError(f"the authorizer {NAME} needs --plugin-config-file={NAME}=PATH")
    authorizer.use(configuration)
    return authorizer
