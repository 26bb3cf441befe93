"""Tests for L{kubetwist.registry.core.serviceaccount.tokenrequest}."""

from __future__ import annotations

from typing import Any

import jwt
from attrs import evolve
from cryptography.hazmat.primitives.asymmetric import ec

from twisted.internet.defer import Deferred
from zope.interface.verify import verifyObject

from kubetwist.api.options import CreateOptions
from kubetwist.api.requestscope import RequestScope
from kubetwist.interfaces import INamedCreator
from kubetwist.registry.core.serviceaccount.tokenrequest import TokenRequests
from kubetwist.registry.core.serviceaccount.tokens import TokenIssuer
from tests.registry.core.serviceaccount.tokensvalues import pem, public
from tests.registry.storetools import StoreTestCase
from tests.resources.server import pod

KEY = pem(ec.generate_private_key(ec.SECP256R1()))


class TokenRequestTests(StoreTestCase):
    """C{serviceaccounts/token}."""

    resources = ("serviceaccounts", "pods", "secrets", "nodes")

    def setUp(self) -> None:
        """An account."""
        super().setUp()
        self.accounts = self.store("serviceaccounts")
        self.account = self.made(self.accounts, {"metadata": {"name": "robot"}})
        self.issuer = TokenIssuer.load(KEY, "https://here", ["https://here"])
        self.use_issuer(self.issuer)
        verifyObject(INamedCreator, self.requests)

    def use_issuer(self, issuer: TokenIssuer | None) -> None:
        """Have tokens issued by it."""
        self.requests = TokenRequests(self.accounts, evolve(self.server.context, token_issuer=issuer))

    def asked(self, name: str = "robot", meta: Any = None, **spec: Any) -> Any:
        """The call."""
        obj = {"metadata": meta or {}, "spec": spec}
        return self.requests.create_named(self.scope, name, obj, CreateOptions())

    def claims(self, answer: dict[str, Any]) -> dict[str, Any]:
        """What a token says, once it is found to be good."""
        options = {"verify_aud": False}
        said: dict[str, Any] = jwt.decode(
            answer["status"]["token"], public(KEY), algorithms=["ES256"], options=options, issuer="https://here"
        )
        return said

    def test_defaults(self) -> None:
        """Who asks for nothing gets an hour with this server."""
        answer = self.successResultOf(Deferred.fromCoroutine(self.asked()))
        self.assertEqual(answer["spec"]["audiences"], ["https://here"])
        self.assertEqual(answer["spec"]["expirationSeconds"], 3600)
        said = self.claims(answer)
        self.assertEqual(said["sub"], "system:serviceaccount:default:robot")
        self.assertEqual(said["aud"], ["https://here"])
        self.assertEqual(said["exp"] - said["iat"], 3600)
        account = {"name": "robot", "uid": self.account["metadata"]["uid"]}
        self.assertEqual(said["kubernetes.io"], {"namespace": "default", "serviceaccount": account})

    def test_metadata(self) -> None:
        """The answer has what the request says of itself, and whose token it is."""
        meta = {"labels": {"a": "b"}, "generateName": "x"}
        answer = self.successResultOf(Deferred.fromCoroutine(self.asked(meta=meta)))
        said = answer["metadata"]
        self.assertEqual((said["labels"], said["generateName"], said["name"]), ({"a": "b"}, "x", "robot"))
        self.assertEqual(said["uid"], self.account["metadata"]["uid"])

    def test_limit(self) -> None:
        """A limit shortens what is asked for, with a warning; what pods renew lives longer, unless that is off."""
        self.use_issuer(evolve(self.issuer, max_seconds=3600))
        answer = self.successResultOf(Deferred.fromCoroutine(self.asked(expirationSeconds=7200)))
        said = self.claims(answer)
        self.assertEqual((answer["spec"]["expirationSeconds"], said["exp"] - said["iat"]), (3600, 3600))
        self.assertEqual(self.warnings, ["requested expiration of 7200 seconds shortened to 3600 seconds"])
        running = pod("p")
        running["spec"]["serviceAccountName"] = "robot"
        self.made(self.store("pods"), running)
        reference = {"kind": "Pod", "apiVersion": "v1", "name": "p"}
        for extend, seconds in ((True, 365 * 24 * 3600), (False, 3607)):
            self.use_issuer(evolve(self.issuer, max_seconds=7200, extend=extend))
            answer = self.successResultOf(
                Deferred.fromCoroutine(self.asked(boundObjectRef=reference, expirationSeconds=3607))
            )
            said = self.claims(answer)
            self.assertEqual(said["exp"] - said["iat"], seconds)

    def test_audit(self) -> None:
        """The audit is told which token was issued."""
        told: list[tuple[str, str, str]] = []
        self.scope = RequestScope("default", annotate=lambda *one: told.append(one))
        answer = self.successResultOf(Deferred.fromCoroutine(self.asked()))
        token_id = f"JTI={self.claims(answer)['jti']}"
        self.assertEqual(told, [("authentication.kubernetes.io/issued-credential-id", token_id, "Metadata")])

    def test_refused(self) -> None:
        """Requests for another account, for too short a time, or for nobody are refused."""
        self.assertEqual(self.refused(self.asked(meta={"name": "other"})).code, 422)
        self.assertEqual(self.refused(self.asked(meta={"uid": "other"})).code, 409)
        self.assertEqual(self.refused(self.asked("nobody")).code, 404)
        for seconds in (599, (1 << 32) + 1):
            error = self.refused(self.asked(expirationSeconds=seconds))
            self.assertEqual(error.code, 422)
            self.assertIn("spec.expirationSeconds", error.message)

    def test_bound(self) -> None:
        """A token that is bound to a pod names it and its node."""
        running = pod("p")
        running["spec"].update(serviceAccountName="robot", nodeName="n")
        made = self.made(self.store("pods"), running)
        node = self.made(self.store("nodes"), {"metadata": {"name": "n"}})
        reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": made["metadata"]["uid"]}
        answer = self.successResultOf(Deferred.fromCoroutine(self.asked(boundObjectRef=reference)))
        said = self.claims(answer)["kubernetes.io"]
        self.assertEqual(said["pod"], {"name": "p", "uid": made["metadata"]["uid"]})
        self.assertEqual(said["node"], {"name": "n", "uid": node["metadata"]["uid"]})

    def test_renewed_by_kubelets(self) -> None:
        """What kubelets renew in time is good for longer than it says, and warns from when it should be gone."""
        running = pod("p")
        running["spec"]["serviceAccountName"] = "robot"
        self.made(self.store("pods"), running)
        reference = {"apiVersion": "v1", "kind": "Pod", "name": "p"}
        answer = self.successResultOf(
            Deferred.fromCoroutine(self.asked(boundObjectRef=reference, expirationSeconds=3607))
        )
        said = self.claims(answer)
        self.assertEqual(answer["spec"]["expirationSeconds"], 3607)
        self.assertEqual(said["exp"] - said["iat"], 365 * 24 * 3600)
        self.assertEqual(said["kubernetes.io"]["warnafter"] - said["iat"], 3607)

    def test_bound_to_nothing(self) -> None:
        """What a token is bound to has to be there, be meant, and be of a kind that can be bound to."""
        self.made(self.store("pods"), pod("other"))

        def refused(**reference: Any) -> int:
            return self.refused(self.asked(boundObjectRef={"apiVersion": "v1", **reference})).code

        self.assertEqual(refused(kind="Pod", name="gone"), 404)
        self.assertEqual(refused(kind="Pod", name="other"), 400)
        self.assertEqual(refused(kind="Service", name="s"), 400)
        self.assertEqual(refused(), 400)
        self.assertEqual(refused(kind="Pod"), 400)
        self.made(self.store("secrets"), {"metadata": {"name": "s"}})
        self.assertEqual(refused(kind="Secret", name="s", uid="another"), 409)

    def test_no_issuer(self) -> None:
        """Without an issuer there are no tokens."""
        self.use_issuer(None)
        self.assertEqual(self.refused(self.asked()).code, 503)
