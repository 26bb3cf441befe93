"""Tests for L{kubetwist.cli.flags.authentication}."""

from __future__ import annotations

from ..commandlines import CommandLineTestCase, parsed

ISSUER = ("--oidc-issuer-url=https://issuer", "--oidc-client-id=me")


class AuthenticationTests(CommandLineTestCase):
    """Consistency checks of authentication flags."""

    def test_oidc(self) -> None:
        """Issuer and client id must be set together, and exclude --authentication-config."""
        text = "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set"
        for flag in ("--oidc-issuer-url=https://issuer", "--oidc-client-id=me", "--oidc-groups-claim=groups"):
            self.assert_rejected(text, flag)
        self.assertEqual(parsed(*ISSUER)["oidc-signing-algs"], ("RS256",))
        self.assert_rejected(
            "authentication-config file and oidc-* flags are mutually exclusive", "--authentication-config=x", *ISSUER
        )

    def test_algorithms(self) -> None:
        """Algorithms with a shared secret are rejected. The message lists every unsupported algorithm."""
        self.assert_rejected(
            'oidc: unsupported signing alg: "HS256"; oidc: unsupported signing alg: "none"',
            *ISSUER,
            "--oidc-signing-algs=HS256,ES256,none",
        )
        self.assertEqual(parsed(*ISSUER, "--oidc-signing-algs=ES256,PS512")["oidc-signing-algs"], ("ES256", "PS512"))

    def test_issuers(self) -> None:
        """Issuers of service account tokens must not be empty or repeated."""
        self.assert_rejected("service-account-issuer should not be an empty string", "--service-account-issuer=")
        self.assert_rejected(
            'service-account-issuer "a" is already specified',
            "--service-account-issuer=a",
            "--service-account-issuer=b",
            "--service-account-issuer=a",
        )

    def test_expiration(self) -> None:
        """The maximum lifetime of tokens is between an hour and 2^32 seconds, or 0 for no limit."""
        flag = "--service-account-max-token-expiration"
        text = "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds"
        for value in ("59m", "1193047h"):
            self.assert_rejected(text, f"{flag}={value}")
        for value, seconds in (("0", 0), ("1h", 3600), ("1193046h", 1193046 * 3600)):
            self.assertEqual(parsed(f"{flag}={value}")[flag.lstrip("-")], seconds)

    def test_request_headers(self) -> None:
        """Headers with uids include the header of the aggregator."""
        flag = "--requestheader-uid-headers"
        self.assert_rejected(
            f"{flag} is set without specifying the standard X-Remote-Uid header - API aggregation will not work",
            f"{flag}=X-Uid",
        )
        self.assertEqual(parsed(f"{flag}=X-Uid,x-remote-uid")[flag.lstrip("-")], ("X-Uid", "x-remote-uid"))

    def test_gates(self) -> None:
        """Some flags need feature gates; before 1.35, one gate needs another one."""
        for flags, message in (
            (
                ("--requestheader-uid-headers=X-Remote-Uid", "--feature-gates=RemoteRequestHeaderUID=false"),
                '--requestheader-uid-headers requires the "RemoteRequestHeaderUID" feature to be enabled',
            ),
            (
                ("--requestheader-uid-headers=X-Remote-Uid", "--kubernetes-version=1.32"),
                '--requestheader-uid-headers requires the "RemoteRequestHeaderUID" feature to be enabled',
            ),
            (
                (
                    "--authentication-config=a.yaml",
                    "--kubernetes-version=1.33",
                    "--feature-gates=StructuredAuthenticationConfiguration=false",
                ),
                "set --feature-gates=StructuredAuthenticationConfiguration=true to use authentication-config file",
            ),
            (
                (
                    "--authorization-config=a.yaml",
                    "--kubernetes-version=1.31",
                    "--feature-gates=StructuredAuthorizationConfiguration=false",
                ),
                "--authorization-config cannot be used without enabling StructuredAuthorizationConfiguration feature"
                " flag",
            ),
            (
                ("--kubernetes-version=1.31", "--feature-gates=ServiceAccountTokenNodeBindingValidation=false"),
                'the "ServiceAccountTokenNodeBinding" feature gate can only be enabled if the'
                ' "ServiceAccountTokenNodeBindingValidation" feature gate is also enabled',
            ),
        ):
            self.assert_rejected(message, *flags)
