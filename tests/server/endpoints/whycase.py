"""Base of tests of C{/kubetwist/v1/why}."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.authorization.abac import ABAC, read_policies
from kubetwist.authorization.node import NodeAuthorizer
from kubetwist.authorization.union import AuthorizerUnion, PrivilegedGroup
from kubetwist.filters.authorization import WHY
from kubetwist.filters.handlerchain import build_handler_chain
from kubetwist.http.site import traverse
from kubetwist.registry.core.node.graph import NodeGraph
from kubetwist.resources.mux import DelegatingMux, NotFound
from kubetwist.resources.routing import RoutedApp
from kubetwist.server.endpoints import why
from tests.http.harness import Answer, make_site
from tests.registry.rbac.rbacserver import API, RBACServer, Tokens, binding, role, rule
from tests.resources.server import JSONClient

ROLES, BINDINGS = f"{API}/namespaces/default/roles", f"{API}/namespaces/default/rolebindings"


class WhyTestCase(SynchronousTestCase):
    """A server with the authorizers Node, RBAC and ABAC."""

    def setUp(self) -> None:
        """Start a server with a single role."""
        self.server = RBACServer()
        policies = b'{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":'
        policies += b'{"user":"carol","namespace":"*","resource":"events","readonly":true}}'
        abac = ABAC(read_policies("/p", policies))
        node = NodeAuthorizer(NodeGraph(self.server.stores, self.server.clock))
        union = AuthorizerUnion([PrivilegedGroup(), node, self.server.rbac, abac])
        config = SimpleNamespace(stores=self.server.stores, authorizer=union, reactor=self.server.clock)
        mux = DelegatingMux("why", NotFound())
        mux.handle_prefix(WHY, RoutedApp(why.WhyEndpoint(config).make_app))
        handler = build_handler_chain(
            traverse(mux), reactor=self.server.clock, authenticator=Tokens(), authorizer=union
        )
        self.site = make_site(handler, self.server.clock)
        reviewing = rule("create", "subjectaccessreviews", ["authorization.k8s.io"])
        self.make(f"{API}/clusterroles", role("reviewer", reviewing))
        self.make(f"{API}/clusterrolebindings", binding("reviewers", "ClusterRole/reviewer", "User/alice"))

    def make(self, path: str, obj: Any) -> None:
        """Create an object."""
        self.server.make(path, obj)

    def ask(self, user: str, method: str, query: str, **headers: str) -> tuple[int, Any]:
        """Return status and decoded body of a response."""
        client = JSONClient(self.site)
        return client.ask(method, f"{WHY}?{query}", Authorization=f"Bearer {user}", **headers)

    def why(self, query: str, user: str = "alice", **headers: str) -> Any:
        """Return the explanation."""
        code, answer = self.ask(user, "GET", query, **headers)
        self.assertEqual(code, 200, answer)
        return answer

    def misses(self, query: str) -> list[tuple[str, str]]:
        """Return the near misses with their reasons."""
        answer = self.why(query)
        self.assertFalse(answer["allowed"])
        return [(miss["missing"], miss["why"]) for miss in answer["nearMisses"]]

    def text(self, query: str, **headers: str) -> str:
        """Return the explanation as text."""
        found: Answer = JSONClient(self.site).answer("GET", f"{WHY}?{query}", Authorization="Bearer alice", **headers)
        self.assertEqual(found.header("Content-Type"), "text/plain; charset=utf-8")
        return found.body.decode()
