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
    """Who signed a token, and how."""

    def test_user(self) -> None:
        """A good token tells the account, its groups and which token it is."""
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

    def test_somebody_elses(self) -> None:
        """What is no token of a known issuer is not ours to judge."""
        for token in (None, "", "abc", "a.b.c", "e30.e30.", self.token(iss="https://elsewhere")):
            self.assertIsNone(self.user(token), token)

    def test_other_keys(self) -> None:
        """Keys can be replaced; what an old one has signed is good no more, whoever was known by it."""
        token = self.token()
        self.assertIsNotNone(self.user(token))
        self.tokens.set_keys(load_token_keys(public_pem(OTHER)))
        self.assertEqual(self.refused(token), "invalid signature, no keys found")
        self.issuer = TokenIssuer.load(private_pem(OTHER), HERE, [HERE])
        self.assertIsNotNone(self.user(self.token()))

    def test_other_issuer(self) -> None:
        """Tokens of all issuers that are named are accepted, whoever issues now."""
        self.assertIsNotNone(self.user(self.token(iss="https://before")))

    def test_wrong_key(self) -> None:
        """A key that is not known has no say, whatever it is called."""
        forged = jwt.encode({**self.claims(), "iss": HERE}, OTHER, algorithm="RS256")
        self.assertIn("error in cryptographic primitive", self.refused(forged))
        (known,) = load_token_keys(KEY)
        forged = jwt.encode({**self.claims(), "iss": HERE}, OTHER, algorithm="RS256", headers={"kid": known.key_id})
        self.assertIn("error in cryptographic primitive", self.refused(forged))
        forged = jwt.encode({**self.claims(), "iss": HERE}, OTHER, algorithm="RS256", headers={"kid": "another"})
        self.assertEqual(self.refused(forged), "invalid signature, no keys found")

    def test_wrong_algorithm(self) -> None:
        """A token does not choose how it is verified: no signature, or one with the public key as a secret, is none."""
        claims = {**self.claims(), "iss": HERE}
        self.assertIn("cryptographic", self.refused(jwt.encode(claims, None, algorithm="none")))
        key = rsa.generate_private_key(65537, 2048)
        self.tokens = self.authenticator(public_pem(key))
        (known,) = load_token_keys(public_pem(key))
        secret = known.as_jwk()["n"]
        for algorithm, signer in (("HS256", secret), ("PS256", key), ("RS512", key)):
            self.assertIn("cryptographic", self.refused(jwt.encode(claims, signer, algorithm=algorithm)), algorithm)
        self.assertIsNotNone(self.user(jwt.encode(claims, key, algorithm="RS256")))

    def test_changed(self) -> None:
        """What was signed is what counts."""
        head, body, signature = self.token().split(".")
        other = self.token(sub="system:serviceaccount:default:other").split(".")[1]
        self.assertIn("cryptographic", self.refused(f"{head}.{other}.{signature}"))
        self.assertIn("cryptographic", self.refused(f"{head}.{body}.{signature[:-4]}AAAA"))

    def test_rotation(self) -> None:
        """With several keys, tokens of all of them are good, with or without a key's name in the token."""
        self.tokens = self.authenticator(public_pem(OTHER), KEY)
        self.assertIsNotNone(self.user(self.token()))
        self.assertIsNotNone(self.user(jwt.encode({**self.claims(), "iss": HERE}, OTHER, algorithm="RS256")))

    def test_bounded(self) -> None:
        """Only so many tokens are remembered, and bad ones are not."""
        self.patch(serviceaccounts, "MAX_CACHE_ENTRIES", 3)
        for number in range(5):
            self.user(self.token(jti=str(number)))
        forged = jwt.encode({**self.claims(), "iss": HERE}, OTHER, algorithm="RS256")
        self.refused(forged)
        self.assertEqual(len(self.tokens._cache), 3)

    def test_remembered(self) -> None:
        """A token that is shown again is not verified again."""
        token = self.token()
        first = self.user(token)
        self.tokens._keys = ()
        self.assertIs(self.user(token), first)


class ClaimTests(TokenCase):
    """When a token is good, and for whom."""

    def test_stale(self) -> None:
        """The audit is told of a token that lives longer only for those who do not renew theirs."""
        token = self.issuer.sign(token_claims(self.account, {}, [HERE], NOW, 100_000, 3607))
        for self.now, late in ((NOW + 3607.0, None), (NOW + 3700.9, 93)):
            self.assertIsNotNone(self.user(token))
            text = f"subject: system:serviceaccount:default:robot, seconds after warning threshold: {late}"
            expected = {} if late is None else {"authentication.k8s.io/stale-token": text}
            self.assertEqual(self.request.annotations, expected)

    def test_times(self) -> None:
        """A token is good from its beginning to its end, with a minute for clocks that differ."""
        token = self.token(nbf=NOW + 100, exp=NOW + 200)
        for now, why in (
            (NOW + 39, "service account token is not valid yet"),
            (NOW + 40, None),
            (NOW + 260, None),
            (NOW + 261, "service account token has expired"),
        ):
            self.now = float(now)
            if why is None:
                self.assertIsNotNone(self.user(token))
            else:
                self.assertEqual(self.refused(token), why)
        self.assertEqual(len(self.tokens._cache), 0)
        self.assertIn("in the future", self.refused(self.token(iat=NOW + 400, exp=NOW + 1000)))
        self.assertIn("is not a time", self.refused(self.token(exp="tomorrow")))

    def test_audiences(self) -> None:
        """A token for others is not good here; one that names nobody is for this server."""
        self.assertEqual(
            self.refused(self.token(aud=["vault", "x"])),
            f'token audiences ["vault" "x"] is invalid for the target audiences ["{HERE}"]',
        )
        for audiences in ([HERE, "vault"], HERE, None, []):
            self.assertIsNotNone(self.user(self.token(aud=audiences)), audiences)

    def test_review(self) -> None:
        """A review with several audiences returns those of the token, in the order of the review."""
        union = AuthenticatorUnion([self.tokens])
        token = self.token(aud=["vault", "x", HERE])
        found = union.authenticate_token(token, ["other", "x", "vault", "x"])
        self.assertEqual(found, TokenAuthentication(self.user(token), ("x", "vault", "x")))
        self.assertIn("is invalid for the target audiences", union.authenticate_token(token, ["other"]).error)

    @given(st.dictionaries(st.sampled_from(["aud", "exp", "nbf", "iat", "jti", "sub", "kubernetes.io"]), _JSON))
    def test_any_claims(self, claims: dict[str, Any]) -> None:
        """Whatever is signed is a user, or refused."""
        signed = {"iss": HERE, **claims}
        token = jwt.PyJWS().encode(orjson.dumps(signed), load_pem_private_key(KEY, None), "ES256")
        with contextlib.suppress(AuthenticationFailed):
            self.user(token)

    def test_odd_claims(self) -> None:
        """Claims of another form than ours name nobody."""
        for private in (None, "x", {"namespace": ["x"]}, {"namespace": "default", "serviceaccount": {"name": {}}}):
            self.assertEqual(self.refused(self.token(**{"kubernetes.io": private})), 'serviceaccounts "" not found')


class LiveTests(TokenCase):
    """What a token names must be there."""

    def test_deleted_account(self) -> None:
        """A token ends with its account, even when it was good before, and one of the same name is another."""
        token = self.token()
        self.assertIsNotNone(self.user(token))
        self.remove("serviceaccounts", "robot")
        self.assertEqual(self.refused(token), 'serviceaccounts "robot" not found')
        made = self.made(self.store("serviceaccounts"), {"metadata": {"name": "robot"}})
        uids = made["metadata"]["uid"], self.account["metadata"]["uid"]
        self.assertEqual(self.refused(token), "service account UID ({}) does not match claim ({})".format(*uids))

    def test_account_being_deleted(self) -> None:
        """Something that waits for its finalizers counts as gone after a minute."""
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
        self.assertEqual(self.refused(token), "service account default/held has been deleted")

    def test_pod(self) -> None:
        """A token that is bound to a pod tells it and its node, and ends with the pod alone."""
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
        self.assertEqual(self.refused(token), "service account token has been invalidated")
        again = self.made(self.store("pods"), pod("p"))["metadata"]["uid"]
        was = made["metadata"]["uid"]
        self.assertEqual(self.refused(token), f"pod UID ({again}) does not match service account pod ref claim ({was})")

    def test_secret_and_node(self) -> None:
        """So do tokens that are bound to a secret, or to a node."""
        for resource, kind in (("secrets", "secret"), ("nodes", "node")):
            made = self.made(self.store(resource), {"metadata": {"name": "x"}})
            token = self.issuer.sign(self.claims(**{kind: made}))
            self.assertIsNotNone(self.user(token))
            self.remove(resource, "x")
            self.assertEqual(self.refused(token), "service account token has been invalidated")


class LegacyTests(LegacyTestCase):
    """Tokens that stand in secrets."""

    def test_good(self) -> None:
        """Such a token is good while it stands in its secret."""
        token = self.legacy()
        self.assertEqual(self.refused(token), "service account token has been invalidated")
        self.keep(token)
        user = self.user(token)
        assert user is not None
        self.assertEqual((user.name, user.extra), ("system:serviceaccount:default:robot", {}))
        self.remove("secrets", "s")
        self.assertEqual(self.refused(token), "service account token has been invalidated")
        self.keep("another")
        self.assertEqual(self.refused(token), "service account token does not match server's copy")

    def test_marked(self) -> None:
        """A secret can be marked so that its token is no longer good; its use is noted all the same."""
        token = self.legacy()
        self.keep(token, labels={"kubernetes.io/legacy-token-invalid-since": "2026-01-01"})
        self.assertEqual(
            self.refused(token),
            "the token in secret default/s for service account default/robot has been marked invalid. Use tokens from"
            " the TokenRequest API or manually created secret-based tokens, or remove the"
            " 'kubernetes.io/legacy-token-invalid-since' label from the secret to temporarily allow use of this token",
        )
        self.assertEqual(self.request.annotations, {"authentication.k8s.io/legacy-token-invalidated": "s/default"})
        self.assertEqual(self.last_used(), TODAY)

    def test_sorts(self) -> None:
        """Whoever uses a token of a secret that was made for an account is warned; the audit tells either sort."""
        token = self.legacy()
        self.keep(token)
        self.assertIsNotNone(self.user(token))
        self.assertEqual(self.request.warnings, [])
        self.assertEqual(self.request.annotations, {"authentication.k8s.io/legacy-token-manual-secret": "s"})

        def own(obj: Any) -> None:
            obj["secrets"] = [{"name": "s"}]

        self.changed(self.store("serviceaccounts"), "robot", own)
        self.assertIsNotNone(self.user(token))
        self.assertIn("instead of auto-generated secret-based tokens.", self.request.warnings[0])
        self.assertEqual(self.request.annotations, {"authentication.k8s.io/legacy-token-autogenerated-secret": "s"})

    def test_claims(self) -> None:
        """Everything must be named, and the subject be the account."""
        self.assertEqual(self.refused(self.legacy(sub="system:serviceaccount:default:x")), "sub claim is invalid")
        self.assertEqual(
            self.refused(self.legacy(**{"kubernetes.io/serviceaccount/namespace": ""})), "namespace claim is missing"
        )

    def test_without_lookup(self) -> None:
        """Without --service-account-lookup the signature is enough."""
        self.tokens = self.authenticator(lookup=False)
        self.assertIsNotNone(self.user(self.legacy()))
