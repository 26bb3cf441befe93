"""Tests of L{kubetwist.registry.core.serviceaccount.tokenrequest}."""

from __future__ import annotations

from typing import Any

import jwt
from attrs import evolve
from cryptography.hazmat.primitives.asymmetric import ec

from twisted.internet.defer import Deferred
from zope.interface.verify import verifyObject

from kubetwist.api.featuregates import FeatureGates
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
    """Tests of C{serviceaccounts/token}."""

    resources = ("serviceaccounts", "pods", "secrets", "nodes")

    def setUp(self) -> None:
        """Create a service account."""
        super().setUp()
        self.accounts = self.store("serviceaccounts")
        self.account = self.made(self.accounts, {"metadata": {"name": "robot"}})
        self.issuer = TokenIssuer.load(KEY, "https://here", ["https://here"])
        self.use_issuer(self.issuer)
        verifyObject(INamedCreator, self.requests)

    def use_issuer(self, issuer: TokenIssuer | None) -> None:
        """Set the issuer of tokens."""
        self.requests = TokenRequests(self.accounts, evolve(self.server.context, token_issuer=issuer))

    def request_token(self, name: str = "robot", meta: Any = None, **spec: Any) -> Any:
        """Request a token."""
        obj = {"metadata": meta or {}, "spec": spec}
        return self.requests.create_named(self.scope, name, obj, CreateOptions())

    def claims(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Return the claims of a token after its verification."""
        options = {"verify_aud": False}
        claims: dict[str, Any] = jwt.decode(
            answer["status"]["token"], public(KEY), algorithms=["ES256"], options=options, issuer="https://here"
        )
        return claims

    def test_defaults(self) -> None:
        """The default lifetime is an hour, and the default audience the issuer."""
        answer = self.successResultOf(Deferred.fromCoroutine(self.request_token()))
        self.assertEqual(answer["spec"]["audiences"], ["https://here"])
        self.assertEqual(answer["spec"]["expirationSeconds"], 3600)
        claims = self.claims(answer)
        self.assertEqual(claims["sub"], "system:serviceaccount:default:robot")
        self.assertEqual(claims["aud"], ["https://here"])
        self.assertEqual(claims["exp"] - claims["iat"], 3600)
        account = {"name": "robot", "uid": self.account["metadata"]["uid"]}
        self.assertEqual(claims["kubernetes.io"], {"namespace": "default", "serviceaccount": account})

    def test_metadata(self) -> None:
        """The response has the metadata of the request, and the identity of the account."""
        meta = {"labels": {"a": "b"}, "generateName": "x"}
        answer = self.successResultOf(Deferred.fromCoroutine(self.request_token(meta=meta)))
        metadata = answer["metadata"]
        self.assertEqual((metadata["labels"], metadata["generateName"], metadata["name"]), ({"a": "b"}, "x", "robot"))
        self.assertEqual(metadata["uid"], self.account["metadata"]["uid"])

    def test_uid(self) -> None:
        """Releases before 1.34 ignore the uid of a request; later ones may only warn when it differs."""
        uid = self.account["metadata"]["uid"]
        for features, requested, shown in (
            (FeatureGates((1, 33)), "other", None),
            (FeatureGates((1, 33)), "", None),
            (FeatureGates((1, 34)), uid, uid),
            (FeatureGates((1, 34), {"TokenRequestServiceAccountUIDValidation": False}), "other", "other"),
        ):
            self.accounts.strategy = self.accounts.strategy.with_features(features)
            meta = {"uid": requested} if requested else {}
            answer = self.successResultOf(Deferred.fromCoroutine(self.request_token(meta=meta)))
            self.assertEqual(answer["metadata"].get("uid"), shown)
        (warning,) = self.warnings
        self.assertIn("TokenRequestServiceAccountUIDValidation is not enabled", warning)

    def test_gates(self) -> None:
        """Tokens are bound to nodes, name the nodes of pods, and have an id, if the gates of 1.31 are enabled."""
        self.made(self.store("nodes"), {"metadata": {"name": "n"}})
        running = pod("p")
        running["spec"].update(serviceAccountName="robot", nodeName="n")
        self.made(self.store("pods"), running)
        references = [{"kind": kind, "apiVersion": "v1", "name": name} for kind, name in (("Pod", "p"), ("Node", "n"))]
        names = (
            "ServiceAccountTokenJTI",
            "ServiceAccountTokenPodNodeInfo",
            "ServiceAccountTokenNodeBinding",
            "ServiceAccountTokenNodeBindingValidation",
        )
        for enabled in (True, False):
            features = FeatureGates((1, 31), dict.fromkeys(names, enabled))
            self.accounts.strategy = self.accounts.strategy.with_features(features)
            answer = self.successResultOf(Deferred.fromCoroutine(self.request_token(boundObjectRef=references[0])))
            claims = self.claims(answer)
            self.assertEqual(("jti" in claims, "node" in claims["kubernetes.io"]), (enabled, enabled))
            request = self.request_token(boundObjectRef=references[1])
            if enabled:
                self.assertIn(
                    "node", self.claims(self.successResultOf(Deferred.fromCoroutine(request)))["kubernetes.io"]
                )
            else:
                text = 'as the "ServiceAccountTokenNodeBinding" feature-gate is disabled'
                self.assertEqual(self.refused(request).message, f"cannot bind token to a Node object {text}")

    def test_limit(self) -> None:
        """The maximum lifetime shortens a request, with a warning; tokens of pods are extended unless disabled."""
        self.use_issuer(evolve(self.issuer, max_seconds=3600))
        answer = self.successResultOf(Deferred.fromCoroutine(self.request_token(expirationSeconds=7200)))
        claims = self.claims(answer)
        self.assertEqual((answer["spec"]["expirationSeconds"], claims["exp"] - claims["iat"]), (3600, 3600))
        self.assertEqual(self.warnings, ["requested expiration of 7200 seconds shortened to 3600 seconds"])
        running = pod("p")
        running["spec"]["serviceAccountName"] = "robot"
        self.made(self.store("pods"), running)
        reference = {"kind": "Pod", "apiVersion": "v1", "name": "p"}
        for extend, seconds in ((True, 365 * 24 * 3600), (False, 3607)):
            self.use_issuer(evolve(self.issuer, max_seconds=7200, extend=extend))
            answer = self.successResultOf(
                Deferred.fromCoroutine(self.request_token(boundObjectRef=reference, expirationSeconds=3607))
            )
            claims = self.claims(answer)
            self.assertEqual(claims["exp"] - claims["iat"], seconds)

    def test_audit(self) -> None:
        """The id of the token is an audit annotation."""
        annotations: list[tuple[str, str, str]] = []
        self.scope = RequestScope("default", annotate=lambda *annotation: annotations.append(annotation))
        answer = self.successResultOf(Deferred.fromCoroutine(self.request_token()))
        token_id = f"JTI={self.claims(answer)['jti']}"
        self.assertEqual(annotations, [("authentication.kubernetes.io/issued-credential-id", token_id, "Metadata")])

    def test_refused(self) -> None:
        """Requests for another account, a short lifetime, or a missing account are rejected."""
        self.assertEqual(self.refused(self.request_token(meta={"name": "other"})).code, 422)
        self.assertEqual(self.refused(self.request_token(meta={"uid": "other"})).code, 409)
        self.assertEqual(self.refused(self.request_token("nobody")).code, 404)
        for seconds in (599, (1 << 32) + 1):
            error = self.refused(self.request_token(expirationSeconds=seconds))
            self.assertEqual(error.code, 422)
            self.assertIn("spec.expirationSeconds", error.message)

    def test_bound(self) -> None:
        """A token that is bound to a pod contains the pod and its node."""
        running = pod("p")
        running["spec"].update(serviceAccountName="robot", nodeName="n")
        made = self.made(self.store("pods"), running)
        node = self.made(self.store("nodes"), {"metadata": {"name": "n"}})
        reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": made["metadata"]["uid"]}
        answer = self.successResultOf(Deferred.fromCoroutine(self.request_token(boundObjectRef=reference)))
        claims = self.claims(answer)["kubernetes.io"]
        self.assertEqual(claims["pod"], {"name": "p", "uid": made["metadata"]["uid"]})
        self.assertEqual(claims["node"], {"name": "n", "uid": node["metadata"]["uid"]})

    def test_renewed_by_kubelets(self) -> None:
        """A token that kubelets renew has an extended lifetime, and a claim with the requested one."""
        running = pod("p")
        running["spec"]["serviceAccountName"] = "robot"
        self.made(self.store("pods"), running)
        reference = {"apiVersion": "v1", "kind": "Pod", "name": "p"}
        answer = self.successResultOf(
            Deferred.fromCoroutine(self.request_token(boundObjectRef=reference, expirationSeconds=3607))
        )
        claims = self.claims(answer)
        self.assertEqual(answer["spec"]["expirationSeconds"], 3607)
        self.assertEqual(claims["exp"] - claims["iat"], 365 * 24 * 3600)
        self.assertEqual(claims["kubernetes.io"]["warnafter"] - claims["iat"], 3607)

    def test_invalid_bound_object(self) -> None:
        """The bound object must exist, have the uid, and be of a supported kind."""
        self.made(self.store("pods"), pod("other"))

        def refused(**reference: Any) -> int:
            return self.refused(self.request_token(boundObjectRef={"apiVersion": "v1", **reference})).code

        self.assertEqual(refused(kind="Pod", name="gone"), 404)
        self.assertEqual(refused(kind="Pod", name="other"), 400)
        self.assertEqual(refused(kind="Service", name="s"), 400)
        self.assertEqual(refused(), 400)
        self.assertEqual(refused(kind="Pod"), 400)
        self.made(self.store("secrets"), {"metadata": {"name": "s"}})
        self.assertEqual(refused(kind="Secret", name="s", uid="another"), 409)

    def test_no_issuer(self) -> None:
        """Without an issuer, requests fail (503)."""
        self.use_issuer(None)
        self.assertEqual(self.refused(self.request_token()).code, 503)
