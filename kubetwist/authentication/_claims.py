"""
Maps the claims of a verified OpenID Connect token to a user.

@see: kubernetes, C{apiserver/plugin/pkg/authenticator/token/oidc}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..api.decoding import json_type
from ..api.go.quote import quoted
from ..api.jsontypes import JSONValue
from ..api.resource import UserInfo
from .certificates import CREDENTIAL_ID
from .configuration import (
    ClaimOrExpression,
    JWTAuthenticatorConfig,
)
from .errors import AuthenticationFailed
from .union import add_authenticated_group

if TYPE_CHECKING:
    from ..cel.authentication import (
        ClaimsExpression,
        UserExpression,
    )

_EMAIL: Final = "email"
_VERIFIED: Final = "email_verified"


def user_of_claims(configuration: JWTAuthenticatorConfig, claims: Mapping[str, JSONValue]) -> UserInfo:
    """
    Return the user that the claims identify.

    @raise AuthenticationFailed: The claims identify no user, or a validation rule fails.
    """
    value = _claims_value(claims) if _has_expressions(configuration) else None
    name = _username(configuration.username, claims, value)
    groups = _groups(configuration.groups, claims, value)
    uid = _uid(configuration.uid, claims, value)
    user = UserInfo(name, uid, groups, _extra(configuration, claims, value))
    for claim, required_value in configuration.required_claims.items():
        if claim not in claims:
            raise AuthenticationFailed(f"oidc: required claim {claim} not present in ID token")
        actual = _text(claims[claim], f"oidc: parse claim {claim}")
        if actual != required_value:
            text = f"oidc: required claim {claim} value does not match. Got = {actual}, want = {required_value}"
            raise AuthenticationFailed(text)
    _check(configuration.claim_validation_rules, value, "claim validation expression")
    if configuration.user_validation_rules:
        from ..cel.authentication import user_value

        _check(configuration.user_validation_rules, user_value(user), "user info validation rule")
    return add_authenticated_group(user)


def _has_expressions(configuration: JWTAuthenticatorConfig) -> bool:
    sources = configuration.username, configuration.groups, configuration.uid
    return bool(
        configuration.extra
        or configuration.claim_validation_rules
        or any(source.expression is not None for source in sources)
    )


def _claims_value(claims: Mapping[str, JSONValue]) -> Any:
    from ..cel.authentication import claims_value

    return claims_value(claims)


def _evaluated(expression: ClaimsExpression | UserExpression, value: JSONValue, usage: str) -> Any:
    from ..cel.authentication import ExpressionError

    try:
        return expression.evaluate(value)
    except ExpressionError as error:
        raise AuthenticationFailed(f"oidc: error evaluating {usage}: {error}") from error


def _check(rules: Sequence[tuple[ClaimsExpression | UserExpression, str]], value: JSONValue, usage: str) -> None:
    results = [(expression, message, _evaluated(expression, value, usage)) for expression, message in rules]
    for expression, message, result in results:
        if not isinstance(result, bool):
            raise AuthenticationFailed(f"oidc: error evaluating {usage}: validation expression must return a boolean")
        if not result:
            text = f"validation expression '{expression.expression}' failed: {message}"
            raise AuthenticationFailed(f"oidc: error evaluating {usage}: {text}")


def _username(source: ClaimOrExpression, claims: Mapping[str, JSONValue], value: JSONValue) -> str:
    if source.expression is not None:
        from ..cel.authentication import string_value

        usage = "username claim expression"
        name = string_value(_evaluated(source.expression, value, usage))
        if name is None:
            raise AuthenticationFailed(
                f"oidc: error evaluating {usage}: username claim expression must return a string"
            )
        if not name:
            raise AuthenticationFailed("oidc: empty username via CEL expression is not allowed")
        return name
    name = _claim(claims, source.claim, f"oidc: parse username claims {quoted(source.claim)}")
    if source.claim == _EMAIL and _VERIFIED in claims:
        verified = claims[_VERIFIED]
        if verified is not None and not isinstance(verified, bool):
            text = f"json: cannot unmarshal {json_type(verified)} into Go value of type bool"
            raise AuthenticationFailed(f"oidc: parse 'email_verified' claim: {text}")
        if not verified:
            raise AuthenticationFailed("oidc: email not verified")
    if not source.prefix + name:
        # The reference accepts this as a user without a name.
        raise AuthenticationFailed("oidc: an empty username is not allowed")
    return source.prefix + name


def _groups(source: ClaimOrExpression, claims: Mapping[str, JSONValue], value: JSONValue) -> tuple[str, ...]:
    if source.claim and source.claim in claims:
        groups = claims[source.claim]
        if groups is None:
            return ()
        names = groups if isinstance(groups, list) else [groups]
        if any(one is not None and not isinstance(one, str) for one in names):
            # For a value that is not a list of strings, Go reports the error of decoding a string.
            text = f"json: cannot unmarshal {json_type(groups)} into Go value of type string"
            raise AuthenticationFailed(f"oidc: parse groups claim {quoted(source.claim)}: {text}")
        return tuple(source.prefix + (one or "") for one in names)
    if source.expression is None:
        return ()
    return tuple(_strings(source.expression, value, "group claim expression"))


def _uid(source: ClaimOrExpression, claims: Mapping[str, JSONValue], value: JSONValue) -> str:
    if source.claim:
        return _claim(claims, source.claim, f"oidc: parse uid claim {quoted(source.claim)}")
    if source.expression is None:
        return ""
    from ..cel.authentication import string_value

    uid = string_value(_evaluated(source.expression, value, "uid claim expression"))
    if uid is None:
        text = "uid claim expression must return a string"
        raise AuthenticationFailed(f"oidc: error evaluating uid claim expression: {text}")
    return uid


def _extra(
    configuration: JWTAuthenticatorConfig, claims: Mapping[str, JSONValue], value: JSONValue
) -> dict[str, tuple[str, ...]]:
    extra: dict[str, tuple[str, ...]] = {}
    token_id = claims.get("jti")
    if token_id and isinstance(token_id, str):
        extra[CREDENTIAL_ID] = (f"JTI={token_id}",)
    for key, expression in configuration.extra.items():
        values = _strings(expression, value, "extra claim expression", expression.expression)
        if values:
            extra[key] = tuple(values)
    return extra


def _strings(
    expression: ClaimsExpression | UserExpression, value: JSONValue, usage: str, source: str = ""
) -> list[str]:
    """
    Evaluate an expression that must return a list of strings.

    @param value: The value of C{claims}.
    @param usage: The use of the expression, for error texts.
    @param source: The source of the expression for error texts; C{""} to omit it.
    """
    from ..cel.authentication import string_list

    result = _evaluated(expression, value, usage)
    try:
        return string_list(result)
    except ValueError as error:
        text = f"{source}: {error}" if source else str(error)
        raise AuthenticationFailed(f"oidc: error evaluating {usage}: {text}") from error


def _claim(claims: Mapping[str, JSONValue], name: str, prefix: str) -> str:
    if name not in claims:
        raise AuthenticationFailed(f"{prefix}: claim not present")
    return _text(claims[name], prefix)


def _text(value: JSONValue, prefix: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        text = f"json: cannot unmarshal {json_type(value)} into Go value of type string"
        raise AuthenticationFailed(f"{prefix}: {text}")
    return value
