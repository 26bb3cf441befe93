"""
The configuration of JWT authenticators and of anonymous requests: C{--authentication-config} or C{--oidc-*}.

@see: kubernetes, C{apiserver/pkg/apis/apiserver}: C{types.go} and C{validation/validation.go}.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import field, frozen

from ..api.configurations import (
    BOOL,
    OPTIONAL_STRING,
    STRING,
    ConfigurationError,
    ListOf,
    Struct,
    decode_configuration,
)
from ..api.errors import FieldError, aggregate, duplicate, forbidden, invalid, required, too_many
from ..api.flagvalues import FlagValues
from ..api.go.quote import quoted
from ..api.go.url import (
    URLError,
    parse_url,
)
from ..api.names import validate_domain_prefixed_path
from ..api.resource import JSONObject

if TYPE_CHECKING:
    from ..cel.authentication import ClaimsExpression, UserExpression

_GROUP: Final = "apiserver.config.k8s.io"
_SCHEME: Final = "k8s.io/kubernetes/pkg/kubeapiserver/options/authentication.go"
_MAX_ISSUERS: Final = 64
_MATCH_ANY: Final = "MatchAny"
_BOTH: Final = "claim and expression can't both be set"
_OMITTED: Final = "<omitted>"

_PREFIXED: Final = Struct(
    "PrefixedClaimOrExpression", {"claim": STRING, "prefix": OPTIONAL_STRING, "expression": STRING}
)
_JWT: Final = Struct(
    "JWTAuthenticator",
    {
        "issuer": Struct(
            "Issuer",
            {
                "url": STRING,
                "discoveryURL": STRING,
                "certificateAuthority": STRING,
                "audiences": ListOf(STRING),
                "audienceMatchPolicy": STRING,
                "egressSelectorType": STRING,
            },
        ),
        "claimValidationRules": ListOf(
            Struct(
                "ClaimValidationRule",
                {"claim": STRING, "requiredValue": STRING, "expression": STRING, "message": STRING},
            )
        ),
        "claimMappings": Struct(
            "ClaimMappings",
            {
                "username": _PREFIXED,
                "groups": _PREFIXED,
                "uid": Struct("ClaimOrExpression", {"claim": STRING, "expression": STRING}),
                "extra": ListOf(Struct("ExtraMapping", {"key": STRING, "valueExpression": STRING})),
            },
        ),
        "userValidationRules": ListOf(Struct("UserValidationRule", {"expression": STRING, "message": STRING})),
    },
)
_ANONYMOUS: Final = Struct(
    "AnonymousAuthConfig",
    {"enabled": BOOL, "conditions": ListOf(Struct("AnonymousAuthCondition", {"path": STRING}))},
    optional=True,
)
_CONFIGURATION: Final = Struct("AuthenticationConfiguration", {"jwt": ListOf(_JWT), "anonymous": _ANONYMOUS})


@frozen
class ClaimOrExpression:
    """
    The source of one attribute of the user.

    @ivar claim: The name of a claim, whose value is prefixed with C{prefix}; C{""} for none.
    @ivar expression: A CEL expression on the claims; used instead of C{claim}.
    """

    claim: str = ""
    prefix: str = ""
    expression: ClaimsExpression | None = None


@frozen
class Issuer:
    """
    A token issuer.

    @ivar discovery: The discovery URL; C{""} for the default path below C{url}.
    @ivar authorities: CA certificates in PEM; C{b""} for the CAs of the system.
    """

    url: str
    audiences: tuple[str, ...]
    discovery: str = ""
    authorities: bytes = field(default=b"", repr=False)


@frozen(eq=False)
class JWTAuthenticatorConfig:
    """
    The compiled C{JWTAuthenticator}: how tokens of one issuer are mapped to users.

    @ivar extra: Expressions by extra key.
    @ivar required_claims: The required claims and their values.
    @ivar claim_validation_rules: Expressions on the claims that must hold, each with its error message.
    @ivar user_validation_rules: Expressions on the user that must hold, each with its error message.
    """

    issuer: Issuer
    username: ClaimOrExpression
    groups: ClaimOrExpression = ClaimOrExpression()
    uid: ClaimOrExpression = ClaimOrExpression()
    extra: Mapping[str, ClaimsExpression] = field(factory=dict)
    required_claims: Mapping[str, str] = field(factory=dict)
    claim_validation_rules: Sequence[tuple[ClaimsExpression, str]] = ()
    user_validation_rules: Sequence[tuple[UserExpression, str]] = ()


@frozen
class AnonymousConfiguration:
    """
    The settings for anonymous requests.

    @ivar paths: The paths that anonymous requests may have; empty for all paths.
    """

    enabled: bool
    paths: tuple[str, ...] = ()


@frozen
class AuthenticationConfiguration:
    """
    The compiled C{AuthenticationConfiguration}.

    @ivar anonymous: The settings for anonymous requests; L{None} if the file has none.
    """

    jwt: Sequence[JWTAuthenticatorConfig] = ()
    anonymous: AnonymousConfiguration | None = None


def read_configuration(
    content: bytes, disallowed_issuers: Collection[str], *, anonymous: bool = True
) -> AuthenticationConfiguration:
    """
    Read C{--authentication-config}.

    @param disallowed_issuers: The issuers of service account tokens, which cannot be configured.
    @param anonymous: Whether anonymous requests can be configured: the feature gate AnonymousAuthConfigurableEndpoints.
    @raise ConfigurationError: The file cannot be used; the text is the reference's.
    """
    versions = {f"{_GROUP}/{version}": _CONFIGURATION for version in ("v1", "v1beta1", "v1alpha1")}
    decoded = decode_configuration(content, "AuthenticationConfiguration", versions, _SCHEME)
    return compiled(decoded, disallowed_issuers, allows_anonymous=anonymous)


def configuration_of_flags(options: FlagValues, disallowed_issuers: Collection[str]) -> AuthenticationConfiguration:
    """
    Return the configuration of the flags C{--oidc-*}.

    @raise ConfigurationError: The flags cannot be used.
    """
    issuer = options["oidc-issuer-url"]
    if not issuer:
        return AuthenticationConfiguration()
    prefix = options["oidc-username-prefix"]
    if prefix == "-":
        prefix = ""
    elif not prefix and options["oidc-username-claim"] != "email":
        prefix = f"{issuer}#"
    authorities = options["oidc-ca-file"]
    try:
        content = Path(authorities).read_bytes().decode() if authorities else ""
    except OSError as error:
        raise ConfigurationError(f"cannot read --oidc-ca-file {authorities}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ConfigurationError(f"cannot use --oidc-ca-file {authorities}: invalid UTF-8") from None
    groups = options["oidc-groups-claim"]
    jwt = {
        "issuer": {
            "url": issuer,
            "discoveryURL": "",
            "certificateAuthority": content,
            "audiences": [options["oidc-client-id"]],
            "audienceMatchPolicy": "",
            "egressSelectorType": "",
        },
        "claimValidationRules": [
            {"claim": claim, "requiredValue": value, "expression": "", "message": ""}
            for claim, value in options["oidc-required-claim"].items()
        ],
        "claimMappings": {
            "username": {"claim": options["oidc-username-claim"], "prefix": prefix, "expression": ""},
            "groups": {"claim": groups, "prefix": options["oidc-groups-prefix"] if groups else None, "expression": ""},
            "uid": {"claim": "", "expression": ""},
            "extra": [],
        },
        "userValidationRules": [],
    }
    return compiled({"jwt": [jwt], "anonymous": None}, disallowed_issuers)


def compiled(
    configuration: JSONObject, disallowed_issuers: Collection[str], *, allows_anonymous: bool = True
) -> AuthenticationConfiguration:
    """
    Validate a decoded configuration and compile its expressions.

    @raise ConfigurationError: The configuration is invalid.
    """
    causes: list[FieldError] = []
    authenticators = []
    if len(configuration["jwt"]) > _MAX_ISSUERS:
        causes.append(too_many("jwt", len(configuration["jwt"]), _MAX_ISSUERS))
    else:
        urls: set[str] = set()
        discoveries: set[str] = set()
        for index, jwt in enumerate(configuration["jwt"]):
            path = f"jwt[{index}]"
            authenticators.append(_JWTCompiler(jwt, path, causes).compile(disallowed_issuers))
            issuer = jwt["issuer"]
            for name, seen in (("url", urls), ("discoveryURL", discoveries)):
                url = issuer[name]
                if url in seen:
                    causes.append(duplicate(f"{path}.issuer.{name}", url))
                if url or name == "url":
                    seen.add(url)
    anonymous = configuration["anonymous"]
    if anonymous is not None:
        if not allows_anonymous:
            # The name of the gate is written as in the reference.
            text = "anonymous is not supported when AnonymousAuthConfigurableEnpoints feature gate is disabled"
            causes.append(forbidden("anonymous", text))
        conditions = [{"Path": one["path"]} for one in anonymous["conditions"]]
        if conditions and not anonymous["enabled"]:
            text = "enabled should be set to true when conditions are defined"
            causes.append(invalid("anonymous.conditions", conditions, text))
    if causes:
        raise ConfigurationError(f"invalid authentication configuration{aggregate(causes)}")
    for index, jwt in enumerate(configuration["jwt"]):
        selector = jwt["issuer"]["egressSelectorType"]
        if selector:
            text = f"oidc: egress lookup required with egress selector type {quoted(selector)}"
            raise ConfigurationError(f"jwt[{index}]: {text}")
    if anonymous is None:
        return AuthenticationConfiguration(authenticators)
    paths = tuple(one["path"] for one in anonymous["conditions"])
    return AuthenticationConfiguration(authenticators, AnonymousConfiguration(anonymous["enabled"], paths))


class _JWTCompiler:
    """Validates and compiles one C{JWTAuthenticator}; errors are added to C{causes}."""

    def __init__(self, jwt: JSONObject, path: str, causes: list[FieldError]) -> None:
        self._jwt = jwt
        self._path = path
        self._causes = causes
        self._uses_email = False
        self._uses_email_verified = False

    def compile(self, disallowed_issuers: Collection[str]) -> JWTAuthenticatorConfig:
        issuer = self._jwt["issuer"]
        self._causes += _validate_issuer(issuer, disallowed_issuers, f"{self._path}.issuer")
        required_claims, claim_validation_rules = self._claim_rules()
        mappings = self._jwt["claimMappings"]
        path = f"{self._path}.claimMappings"
        username = self._prefixed_claim_or_expression(mappings["username"], f"{path}.username", True)
        if username.expression is not None:
            self._uses_email |= username.expression.uses_email
            self._uses_email_verified |= username.expression.uses_email_verified
        groups = self._prefixed_claim_or_expression(mappings["groups"], f"{path}.groups", False)
        uid = self._claim_or_expression(mappings["uid"], f"{path}.uid")
        extra = self._extra(mappings["extra"], f"{path}.extra")
        if self._uses_email and not self._uses_email_verified:
            text = (
                "claims.email_verified must be used in claimMappings.username.expression or"
                " claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is"
                " used in claimMappings.username.expression"
            )
            self._causes.append(invalid(f"{path}.username.expression", mappings["username"]["expression"], text))
        user_validation_rules = self._user_rules()
        return JWTAuthenticatorConfig(
            Issuer(
                issuer["url"],
                tuple(issuer["audiences"]),
                issuer["discoveryURL"],
                issuer["certificateAuthority"].encode(),
            ),
            username,
            groups,
            uid,
            extra,
            required_claims,
            claim_validation_rules,
            user_validation_rules,
        )

    def _claim_rules(self) -> tuple[dict[str, str], list[tuple[ClaimsExpression, str]]]:
        claims: dict[str, str] = {}
        expressions: set[str] = set()
        rules = []
        for index, rule in enumerate(self._jwt["claimValidationRules"]):
            path = f"{self._path}.claimValidationRules[{index}]"
            claim, expression = rule["claim"], rule["expression"]
            if claim and expression:
                self._causes.append(invalid(path, claim, _BOTH))
            elif claim:
                if rule["message"]:
                    text = "may not be specified when claim is set"
                    self._causes.append(invalid(f"{path}.message", rule["message"], text))
                if claim in claims:
                    self._causes.append(duplicate(f"{path}.claim", claim))
                claims[claim] = rule["requiredValue"]
            elif expression:
                if rule["requiredValue"]:
                    text = "may not be specified when expression is set"
                    self._causes.append(invalid(f"{path}.requiredValue", rule["requiredValue"], text))
                if expression in expressions:
                    self._causes.append(duplicate(f"{path}.expression", expression))
                    continue
                expressions.add(expression)
                compiled = self._expression(expression, f"{path}.expression", True)
                if compiled is not None:
                    self._uses_email_verified |= compiled.uses_email_verified
                    rules.append((compiled, rule["message"]))
            else:
                self._causes.append(required(path, "claim or expression is required"))
        return claims, rules

    def _user_rules(self) -> list[tuple[UserExpression, str]]:
        from ..cel.authentication import CauseError, compile_user_expression

        seen: set[str] = set()
        rules = []
        for index, rule in enumerate(self._jwt["userValidationRules"]):
            path, expression = f"{self._path}.userValidationRules[{index}].expression", rule["expression"]
            if not expression:
                self._causes.append(required(path))
            elif expression in seen:
                self._causes.append(duplicate(path, expression))
            else:
                seen.add(expression)
                try:
                    rules.append((compile_user_expression(expression, path), rule["message"]))
                except CauseError as error:
                    self._causes.append(error.cause)
        return rules

    def _prefixed_claim_or_expression(self, mapping: JSONObject, path: str, is_required: bool) -> ClaimOrExpression:
        claim, prefix, expression = mapping["claim"], mapping["prefix"], mapping["expression"]
        if expression and claim:
            self._causes.append(invalid(path, "", _BOTH))
        elif expression:
            if prefix is not None:
                text = "may not be specified when expression is set"
                self._causes.append(invalid(f"{path}.prefix", prefix, text))
            return ClaimOrExpression(expression=self._expression(expression, f"{path}.expression"))
        elif claim:
            if prefix is None:
                text = "prefix is required when claim is set. It can be set to an empty string to disable prefixing"
                self._causes.append(required(f"{path}.prefix", text))
        elif is_required:
            self._causes.append(required(path, "claim or expression is required"))
        return ClaimOrExpression(claim, prefix or "")

    def _claim_or_expression(self, mapping: JSONObject, path: str) -> ClaimOrExpression:
        claim, expression = mapping["claim"], mapping["expression"]
        if claim and expression:
            self._causes.append(invalid(path, "", _BOTH))
        elif expression:
            return ClaimOrExpression(expression=self._expression(expression, f"{path}.expression"))
        return ClaimOrExpression(claim)

    def _extra(self, mappings: Sequence[JSONObject], path: str) -> dict[str, ClaimsExpression]:
        seen: set[str] = set()
        extra: dict[str, Any] = {}
        for index, mapping in enumerate(mappings):
            key, expression = mapping["key"], mapping["valueExpression"]
            item_path = f"{path}[{index}]"
            self._causes += _validate_keys(key, f"{item_path}.key")
            if key in seen:
                self._causes.append(duplicate(f"{item_path}.key", key))
                continue
            seen.add(key)
            if not expression:
                self._causes.append(required(f"{item_path}.valueExpression"))
                continue
            compiled = self._expression(expression, f"{item_path}.valueExpression")
            if compiled is not None:
                self._uses_email_verified |= compiled.uses_email_verified
                extra[key] = compiled
        return extra

    def _expression(self, expression: str, path: str, boolean: bool = False) -> ClaimsExpression | None:
        from ..cel.authentication import CauseError, compile_claims_expression

        try:
            return compile_claims_expression(expression, path, boolean)
        except CauseError as error:
            self._causes.append(error.cause)
            return None


def _validate_issuer(issuer: JSONObject, disallowed_issuers: Collection[str], path: str) -> Iterator[FieldError]:
    url, discovery = issuer["url"], issuer["discoveryURL"]
    if not url:
        yield required(f"{path}.url")
    else:
        yield from _validate_url(url, disallowed_issuers, f"{path}.url")
    if discovery:
        if url and url.rstrip("/") == discovery.rstrip("/"):
            yield invalid(f"{path}.discoveryURL", discovery, "discoveryURL must be different from URL")
        yield from _validate_url(discovery, (), f"{path}.discoveryURL")
    yield from _validate_audiences(issuer["audiences"], issuer["audienceMatchPolicy"], path)
    authorities = issuer["certificateAuthority"]
    if authorities and not _has_certificates(authorities):
        text = "data does not contain any valid RSA or ECDSA certificates"
        yield invalid(f"{path}.certificateAuthority", _OMITTED, text)
    selector = issuer["egressSelectorType"]
    if selector and selector not in ("controlplane", "cluster"):
        yield invalid(f"{path}.egressSelectorType", selector, "egress selector must be either controlplane or cluster")


def _validate_url(url: str, disallowed_issuers: Collection[str], path: str) -> Iterator[FieldError]:
    if url in disallowed_issuers:
        text = f"URL must not overlap with disallowed issuers: [{' '.join(sorted(disallowed_issuers))}]"
        yield invalid(path, url, text)
    try:
        parts = parse_url(url)
    except URLError as error:
        yield invalid(path, url, str(error))
        return
    for is_invalid, text in (
        (parts.scheme != "https", "URL scheme must be https"),
        (parts.user is not None, "URL must not contain a username or password"),
        (bool(parts.raw_query), "URL must not contain a query"),
        (bool(parts.fragment), "URL must not contain a fragment"),
    ):
        if is_invalid:
            yield invalid(path, url, text)


def _validate_audiences(audiences: Sequence[str], policy: str, path: str) -> Iterator[FieldError]:
    if not audiences:
        yield required(f"{path}.audiences", f"at least one {path}.audiences is required")
        return
    for index, audience in enumerate(audiences):
        if not audience:
            yield required(f"{path}.audiences[{index}]")
        if audience in audiences[:index]:
            yield duplicate(f"{path}.audiences[{index}]", audience)
    if len(audiences) > 1 and policy != _MATCH_ANY:
        text = "audienceMatchPolicy must be MatchAny for multiple audiences"
        yield invalid(f"{path}.audienceMatchPolicy", policy, text)
    if len(audiences) == 1 and policy not in ("", _MATCH_ANY):
        text = "audienceMatchPolicy must be empty or MatchAny for single audience"
        yield invalid(f"{path}.audienceMatchPolicy", policy, text)


def _validate_keys(key: str, path: str) -> Iterator[FieldError]:
    for part, text in validate_domain_prefixed_path(key):
        yield invalid(path, part, text) if text else required(path)
    if key != key.lower():
        yield invalid(path, key, "must be lowercase")
    domain, slash, _ = key.partition("/")
    if slash and any(f".{domain}".endswith(reserved) for reserved in (".kubernetes.io", ".k8s.io")):
        text = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use"
        yield invalid(path, key, text)


def _has_certificates(pem: str) -> bool:
    from .certificates import CertPool, InvalidCABundle

    try:
        CertPool(pem.encode())
    except InvalidCABundle:
        return False
    return True
