"""A server in memory with RBAC, for requests of several users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twisted.internet.defer import Deferred
from zope.interface import implementer

from kubetwist.api.resource import UserInfo
from kubetwist.authentication.union import TokenAuthentication
from kubetwist.authorization.rbac import RBAC
from kubetwist.authorization.union import AuthorizerUnion, PrivilegedGroup
from kubetwist.interfaces import IAuthenticator
from kubetwist.registry.rbac.ruleresolver import GROUP, RuleResolver
from kubetwist.registry.stores import Stores
from tests.resources.server import Server

API = f"/apis/{GROUP}/v1"
REVIEWS = "/apis/authorization.k8s.io/v1"
RESOURCES = (
    "clusterroles",
    "clusterrolebindings",
    "roles",
    "rolebindings",
    "namespaces",
    "configmaps",
    "secrets",
    "subjectaccessreviews",
    "selfsubjectaccessreviews",
    "localsubjectaccessreviews",
    "selfsubjectrulesreviews",
    "selfsubjectreviews",
    "tokenreviews",
)

#: The users by token, which is their name.
USERS = {
    "admin": UserInfo("admin", groups=("system:masters", "system:authenticated")),
    "alice": UserInfo("alice", "uid-alice", ("developers", "qa", "system:authenticated")),
    "bob": UserInfo("bob", groups=("system:authenticated",)),
    "robot": UserInfo("system:serviceaccount:default:robot", groups=("system:authenticated",)),
}


@implementer(IAuthenticator)
class Tokens:
    """An authenticator of users by their bearer tokens."""

    def authenticate(self, request: Any) -> UserInfo | None:
        """Return the user of the token."""
        return USERS.get(request.fields[b"authorization"][0].decode().removeprefix("Bearer "))


def authenticate_token(token: str, audiences: Sequence[str]) -> TokenAuthentication:
    """Return the result of a token review; the tokens have no audiences."""
    user = USERS.get(token)
    return TokenAuthentication(user, error="" if user else "invalid bearer token")


class Issuer:
    """A stub of the token issuer."""

    audiences = ("https://here",)


class RBACServer(Server):
    """
    A L{Server} with RBAC.

    @ivar rbac: The authorizer.
    @ivar grants: The index of roles and bindings.
    """

    def __init__(self, authorizer: Any = None) -> None:
        """@param authorizer: The authorizer instead of RBAC."""
        self.grants = RuleResolver(Stores())
        self.rbac = RBAC(self.grants)
        super().__init__(
            *RESOURCES,
            authenticator=Tokens(),
            authorizer=authorizer or AuthorizerUnion([PrivilegedGroup(), self.rbac]),
            grants=self.grants,
            authenticate_token=authenticate_token,
            token_issuer=Issuer(),
        )

    def ask(self, user: str, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Send a request of one of L{USERS}; return the status and the decoded body of the response."""
        if method == "PATCH":
            headers.setdefault("Content_Type", "application/merge-patch+json")
        return self.client().ask(method, path, body, Authorization=f"Bearer {user}", **headers)

    def make(self, path: str, body: Any) -> Any:
        """Create an object as the administrator."""
        code, answer = self.ask("admin", "POST", path, body)
        assert code == 201, answer
        return answer

    def run(self, coroutine: Any) -> Any:
        """Return the result of a coroutine that does not wait."""
        results: list[Any] = []
        Deferred.fromCoroutine(coroutine).addBoth(results.append)
        (result,) = results
        if hasattr(result, "raiseException"):
            result.raiseException()
        return result


def rule(verbs: str, resources: str, groups: Sequence[str] = ("",), **more: Any) -> dict[str, Any]:
    """Return a rule for resources."""
    return {"verbs": verbs.split(), "apiGroups": list(groups), "resources": resources.split(), **more}


def role(name: str, *rules: Any, **more: Any) -> dict[str, Any]:
    """Return a Role or a ClusterRole."""
    return {"metadata": {"name": name, **more}, "rules": list(rules)}


def binding(name: str, reference: str, *subjects: str) -> dict[str, Any]:
    """
    Return a binding.

    @param reference: The role as C{kind/name}; C{subjects} have the same form.
    """
    kind, _, target = reference.partition("/")
    subject_objects = [dict(zip(("kind", "name"), one.split("/"), strict=True)) for one in subjects]
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": target},
        "subjects": subject_objects,
    }
