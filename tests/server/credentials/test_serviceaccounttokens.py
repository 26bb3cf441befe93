"""Tests of service account tokens over HTTP: issue, use, review and expiry."""

from __future__ import annotations

from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.authentication.bearer import InvalidTokenAuthenticator
from kubetwist.authentication.serviceaccounts import make
from kubetwist.authentication.union import AuthenticatorUnion
from kubetwist.registry.core.serviceaccount.tokenkeys import load_token_keys
from kubetwist.registry.core.serviceaccount.tokens import TokenIssuer
from kubetwist.registry.rbac.ruleresolver import RuleResolver
from kubetwist.registry.stores import Stores
from tests.registry.rbac.rbacserver import Tokens
from tests.resources.server import Server
from tests.tokenkeys import private_pem

HERE = "https://here"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
REVIEWS = "/apis/authentication.k8s.io/v1"


class TokenServer(Server):
    """A server with service account tokens in addition to static users."""

    def __init__(self) -> None:
        key = private_pem(ec.generate_private_key(ec.SECP256R1()))
        self.token_keys = load_token_keys(key)
        self.token_key_listeners: list[Any] = []
        options = {"service-account-issuer": (HERE,), "api-audiences": (), "service-account-lookup": True}
        self.stores = Stores()
        union = AuthenticatorUnion([make(options, self), Tokens(), InvalidTokenAuthenticator()])
        super().__init__(
            "serviceaccounts",
            "tokenreviews",
            "selfsubjectreviews",
            authenticator=union,
            grants=RuleResolver(self.stores),
            authenticate_token=union.authenticate_token,
            token_issuer=TokenIssuer.load(key, HERE, [HERE]),
        )

    def ask(self, token: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request with a token; return status and decoded body."""
        return self.client().ask(method, path, body, Authorization=f"Bearer {token}", User_Agent="tester/1")


class AccountTokenTests(SynchronousTestCase):
    """A service account and its tokens."""

    def setUp(self) -> None:
        """Create the service account."""
        self.server = TokenServer()
        code, _ = self.server.ask("admin", "POST", ACCOUNTS, {"metadata": {"name": "robot"}})
        self.assertEqual(code, 201)

    def request(self, **spec: Any) -> Any:
        """Return the response to a TokenRequest."""
        code, answer = self.server.ask("admin", "POST", f"{ACCOUNTS}/robot/token", {"spec": spec})
        self.assertEqual(code, 201, answer)
        return answer

    def test_owned_audiences(self) -> None:
        """An empty list of audiences is an owned field; an absent one is not."""
        for spec, owned in (({"audiences": []}, True), ({"audiences": None}, False), ({}, False)):
            _, answer = self.server.ask("admin", "POST", f"{ACCOUNTS}/robot/token", {"spec": spec})
            (entry,) = answer["metadata"]["managedFields"]
            self.assertEqual("f:audiences" in entry["fieldsV1"]["f:spec"], owned, spec)

    def test_user(self) -> None:
        """A token authenticates its service account until the account is deleted."""
        token = self.request()["status"]["token"]
        code, answer = self.server.ask(token, "POST", f"{REVIEWS}/selfsubjectreviews", {})
        self.assertEqual(code, 201)
        user = answer["status"]["userInfo"]
        self.assertEqual(user["username"], "system:serviceaccount:default:robot")
        self.assertIn("system:serviceaccounts:default", user["groups"])
        self.assertEqual(self.server.ask("admin", "DELETE", f"{ACCOUNTS}/robot")[0], 200)
        self.assertEqual(self.server.ask(token, "POST", f"{REVIEWS}/selfsubjectreviews", {})[0], 401)

    def test_review(self) -> None:
        """A review returns the accepted audiences, or the error."""
        token = self.request(audiences=["vault", "x"])["status"]["token"]
        self.assertEqual(self.server.ask(token, "GET", ACCOUNTS)[0], 401)

        def status(**spec: Any) -> Any:
            code, answer = self.server.ask("admin", "POST", f"{REVIEWS}/tokenreviews", {"spec": spec})
            self.assertEqual(code, 201)
            return answer["status"]

        good = status(token=token, audiences=["other", "vault"])
        self.assertTrue(good["authenticated"])
        self.assertEqual(good["audiences"], ["vault"])
        self.assertEqual(good["user"]["username"], "system:serviceaccount:default:robot")
        bad = status(token=token)
        why = f'token audiences ["vault" "x"] is invalid for the target audiences ["{HERE}"]'
        self.assertEqual(bad, {"user": {}, "error": f"[invalid bearer token, {why}]"})

    def test_ownership(self) -> None:
        """The response records the field manager, and defaulted fields as owned."""
        (entry,) = self.request()["metadata"]["managedFields"]
        self.assertEqual(entry["fieldsV1"], {"f:spec": {"f:expirationSeconds": {}}})
        self.assertEqual(
            (entry["manager"], entry["operation"], entry["apiVersion"], entry["subresource"]),
            ("tester", "Update", "authentication.k8s.io/v1", "token"),
        )

    def test_elsewhere(self) -> None:
        """A request for another namespace is refused first."""
        body = {"metadata": {"name": "x", "namespace": "other"}}
        code, answer = self.server.ask("admin", "POST", f"{ACCOUNTS}/robot/token", body)
        self.assertEqual(code, 400)
        self.assertIn("does not match the namespace sent on the request", answer["message"])
