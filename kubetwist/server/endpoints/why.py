"""
C{/kubetwist/v1/why}: explain a decision: the authorizer, rule and binding that allow a request, or the nearest misses.

Users that may create a SubjectAccessReview have access. See C{docs/why.md}.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import count
from typing import Any, Final

import orjson

from klein import Klein
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from ...admission.decisions import decide
from ...api.authorization import AuthorizerAttributes, Decision, Verdict
from ...api.errors import APIStatusError
from ...api.go.quote import quoted
from ...api.jsontypes import JSONValue
from ...api.rbacrules import quoted_list
from ...api.resource import JSONObject, UserInfo
from ...api.selectors import SelectorError, parse_field_selector, parse_label_selector
from ...filters.authorization import WHY
from ...filters.denials import describe_attributes
from ...filters.impersonationmodes import with_implied_groups
from ...http.negotiation import check_router
from ...http.request import TEXT, KubeRequest
from ...interfaces import IAuthorizer, IAuthorizerUnion, IGrantExplainer, IRuleExplainer
from ...registry.kinds import groups_in_order
from ...registry.kindtable import KINDS
from ...resources.routing import add_route, new_app, path_not_found
from ..config import ServerConfig

JSON: Final = "application/json"
PLAIN: Final = "text/plain"

#: Parameters that may be given once; C{group} may be given several times.
_SINGLE: Final = (
    "user",
    "uid",
    "verb",
    "resource",
    "subresource",
    "apiGroup",
    "namespace",
    "name",
    "path",
    "fieldSelector",
    "labelSelector",
    "output",
)
#: Bytes of the whole query.
_MAX_QUERY_LENGTH: Final = 8192

#: Maximum number of near misses in a response.
MAX_MISSES: Final = 10
#: Rules that are checked in one slice, and in total.
SLICE: Final = 500
MAX_RULES: Final = 200_000


class WhyEndpoint:
    """Explains an authorization decision."""

    def __init__(self, config: ServerConfig) -> None:
        self._config = config

    def make_app(self) -> Klein:
        """Return the Klein app."""
        app = new_app()
        add_route(app, "GET", WHY, self._respond, slashes=False)
        add_route(app, None, f"{WHY}/<rest:path>", path_not_found)
        return app

    async def _respond(self, request: KubeRequest) -> None:
        """Answer as JSON, or in plain text to clients that prefer it."""
        accept = request.header(b"accept")
        check_router(accept, (JSON, PLAIN))
        question, text = self._question(request, _prefers_text(accept))
        _respond(await explain(self._config, question), request, text)

    def _question(self, request: KubeRequest, text: bool) -> tuple[AuthorizerAttributes, bool]:
        if len(request.uri) > _MAX_QUERY_LENGTH:
            raise APIStatusError.bad_request(f"the query is longer than {_MAX_QUERY_LENGTH} bytes")
        query = request.query
        output = query.get("output", [""])[0]
        if output not in ("", "json", "text"):
            raise APIStatusError.bad_request(f"output must be json or text, not {quoted(output)}")
        assert request.user is not None, "authentication comes before this"
        question = parse_question(query, request.user)
        return question, output == "text" if output else text


def group_of(resource: str) -> str:
    """Return the API group of a built-in resource named without one; of several, the one that discovery prefers."""
    groups = groups_in_order({kind.group for kind in KINDS if kind.resource == resource})
    return groups[0] if groups else ""


def _prefers_text(accept: bytes | None) -> bool:
    """Return whether C{Accept} names plain text before the other available types."""
    for part in (accept or b"").split(b","):
        media_type = part.partition(b";")[0].strip()
        if media_type in (b"application/json", b"application/*", b"*/*"):
            return False
        if media_type in (b"text/plain", b"text/*"):
            return True
    return False


def parse_question(query: Mapping[str, Sequence[str]], requester: UserInfo) -> AuthorizerAttributes:
    """
    Parse a query into the attributes of a request.

    @param requester: The user of a query that names none.
    @raise APIStatusError: The query is incomplete or invalid (400).
    """
    unknown = sorted(set(query) - {*_SINGLE, "group"})
    if unknown:
        known = ", ".join(sorted((*_SINGLE, "group")))
        raise APIStatusError.bad_request(f"unknown parameter {quoted(unknown[0])}; there are {known}")
    for name in _SINGLE:
        if len(query.get(name, ())) > 1:
            raise APIStatusError.bad_request(f"the parameter {quoted(name)} is repeated")
    parameters = {name: query[name][0] for name in _SINGLE if name in query}
    verb, resource, path = parameters.get("verb", ""), parameters.get("resource", ""), parameters.get("path", "")
    if not verb:
        raise APIStatusError.bad_request("verb is required, and resource or path")
    if bool(resource) == bool(path):
        raise APIStatusError.bad_request("exactly one of resource and path is required")
    user = requester
    if parameters.get("user"):
        user = with_implied_groups(
            UserInfo(parameters["user"], parameters.get("uid", ""), tuple(query.get("group", ())))
        )
    elif "uid" in parameters or "group" in query:
        raise APIStatusError.bad_request("uid and group are those of a user, who is not named")
    if path:
        return AuthorizerAttributes(user, verb, path=path, is_resource_request=False)
    resource, slash, subresource = resource.partition("/")
    if slash and parameters.get("subresource"):
        raise APIStatusError.bad_request("the subresource is named twice")
    resource, dot, group = resource.partition(".")
    if dot and parameters.get("apiGroup"):
        raise APIStatusError.bad_request("the API group is named twice")
    try:
        fields = parse_field_selector(parameters.get("fieldSelector", ""))
        labels = parse_label_selector(parameters.get("labelSelector", "")).requirements
    except SelectorError as error:
        raise APIStatusError.bad_request(str(error)) from None
    return AuthorizerAttributes(
        user,
        verb,
        group=group if dot else parameters["apiGroup"] if "apiGroup" in parameters else group_of(resource),
        version="*",
        resource=resource,
        subresource=subresource or parameters.get("subresource", ""),
        namespace=parameters.get("namespace", ""),
        name=parameters.get("name", ""),
        field_terms=fields,
        label_terms=tuple(labels),
    )


async def explain(config: ServerConfig, question: AuthorizerAttributes) -> JSONObject:
    """Call the authorizers in order until one decides, and explain the decision."""
    answer: JSONObject = {"kind": "Why", "apiVersion": "kubetwist/v1", "asked": _describe_question(question)}
    decision: tuple[Any, Verdict] | None = None
    lines = answer["authorizers"] = []
    union = config.authorizer
    assert union is not None, "the authorizer is made before the servers"
    authorizers: Sequence[IAuthorizer] = union.authorizers if IAuthorizerUnion.providedBy(union) else [union]
    for authorizer in authorizers:
        verdict = await decide(authorizer, question)
        line = {"name": authorizer.name, "decision": verdict.decision.value}
        if verdict.reason:
            line["reason"] = verdict.reason
        if verdict.error:
            line["error"] = verdict.error
        lines.append(line)
        if verdict.decision is not Decision.NO_OPINION:
            decision = authorizer, verdict
            break
    answer["allowed"] = decision is not None and decision[1].decision is Decision.ALLOW
    if decision is not None:
        answer["decidedBy"] = decision[0].name
    if not answer["allowed"]:
        await _add_misses(config.reactor, authorizers, question, answer)
    elif decision is not None and IRuleExplainer.providedBy(decision[0]):
        found = decision[0].explain(question)
        if found is not None:
            answer["allowedBy"] = found
    return answer


async def _add_misses(
    reactor: IReactorTime, authorizers: Sequence[IAuthorizer], question: AuthorizerAttributes, answer: JSONObject
) -> None:
    """
    Add the user's grants, the nearest misses, and the command that grants access.

    @param reactor: Runs other calls between the slices in which the misses are computed.
    @param authorizers: The authorizers of the server.
    @param question: The attributes of the denied request.
    @param answer: The response; modified.
    """
    explainers: list[Any] = [one for one in authorizers if IGrantExplainer.providedBy(one)]
    for authorizer in explainers:
        answer.setdefault("grants", []).extend(
            {"authorizer": authorizer.name, **grant} for grant in authorizer.grants_of(question)
        )
    nearest: list[tuple[int, int, JSONObject]] = []
    number = count()
    remaining = MAX_RULES
    rule_explainers: list[Any] = [one for one in authorizers if IRuleExplainer.providedBy(one)]
    for authorizer in rule_explainers:
        misses: Iterator[tuple[int, JSONObject] | None] = authorizer.near_misses(question)
        while remaining > 0:
            done = True
            for _ in range(SLICE):
                found = next(misses, _END)
                if found is _END:
                    break
                if found is not None:
                    distance, miss = found
                    nearest.append((distance, next(number), {"authorizer": authorizer.name, **miss}))
            else:
                done = False
            nearest = nsmallest(MAX_MISSES, nearest)
            remaining -= SLICE
            if done:
                break
            await deferLater(reactor, 0, lambda: None)
    answer["nearMisses"] = [miss for _, _, miss in nearest]
    # Of the nearest roles, the one with the fewest rules grants least.
    remedies = [
        (distance, miss["remedy"]["rules"], miss["remedy"]["command"])
        for distance, _, miss in nearest
        if "remedy" in miss
    ]
    if remedies:
        answer["remedy"] = min(remedies)[2]
    elif explainers:
        answer["remedy"] = explainers[0].remedy(question)
    if remaining <= 0:
        answer["incomplete"] = f"only {MAX_RULES} rules were looked at"


_END: Final[Any] = object()


def _describe_question(question: AuthorizerAttributes) -> JSONObject:
    user = question.user
    described: JSONObject = {"user": user.name, "groups": list(user.groups), "verb": question.verb}
    if not question.is_resource_request:
        return {**described, "path": question.path}
    described |= {"apiGroup": question.group, "resource": question.resource}
    for name in ("subresource", "namespace", "name"):
        if getattr(question, name):
            described[name] = getattr(question, name)
    if question.field_terms:
        described["fieldSelector"] = [
            f"{field}{'=' if equal else '!='}{value}" for field, value, equal in question.field_terms
        ]
    if question.label_terms:
        described["labelSelector"] = list(map(str, question.label_terms))
    described["text"] = describe_attributes(question)
    return described


def _respond(answer: JSONObject, request: KubeRequest, text: bool) -> None:
    if text:
        request.respond(200, as_text(answer).encode(), TEXT)
    else:
        options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        request.respond(200, orjson.dumps(answer, option=options), JSON.encode())


def as_text(answer: JSONObject) -> str:
    """Format a response as text."""
    asked = answer["asked"]
    subject = asked.get("text") or f"{quoted(asked['verb'])} the path {quoted(asked['path'])}"
    may = "may" if answer["allowed"] else "may not"
    lines = [f"User {quoted(asked['user'])} with groups {quoted_list(asked['groups'])} {may} {subject}.", "", "Asked:"]
    width = max(len(one["name"]) for one in answer["authorizers"])
    for one in answer["authorizers"]:
        reason = one.get("reason") or one.get("error")
        lines.append(f"  {one['name']:{width}}  {one['decision']}{f': {reason}' if reason else ''}")
    allowed_by = answer.get("allowedBy")
    if allowed_by is not None:
        lines += ["", "Allowed by:"]
        lines += [f"  {name}: {_value(value)}" for name, value in allowed_by.items()]
    grants = answer.get("grants")
    if grants is not None:
        lines += ["", "The user has:"]
        lines += [f"  {grant['text']}" for grant in grants] or ["  nothing"]
    misses = answer.get("nearMisses")
    if misses:
        lines += ["", "Nearest misses:"]
        lines += [f"  {number}. {miss['why']}" for number, miss in enumerate(misses, 1)]
    elif misses is not None:
        lines += ["", "No rule comes near."]
    if "remedy" in answer:
        lines += ["", "To allow it:"]
        lines += [f"  {line}" for line in answer["remedy"].splitlines()]
    if "incomplete" in answer:
        lines += ["", f"There may be others: {answer['incomplete']}."]
    return "\n".join(lines) + "\n"


def _value(value: JSONValue) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_value(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return quoted_list(map(str, value))
    return quoted(value) if isinstance(value, str) else str(value)
