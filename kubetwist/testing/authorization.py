"""Unit tests of authorizers: a user and a request in, a decision out; no server is started."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from ..admission.decisions import decide
from ..api.authorization import AuthorizerAttributes, Decision, Verdict
from ..api.errors import APIStatusError
from ..api.resource import UserInfo
from ..api.selectors import parse_field_selector, parse_label_selector
from ..authorization.union import AuthorizerUnion, PrivilegedGroup
from ..filters.authorization import forbidden
from ..interfaces import IAuthorizer, IAuthorizerFactory
from ..server.plugins import checked
from ._plugincontext import check_type, make_context, make_plugin
from .memory import MemoryServer, Objects


@frozen
class AuthorizationOutcome:
    """
    The decision on a request.

    @ivar verdict: The result of the authorizer, after those that the server always has before it.
    @ivar attributes: The attributes of the request, as the authorizer got them.
    """

    verdict: Verdict
    attributes: AuthorizerAttributes

    @property
    def allowed(self) -> bool:
        """Return whether the request is allowed, if there is no further authorizer."""
        return self.verdict.decision is Decision.ALLOW

    @property
    def decision(self) -> Decision:
        """Return the decision."""
        return self.verdict.decision

    @property
    def reason(self) -> str:
        """Return the reason of the authorizer."""
        return self.verdict.reason

    @property
    def error(self) -> APIStatusError | None:
        """Return the 403 for the client, if there is no further authorizer; L{None} for an allowed request."""
        return None if self.allowed else forbidden(self.attributes, self.reason)


@implementer(IAuthorizer)
class _CheckedAuthorizer:
    """Checks the types of an authorizer's verdicts."""

    def __init__(self, authorizer: IAuthorizer) -> None:
        self.name = authorizer.name
        self._authorizer = authorizer

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict | Deferred[Verdict]:
        """See L{IAuthorizer.authorize}."""
        verdict: Verdict | Deferred[Verdict] = check_type(
            self._authorizer.authorize(attributes), (Verdict,), f"{self.name}.authorize"
        )
        return verdict


class AuthorizerHarness:
    """
    One authorizer, called as the server calls it: after the one that allows everything to C{system:masters}.

    @ivar server: The objects that the authorizer can read.
    @ivar authorizer: The authorizer.
    """

    def __init__(
        self,
        plugin: IAuthorizer | IAuthorizerFactory | Callable[..., IAuthorizer] | str,
        *flags: str,
        objects: Objects = (),
        clock: IReactorTime | None = None,
    ) -> None:
        """
        @param plugin: An authorizer, a factory, the function C{make(options, server)}, or the name of an installed
            authorizer.
        @param flags: Flags of C{twist kubeapi} for C{options}.
        @param objects: Objects for C{server.stores} and C{server.grants}: YAML, a file, or dictionaries.
        @param clock: The reactor; by default a clock that L{authorize} advances while the authorizer waits.
        @raise StartError: The server would not start with the authorizer.
        @raise ValueError: The function C{make} rejects the options, or no such authorizer is installed.
        """
        self.server = MemoryServer(objects, clock=clock)
        context = make_context(flags, self.server)
        authorizer = make_plugin(plugin, IAuthorizerFactory, "authorizer", context)
        name = getattr(authorizer, "name", type(authorizer).__name__)
        self.authorizer: IAuthorizer = checked(authorizer, IAuthorizer, "authorizer", name)
        self.server.start()
        self._union = AuthorizerUnion([PrivilegedGroup(), _CheckedAuthorizer(self.authorizer)])

    def authorize(
        self, user: UserInfo | str, verb: str, resource: str = "", *, path: str = "", **request: Any
    ) -> AuthorizationOutcome:
        """
        Return the decision on a request. The clock advances while the authorizer waits for it.

        @param user: See L{authorize_async}.
        @param verb: See L{authorize_async}.
        @param resource: See L{authorize_async}.
        @param path: See L{authorize_async}.
        @param request: The further arguments of L{authorize_async}.
        @raise NoResult: The authorizer waits for something else, such as a connection: use L{authorize_async}.
        """
        return self.server.run(self.authorize_async(user, verb, resource, path=path, **request))

    async def authorize_async(
        self,
        user: UserInfo | str,
        verb: str,
        resource: str = "",
        *,
        path: str = "",
        subresource: str = "",
        version: str = "v1",
        namespace: str = "",
        name: str = "",
        field_selector: str = "",
        label_selector: str = "",
    ) -> AuthorizationOutcome:
        """
        Return the decision on a request.

        @param user: The user, or the name of a user in the group C{system:authenticated}.
        @param verb: The verb of the API, such as C{"list"}; for a path, the HTTP method in lower case.
        @param resource: The resource as C{"pods"} or C{"deployments.apps"}; C{""} for a request of C{path}.
        @param path: The path of a request for something other than a resource: C{"/healthz"}.
        @param subresource: The subresource; C{""} for the main resource.
        @param version: The version of the resource.
        @param namespace: The namespace; C{""} for cluster-scoped resources and for all namespaces.
        @param name: The name; C{""} for a collection.
        @param field_selector: The field selector of the request.
        @param label_selector: The label selector of the request.
        @raise ValueError: There is neither a resource nor a path, or both.
        @raise TypeError: The authorizer returned something other than a L{Verdict}.
        @raise Exception: The exceptions of the authorizer, which the server answers with an internal error.
        """
        if bool(resource) == bool(path):
            raise ValueError("a request has either a resource or a path")
        plural, _, group = resource.partition(".")
        attributes = AuthorizerAttributes(
            UserInfo(user, groups=("system:authenticated",)) if isinstance(user, str) else user,
            verb,
            group,
            version if resource else "",
            plural,
            subresource,
            namespace,
            name,
            path,
            bool(resource),
            parse_field_selector(field_selector) if field_selector else (),
            parse_label_selector(label_selector).requirements if label_selector else (),
        )
        return AuthorizationOutcome(await decide(self._union, attributes), attributes)
