"""Tests for L{kubetwist.authorization._rbacremedies}."""

from __future__ import annotations

import shlex

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.authorization import AuthorizerAttributes
from kubetwist.api.resource import UserInfo
from kubetwist.authorization._rbacremedies import (
    bind,
    create_role,
)

JANE = UserInfo("jane@example.com")
ACCOUNT = UserInfo("system:serviceaccount:ns:robot")
TEXTS = st.text(min_size=1, max_size=12)


class BindTests(SynchronousTestCase):
    """Tests for L{bind}."""

    def test_namespace(self) -> None:
        """A request in a namespace gets a RoleBinding in that namespace."""
        attributes = AuthorizerAttributes(JANE, "get", resource="pods", namespace="ns")
        self.assertEqual(
            bind(attributes, ("ClusterRole", "view")),
            "kubectl create rolebinding jane-example-com-view --clusterrole=view --user=jane@example.com "
            "--namespace=ns",
        )

    def test_cluster(self) -> None:
        """Cluster-wide requests and paths get a ClusterRoleBinding."""
        for attributes in (
            AuthorizerAttributes(ACCOUNT, "get", resource="nodes"),
            AuthorizerAttributes(ACCOUNT, "get", path="/metrics", namespace="ns", is_resource_request=False),
        ):
            self.assertEqual(
                bind(attributes, ("ClusterRole", "view")),
                "kubectl create clusterrolebinding robot-view --clusterrole=view --serviceaccount=ns:robot",
            )


class CreateTests(SynchronousTestCase):
    """Tests for L{create_role}."""

    def test_resource(self) -> None:
        """The role allows exactly the request: its verb, group, subresource and name."""
        attributes = AuthorizerAttributes(
            JANE, "patch", "apps", resource="deployments", subresource="scale", namespace="ns", name="web"
        )
        create, _ = create_role(attributes).split("\n")
        self.assertEqual(
            create,
            "kubectl create role patch-deployments-apps-scale --verb=patch --resource=deployments.apps/scale "
            "--resource-name=web --namespace=ns",
        )

    def test_path(self) -> None:
        """A path needs a ClusterRole."""
        attributes = AuthorizerAttributes(JANE, "get", path="/healthz", is_resource_request=False)
        create, binding = create_role(attributes).split("\n")
        self.assertEqual(create, "kubectl create clusterrole get-healthz --verb=get --non-resource-url=/healthz")
        self.assertIn("--clusterrole=get-healthz", binding)

    @given(TEXTS, TEXTS, TEXTS)
    def test_quoted(self, user: str, verb: str, path: str) -> None:
        """Each argument is quoted for the shell."""
        attributes = AuthorizerAttributes(UserInfo(user), verb, path=path, is_resource_request=False)
        words = shlex.split(create_role(attributes))
        self.assertEqual(words[:3], ["kubectl", "create", "clusterrole"])
        self.assertIn(f"--verb={verb}", words)
        self.assertIn(f"--non-resource-url={path}", words)
        self.assertIn(f"--user={user}", words)
        self.assertEqual(words.count("kubectl"), 2)
