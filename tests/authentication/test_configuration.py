"""Tests for L{kubetwist.authentication.configuration}; expressions are in L{tests.authentication.test_expressions}."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.configurations import ConfigurationError
from kubetwist.authentication.configuration import (
    AnonymousConfiguration,
    ClaimOrExpression,
    Issuer,
    configuration_of_flags,
    read_configuration,
)
from kubetwist.cli.kubeapi import Options
from tests.certificates import root

URL = "https://issuer.example.com"
OURS = "https://here"


def jwt(**changes: Any) -> dict[str, Any]:
    """Return a C{JWTAuthenticator}; C{issuer__url} and the like set nested fields."""
    result: dict[str, Any] = {
        "issuer": {"url": URL, "audiences": ["me"]},
        "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
    }
    for path, value in changes.items():
        inner = result
        *outer, name = path.split("__")
        for part in outer:
            inner = inner.setdefault(part, {})
        inner[name] = value
    return result


def read(*issuers: Any, **fields: Any) -> Any:
    """Return the configuration of a file with these authenticators."""
    document = {"apiVersion": "apiserver.config.k8s.io/v1beta1", "kind": "AuthenticationConfiguration"}
    return read_configuration(json.dumps({**document, "jwt": issuers, **fields}).encode(), [OURS])


class FileTests(SynchronousTestCase):
    """Tests for L{read_configuration}."""

    def error_text(self, *issuers: Any, **fields: Any) -> str:
        """Return the error for a file with these authenticators."""
        error = str(self.assertRaises(ConfigurationError, read, *issuers, **fields))
        self.assertTrue(error.startswith("invalid authentication configuration: "), error)
        return error.removeprefix("invalid authentication configuration: ")

    def test_all(self) -> None:
        """All fields of an authenticator are read."""
        authority = root().pem.decode()
        result = read(
            jwt(
                issuer__discoveryURL="https://x/y",
                issuer__certificateAuthority=authority,
                issuer__audiences=["a", "b"],
                issuer__audienceMatchPolicy="MatchAny",
                claimMappings__groups={"claim": "roles", "prefix": "g:"},
                claimMappings__uid={"claim": "id"},
                claimValidationRules=[{"claim": "hd", "requiredValue": "x"}],
            )
        )
        (one,) = result.jwt
        self.assertEqual(one.issuer, Issuer(URL, ("a", "b"), "https://x/y", authority.encode()))
        self.assertEqual(
            (one.username, one.groups, one.uid),
            (ClaimOrExpression("sub"), ClaimOrExpression("roles", "g:"), ClaimOrExpression("id")),
        )
        self.assertEqual(one.required_claims, {"hd": "x"})
        self.assertIsNone(result.anonymous)

    def test_versions(self) -> None:
        """All versions of the file are read; another kind is rejected."""
        for version in ("v1", "v1beta1", "v1alpha1"):
            read(jwt(), apiVersion=f"apiserver.config.k8s.io/{version}")
        error = self.assertRaises(ConfigurationError, read, kind="Policy")
        self.assertIn('no kind "Policy" is registered', str(error))
        error = self.assertRaises(ConfigurationError, read, jwt(issuer__x=1))
        self.assertEqual(str(error), 'strict decoding error: unknown field "jwt[0].issuer.x"')

    def test_urls(self) -> None:
        """
        An issuer URL must be an https URL without user, query and fragment, and must not be a service account issuer.
        """
        for url, text in (
            ("", "jwt[0].issuer.url: Required value"),
            ("http://x", 'jwt[0].issuer.url: Invalid value: "http://x": URL scheme must be https'),
            (
                "https://u:p@x",
                'jwt[0].issuer.url: Invalid value: "https://u:p@x": URL must not contain a username or password',
            ),
            ("https://x?a", 'jwt[0].issuer.url: Invalid value: "https://x?a": URL must not contain a query'),
            ("https://x#a", 'jwt[0].issuer.url: Invalid value: "https://x#a": URL must not contain a fragment'),
            (
                OURS,
                f'jwt[0].issuer.url: Invalid value: "{OURS}": URL must not overlap with disallowed issuers: [{OURS}]',
            ),
        ):
            self.assertEqual(self.error_text(jwt(issuer__url=url)), text)
        self.assertIn('parse "https://x:y": invalid port', self.error_text(jwt(issuer__url="https://x:y")))

    def test_discovery(self) -> None:
        """A discovery URL must differ from the issuer URL."""
        text = f'jwt[0].issuer.discoveryURL: Invalid value: "{URL}/": discoveryURL must be different from URL'
        self.assertEqual(self.error_text(jwt(issuer__discoveryURL=f"{URL}/")), text)
        self.assertIn("URL scheme must be https", self.error_text(jwt(issuer__discoveryURL="http://x")))

    def test_several(self) -> None:
        """Issuer URLs and discovery URLs must be unique."""
        two = [jwt(issuer__discoveryURL="https://x")] * 2
        self.assertEqual(
            self.error_text(*two),
            f'[jwt[1].issuer.url: Duplicate value: "{URL}", jwt[1].issuer.discoveryURL: Duplicate value: "https://x"]',
        )
        many = [jwt(issuer__url=f"https://x{number}") for number in range(65)]
        self.assertEqual(self.error_text(*many), "jwt: Too many: 65: must have at most 64 items")
        self.assertEqual(len(read(*many[:64]).jwt), 64)

    def test_audiences(self) -> None:
        """Audiences are required and unique; several audiences need a match policy."""
        policies = "jwt[0].issuer.audienceMatchPolicy"
        for audiences, policy, text in (
            ([], "", "jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required"),
            ([""], "", "jwt[0].issuer.audiences[0]: Required value"),
            (["a", "a"], "MatchAny", 'jwt[0].issuer.audiences[1]: Duplicate value: "a"'),
            (
                ["a", "b"],
                "",
                f'{policies}: Invalid value: "": audienceMatchPolicy must be MatchAny for multiple audiences',
            ),
            (
                ["a"],
                "All",
                f'{policies}: Invalid value: "All": audienceMatchPolicy must be empty or MatchAny for single audience',
            ),
        ):
            one = jwt(issuer__audiences=audiences, issuer__audienceMatchPolicy=policy)
            self.assertEqual(self.error_text(one), text)

    def test_authority(self) -> None:
        """The CA bundle must contain certificates; the error omits its content."""
        text = 'Invalid value: "<omitted>": data does not contain any valid RSA or ECDSA certificates'
        self.assertIn(text, self.error_text(jwt(issuer__certificateAuthority="x")))

    def test_egress(self) -> None:
        """Egress selectors are not supported."""
        text = "egress selector must be either controlplane or cluster"
        self.assertIn(text, self.error_text(jwt(issuer__egressSelectorType="x")))
        error = self.assertRaises(ConfigurationError, read, jwt(issuer__egressSelectorType="cluster"))
        self.assertEqual(str(error), 'jwt[0]: oidc: egress lookup required with egress selector type "cluster"')

    def test_mappings(self) -> None:
        """An attribute of the user has either a claim or an expression."""
        mappings = "jwt[0].claimMappings"
        prefix = "prefix is required when claim is set. It can be set to an empty string to disable prefixing"
        for changes, text in (
            ({"username": {}}, f"{mappings}.username: Required value: claim or expression is required"),
            ({"username": {"claim": "sub"}}, f"{mappings}.username.prefix: Required value: {prefix}"),
            ({"groups": {"claim": "sub"}}, f"{mappings}.groups.prefix: Required value: {prefix}"),
            (
                {"groups": {"claim": "a", "expression": "b"}},
                f'{mappings}.groups: Invalid value: "": claim and expression can\'t both be set',
            ),
            (
                {"uid": {"claim": "a", "expression": "b"}},
                f'{mappings}.uid: Invalid value: "": claim and expression can\'t both be set',
            ),
        ):
            self.assertEqual(
                self.error_text(jwt(**{f"claimMappings__{key}": value for key, value in changes.items()})), text
            )

    def test_rules(self) -> None:
        """A claim validation rule has either a claim or an expression."""
        rules = "jwt[0].claimValidationRules"
        for rule, text in (
            ({}, f"{rules}[0]: Required value: claim or expression is required"),
            (
                {"claim": "a", "expression": "b"},
                f'{rules}[0]: Invalid value: "a": claim and expression can\'t both be set',
            ),
            (
                {"claim": "a", "message": "m"},
                f'{rules}[0].message: Invalid value: "m": may not be specified when claim is set',
            ),
        ):
            self.assertEqual(self.error_text(jwt(claimValidationRules=[rule])), text)
        self.assertEqual(
            self.error_text(jwt(claimValidationRules=[{"claim": "a"}, {"claim": "a"}])),
            f'{rules}[1].claim: Duplicate value: "a"',
        )

    def test_keys(self) -> None:
        """Keys of extra attributes need a domain that is not reserved."""
        keys = "jwt[0].claimMappings.extra[0].key"
        for key, text in (
            ("", f"{keys}: Required value"),
            ("a", f'{keys}: Invalid value: "a": must be a domain-prefixed path (such as "acme.io/foo")'),
            ("acme.io/A", f'{keys}: Invalid value: "acme.io/A": must be lowercase'),
            (
                "x.k8s.io/a",
                f'{keys}: Invalid value: "x.k8s.io/a": k8s.io, kubernetes.io and their subdomains are reserved for'
                " Kubernetes use",
            ),
        ):
            one = jwt(claimMappings__extra=[{"key": key, "valueExpression": ""}])
            expression = "jwt[0].claimMappings.extra[0].valueExpression: Required value"
            self.assertEqual(self.error_text(one), f"[{text}, {expression}]")

    def test_anonymous(self) -> None:
        """Anonymous requests can be disabled or restricted to some paths."""
        self.assertEqual(read(anonymous={"enabled": False}).anonymous, AnonymousConfiguration(False))
        conditions = [{"path": "/healthz"}, {"path": "/livez"}]
        result = read(anonymous={"enabled": True, "conditions": conditions}).anonymous
        self.assertEqual(result, AnonymousConfiguration(True, ("/healthz", "/livez")))
        self.assertEqual(
            self.error_text(anonymous={"conditions": conditions[:1]}),
            'anonymous.conditions: Invalid value: [{"Path":"/healthz"}]: enabled should be set to true when conditions'
            " are defined",
        )

    def test_anonymous_gate(self) -> None:
        """Without the feature gate AnonymousAuthConfigurableEndpoints, the file has no settings for anonymous ones."""
        document = {"apiVersion": "apiserver.config.k8s.io/v1alpha1", "kind": "AuthenticationConfiguration"}
        content = json.dumps({**document, "anonymous": {"enabled": True}}).encode()
        error = self.assertRaises(ConfigurationError, read_configuration, content, [OURS], anonymous=False)
        self.assertIn(
            "anonymous: Forbidden: anonymous is not supported when AnonymousAuthConfigurableEnpoints feature gate is"
            " disabled",
            str(error),
        )


class FlagTests(SynchronousTestCase):
    """Tests for L{configuration_of_flags}."""

    def of(self, *flags: str) -> Any:
        """Return the configuration of a command line."""
        options = Options()
        options.parseOptions([f"--oidc-issuer-url={URL}", "--oidc-client-id=me", *flags])
        return configuration_of_flags(options, [OURS])

    def test_prefixes(self) -> None:
        """
        User names have the issuer as prefix, except for email addresses, unless a prefix is set; C{-} means no prefix.
        """
        for flags, source in (
            ((), ClaimOrExpression("sub", f"{URL}#")),
            (("--oidc-username-claim=email",), ClaimOrExpression("email")),
            (("--oidc-username-prefix=-",), ClaimOrExpression("sub")),
            (("--oidc-username-prefix=x:",), ClaimOrExpression("sub", "x:")),
        ):
            self.assertEqual(self.of(*flags).jwt[0].username, source)

    def test_all(self) -> None:
        """All flags are used."""
        path = Path(self.mktemp())
        path.write_bytes(root().pem)
        (one,) = self.of(
            "--oidc-groups-claim=roles",
            "--oidc-groups-prefix=g:",
            "--oidc-required-claim=a=b,c",
            "--oidc-required-claim=d=e",
            f"--oidc-ca-file={path}",
        ).jwt
        self.assertEqual(one.groups, ClaimOrExpression("roles", "g:"))
        self.assertEqual(one.required_claims, {"a": "b,c", "d": "e"})
        self.assertEqual(one.issuer, Issuer(URL, ("me",), "", path.read_bytes()))

    def test_off(self) -> None:
        """Without an issuer there are no authenticators."""
        self.assertEqual(configuration_of_flags(Options(), []).jwt, ())

    def test_bad(self) -> None:
        """Invalid flags are rejected."""
        self.assertRaises(ConfigurationError, self.of, "--oidc-ca-file=/nowhere")
        error = self.assertRaises(ConfigurationError, self.of, "--oidc-issuer-url=http://x")
        self.assertIn("URL scheme must be https", str(error))
