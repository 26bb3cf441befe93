"""Tests for L{kubetwist.api.users}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import UserInfo
from kubetwist.api.users import (
    NODES,
    node_of,
    service_account_groups,
    service_account_user,
    split_node,
    split_service_account,
    user_object,
)


class ServiceAccountTests(SynchronousTestCase):
    """Tests for the user names of service accounts."""

    def test_round_trip(self) -> None:
        """The user name of a service account has its namespace and name."""
        user = service_account_user("kube-system", "default")
        self.assertEqual(user, "system:serviceaccount:kube-system:default")
        self.assertEqual(split_service_account(user), ("kube-system", "default"))

    def test_other_names(self) -> None:
        """Similar names are not names of service accounts."""
        for user in (
            "default",
            "system:serviceaccount:default",
            "system:serviceaccount::x",
            "system:serviceaccount:ns:",
            "system:serviceaccount:ns:a:b",
            "system:serviceaccount:NS:x",
            "system:serviceaccounts:ns:x",
        ):
            self.assertIsNone(split_service_account(user), user)

    def test_groups(self) -> None:
        """A service account is in the group of all service accounts and in the group of its namespace."""
        groups = service_account_groups("ns")
        self.assertEqual(groups, ("system:serviceaccounts", "system:serviceaccounts:ns"))


class NodeTests(SynchronousTestCase):
    """Tests for the user names of kubelets."""

    def test_names(self) -> None:
        """The user name of a kubelet has the name of its node, if it is a valid name."""
        self.assertEqual(split_node("system:node:n.example.com"), "n.example.com")
        for user in ("system:node:", "system:node:A", "system:nodes:a", "n"):
            self.assertIsNone(split_node(user), user)

    def test_group(self) -> None:
        """A user is a kubelet only if it is in the group of kubelets, too."""
        self.assertEqual(node_of(UserInfo("system:node:n", groups=(NODES,))), "n")
        self.assertEqual(node_of(UserInfo("system:node:", groups=(NODES,))), "")
        self.assertIsNone(node_of(UserInfo("system:node:n")))
        self.assertIsNone(node_of(UserInfo("n", groups=(NODES,))))


class ObjectTests(SynchronousTestCase):
    """Tests for L{user_object}."""

    def test_shown(self) -> None:
        """Only existing attributes of a user are shown, with JSON lists."""
        self.assertEqual(user_object(UserInfo("a")), {"username": "a"})
        self.assertEqual(
            user_object(UserInfo("a", "u", ("g",), {"k": ("v", "w")})),
            {"username": "a", "uid": "u", "groups": ["g"], "extra": {"k": ["v", "w"]}},
        )
