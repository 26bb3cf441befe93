"""Tests for L{kubetwist.authentication.serviceaccounts}."""

from __future__ import annotations

import contextlib
from typing import Any

import jwt
import orjson
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from hypothesis import given
from hypothesis import strategies as st

from kubetwist.api.resource import UserInfo
from kubetwist.api.times import seconds_since_epoch
from kubetwist.authentication import serviceaccounts
from kubetwist.authentication.errors import AuthenticationFailed
from kubetwist.authentication.union import AuthenticatorUnion, TokenAuthentication
from kubetwist.registry.core.serviceaccount.tokenkeys import load_token_keys
from kubetwist.registry.core.serviceaccount.tokens import TokenIssuer, token_claims
from tests.authentication.tokencase import HERE, KEY, NOW, TODAY, LegacyTestCase, TokenCase
from tests.resources.server import pod
from tests.tokenkeys import private_pem, public_pem

OTHER = rsa.generate_private_key(65537, 2048)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


class SignatureTests(TokenCase):
    """Tests of issuers, keys and signatures."""

    def test_user(self) -> None:
        """A valid token has the user, the groups and the token id."""
        claims = self.claims()
        self.assertEqual(
            self.user(self.issuer.sign(claims)),
            UserInfo(
                "system:serviceaccount:default:robot",
                self.account["metadata"]["uid"],
                ("system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"),
                {"authentication.kubernetes.io/credential-id": (f"JTI={claims['jti']}",)},
            ),
        )

    def test_other_format_or_issuer(self) -> None:
        """Text that is not a token and tokens of other issuers are ignored."""
        for token in (None, "", "abc", "a.b.c", "e30.e30.", self.token(iss="https://elsewhere")):
            self.assertIsNone(self.user(token), token)

    def test_replaced_keys(self) -> None:
        """After keys were replaced, signatures of removed keys are rejected, also for cached tokens."""
        token = self.token()
        self.assertIsNotNone(self.user(token))
        self.tokens.set_keys(load_token_keys(public_pem(OTHER)))
        self.assertEqual(self.error_text(token), "invalid signature, no keys found")
        self.issuer = TokenIssuer.load(private_pem(OTHER), HERE, [HERE])
        self.assertIsNotNone(self.user(self.token()))

    def test_other_issuer(self) -> None:
        """Tokens of all configured issuers are accepted."""
        self.assertIsNotNone(self.user(self.token(iss="https://before")))

    def test_wrong_key(self) -> None:
        """A token that is signed with another key is rejected, also with the key id of a known key."""
        forged = jwt.encode({**self.claims(), "iss": HERE}, OTHER, algorithm="RS256")
        self.assertIn("error in cryptographic primitive", self.error_text(forged))
        (known,) = load_token_keys(KEY)
        forged = jwt.encode({**self.claims(), "iss": HERE}, OTHER, algorithm="RS256", headers={"kid": known.key_id})
        self.assertIn("error in cryptographic primitive", self.error_text(forged))
        forged = jwt.encode({**self.claims(), "iss": HERE}, OTHER, algorithm="RS256", headers={"kid": "another"})
        self.assertEqual(self.error_text(forged), "invalid signature, no keys found")

    def test_wrong_algorithm(self) -> None:
        """The token does not choose the algorithm: unsigned tokens and HMAC with the public key are rejected."""
        claims = {**self.claims(), "iss": HERE}
        self.assertIn("cryptographic", self.error_text(jwt.encode(claims, None, algorithm="none")))
        key = rsa.generate_private_key(65537, 2048)
        self.tokens = self.authenticator(public_pem(key))
        (known,) = load_token_keys(public_pem(key))
        secret = known.as_jwk()["n"]
        for algorithm, signer in (("HS256", secret), ("PS256", key), ("RS512", key)):
            self.assertIn("cryptographic", self.error_text(jwt.encode(claims, signer, algorithm=algorithm)), algorithm)
        self.assertIsNotNone(self.user(jwt.encode(claims, key, algorithm="RS256")))

    def test_changed(self) -> None:
        """Changed claims invalidate the signature."""
        head, body, signature = self.token().split(".")
        other = self.token(sub="system:serviceaccount:default:other").split(".")[1]
        self.assertIn("cryptographic", self.error_text(f"{head}.{other}.{signature}"))
        self.assertIn("cryptographic", self.error_text(f"{head}.{body}.{signature[:-4]}AAAA"))

    def test_rotation(self) -> None:
        """With several keys, tokens of each key are valid, with or without a key id."""
        self.tokens = self.authenticator(public_pem(OTHER), KEY)
        self.assertIsNotNone(self.user(self.token()))
        self.assertIsNotNone(self.user(jwt.encode({**self.claims(), "iss": HERE}, OTHER, algorithm="RS256")))

    def test_bounded(self) -> None:
        """A limited number of valid tokens is cached, and no invalid tokens."""
        self.patch(serviceaccounts, "MAX_CACHE_ENTRIES", 3)
        for number in range(5):
            self.user(self.token(jti=str(number)))
        forged = jwt.encode({**self.claims(), "iss": HERE}, OTHER, algorithm="RS256")
        self.error_text(forged)
        self.assertEqual(len(self.tokens._cache), 3)

    def test_cached(self) -> None:
        """A cached token is not verified again."""
        token = self.token()
        first = self.user(token)
        self.tokens._keys = ()
        self.assertIs(self.user(token), first)


class ClaimTests(TokenCase):
    """Tests of times and audiences."""

    def test_stale(self) -> None:
        """A stale token of extended lifetime adds an audit annotation."""
        token = self.issuer.sign(token_claims(self.account, {}, [HERE], NOW, 100_000, 3607))
        for self.now, late in ((NOW + 3607.0, None), (NOW + 3700.9, 93)):
            self.assertIsNotNone(self.user(token))
            text = f"subject: system:serviceaccount:default:robot, seconds after warning threshold: {late}"
            expected = {} if late is None else {"authentication.k8s.io/stale-token": text}
            self.assertEqual(self.request.annotations, expected)

    def test_times(self) -> None:
        """A token is valid between its times, with a clock skew of one minute."""
        token = self.token(nbf=NOW + 100, exp=NOW + 200)
        for now, message in (
            (NOW + 39, "service account token is not valid yet"),
            (NOW + 40, None),
            (NOW + 260, None),
            (NOW + 261, "service account token has expired"),
        ):
            self.now = float(now)
            if message is None:
                self.assertIsNotNone(self.user(token))
            else:
                self.assertEqual(self.error_text(token), message)
        self.assertEqual(len(self.tokens._cache), 0)
        self.assertIn("in the future", self.error_text(self.token(iat=NOW + 400, exp=NOW + 1000)))
        self.assertIn("is not a time", self.error_text(self.token(exp="tomorrow")))

    def test_audiences(self) -> None:
        """A token for other audiences is rejected; a token without audiences is valid for this server."""
        self.assertEqual(
            self.error_text(self.token(aud=["vault", "x"])),
            f'token audiences ["vault" "x"] is invalid for the target audiences ["{HERE}"]',
        )
        for audiences in ([HERE, "vault"], HERE, None, []):
            self.assertIsNotNone(self.user(self.token(aud=audiences)), audiences)

    def test_review(self) -> None:
        """A review with several audiences returns the shared ones, in the order of the review."""
        union = AuthenticatorUnion([self.tokens])
        token = self.token(aud=["vault", "x", HERE])
        result = union.authenticate_token(token, ["other", "x", "vault", "x"])
        self.assertEqual(result, TokenAuthentication(self.user(token), ("x", "vault", "x")))
        self.assertIn("is invalid for the target audiences", union.authenticate_token(token, ["other"]).error)

    @given(st.dictionaries(st.sampled_from(["aud", "exp", "nbf", "iat", "jti", "sub", "kubernetes.io"]), _JSON))
    def test_any_claims(self, claims: dict[str, Any]) -> None:
        """Signed claims of any form are authenticated or rejected."""
        signed = {"iss": HERE, **claims}
        token = jwt.PyJWS().encode(orjson.dumps(signed), load_pem_private_key(KEY, None), "ES256")
        with contextlib.suppress(AuthenticationFailed):
            self.user(token)

    def test_odd_claims(self) -> None:
        """Claims of another form are rejected."""
        for private in (None, "x", {"namespace": ["x"]}, {"namespace": "default", "serviceaccount": {"name": {}}}):
            self.assertEqual(self.error_text(self.token(**{"kubernetes.io": private})), 'serviceaccounts "" not found')


class LiveTests(TokenCase):
    """Tests of the objects that tokens are bound to."""

    def test_deleted_account(self) -> None:
        """A token becomes invalid when its account is deleted, also if an account of the same name is created."""
        token = self.token()
        self.assertIsNotNone(self.user(token))
        self.remove("serviceaccounts", "robot")
        self.assertEqual(self.error_text(token), 'serviceaccounts "robot" not found')
        made = self.made(self.store("serviceaccounts"), {"metadata": {"name": "robot"}})
        uids = made["metadata"]["uid"], self.account["metadata"]["uid"]
        self.assertEqual(self.error_text(token), "service account UID ({}) does not match claim ({})".format(*uids))

    def test_account_being_deleted(self) -> None:
        """An account with finalizers is treated as deleted one minute after its deletion."""
        meta = {"name": "held", "finalizers": ["example.com/hold"]}
        self.account = self.made(self.store("serviceaccounts"), {"metadata": meta})
        self.remove("serviceaccounts", "held")
        deleted = self.stores.get_copy("", "serviceaccounts", "default", "held")["metadata"]["deletionTimestamp"]
        at = seconds_since_epoch(deleted)
        claims = {**self.claims(3600), "exp": at + 3600, "nbf": at, "iat": at}
        token = self.issuer.sign(claims)
        self.now = at + 59.0
        self.assertIsNotNone(self.user(token))
        self.now = at + 61.0
        self.assertEqual(self.error_text(token), "service account default/held has been deleted")

    def test_pod(self) -> None:
        """A token that is bound to a pod has its name and node, and becomes invalid with the pod."""
        running = pod("p")
        made = self.made(self.store("pods"), running)
        node = {"metadata": {"name": "n", "uid": "u"}}
        token = self.issuer.sign(self.claims(pod=made, node=node))
        user = self.user(token)
        assert user is not None
        prefix = "authentication.kubernetes.io/"
        self.assertEqual(user.extra[f"{prefix}pod-name"], ("p",))
        self.assertEqual(user.extra[f"{prefix}pod-uid"], (made["metadata"]["uid"],))
        self.assertEqual(user.extra[f"{prefix}node-name"], ("n",))
        self.assertEqual(user.extra[f"{prefix}node-uid"], ("u",))
        self.remove("pods", "p")
        self.assertEqual(self.error_text(token), "service account token has been invalidated")
        again = self.made(self.store("pods"), pod("p"))["metadata"]["uid"]
        was = made["metadata"]["uid"]
        self.assertEqual(
            self.error_text(token), f"pod UID ({again}) does not match service account pod ref claim ({was})"
        )

    def test_secret_and_node(self) -> None:
        """Tokens that are bound to a Secret or node become invalid with it."""
        for resource, kind in (("secrets", "secret"), ("nodes", "node")):
            made = self.made(self.store(resource), {"metadata": {"name": "x"}})
            token = self.issuer.sign(self.claims(**{kind: made}))
            self.assertIsNotNone(self.user(token))
            self.remove(resource, "x")
            self.assertEqual(self.error_text(token), "service account token has been invalidated")


class LegacyTests(LegacyTestCase):
    """Tests of legacy tokens in Secrets."""

    def test_good(self) -> None:
        """A legacy token is valid while the Secret contains it."""
        token = self.legacy()
        self.assertEqual(self.error_text(token), "service account token has been invalidated")
        self.create_secret(token)
        user = self.user(token)
        assert user is not None
        self.assertEqual((user.name, user.extra), ("system:serviceaccount:default:robot", {}))
        self.remove("secrets", "s")
        self.assertEqual(self.error_text(token), "service account token has been invalidated")
        self.create_secret("another")
        self.assertEqual(self.error_text(token), "service account token does not match server's copy")

    def test_marked(self) -> None:
        """A token is rejected if its Secret is labelled as invalid; the use is recorded nevertheless."""
        token = self.legacy()
        self.create_secret(token, labels={"kubernetes.io/legacy-token-invalid-since": "2026-01-01"})
        self.assertEqual(
            self.error_text(token),
            "the token in secret default/s for service account default/robot has been marked invalid. Use tokens from"
            " the TokenRequest API or manually created secret-based tokens, or remove the"
            " 'kubernetes.io/legacy-token-invalid-since' label from the secret to temporarily allow use of this token",
        )
        self.assertEqual(self.request.annotations, {"authentication.k8s.io/legacy-token-invalidated": "s/default"})
        self.assertEqual(self.last_used(), TODAY)

    def test_sorts(self) -> None:
        """Auto-generated tokens cause a warning; audit annotations distinguish both types."""
        token = self.legacy()
        self.create_secret(token)
        self.assertIsNotNone(self.user(token))
        self.assertEqual(self.request.warnings, [])
        self.assertEqual(self.request.annotations, {"authentication.k8s.io/legacy-token-manual-secret": "s"})

        def claims_of_server(obj: Any) -> None:
            obj["secrets"] = [{"name": "s"}]

        self.changed(self.store("serviceaccounts"), "robot", claims_of_server)
        self.assertIsNotNone(self.user(token))
        self.assertIn("instead of auto-generated secret-based tokens.", self.request.warnings[0])
        self.assertEqual(self.request.annotations, {"authentication.k8s.io/legacy-token-autogenerated-secret": "s"})

    def test_claims(self) -> None:
        """All claims are required, and the subject must be the account."""
        self.assertEqual(self.error_text(self.legacy(sub="system:serviceaccount:default:x")), "sub claim is invalid")
        self.assertEqual(
            self.error_text(self.legacy(**{"kubernetes.io/serviceaccount/namespace": ""})), "namespace claim is missing"
        )

    def test_without_lookup(self) -> None:
        """With --service-account-lookup=false the signature is sufficient."""
        self.tokens = self.authenticator(lookup=False)
        self.assertIsNotNone(self.user(self.legacy()))
