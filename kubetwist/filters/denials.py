"""Log denied requests: the request and the reason, within rate limits."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from twisted.logger import Logger

from ..api.authorization import AuthorizerAttributes, Verdict
from ..api.go.quote import quoted
from ..api.rbacrules import quoted_list
from ..api.resource import GroupResource
from ..http.request import KubeRequest
from ..logs.ratelimit import RateLimiter, RepeatFilter
from ..logs.verbosity import DEBUG

_ANONYMOUS: Final = "system:anonymous"
#: Seconds during which the same denial is not logged again.
_REPEAT_INTERVAL: Final = 60.0
_CONTROL: Final = re.compile("[\x00-\x1f\x7f\x85\u2028\u2029]")


class DenialLog:
    """
    Log of denied requests, with rate limits.

    A client that polls a path it may not read, such as a probe of /readyz without credentials, is logged once a minute.
    Denials of anonymous clients are logged with C{-v=4} only, as kube-apiserver logs all denials.

    @see: kubernetes/apiserver, C{pkg/endpoints/filters/authorization.go}.
    """

    _log = Logger()

    def __init__(self, now: Callable[[], float]) -> None:
        """@param now: Returns the seconds of a monotonic clock."""
        self._now = now
        self._repeated = RepeatFilter(_REPEAT_INTERVAL)
        self._limiter = RateLimiter(self._report)

    def log(self, request: KubeRequest, attributes: AuthorizerAttributes, verdict: Verdict) -> None:
        """
        Log that C{verdict} denies C{attributes} to the client of C{request}, unless the line repeats earlier ones.
        """
        user, now, target = attributes.user, self._now(), describe_attributes(attributes)
        if not self._repeated.is_new((user.name, target), now) or not self._limiter.allow(now):
            return
        self._log.info(
            "forbidden ({audit_id}): nothing allows user {user} with groups {groups} to {target}{reason}",
            audit_id=request.audit_id,
            user=quoted(user.name),
            groups=quoted_list(user.groups),
            target=target,
            reason=f" ({_on_one_line(verdict.reason)})" if verdict.reason else "",
            verbosity=DEBUG if user.name == _ANONYMOUS else 0,
        )

    def _report(self, count: int) -> None:
        self._log.warn("rate limit: {count} denied requests were not logged", count=count)


def describe_attributes(attributes: AuthorizerAttributes) -> str:
    """Describe a request: verb, resource with subresource, name and scope; or verb and path."""
    if not attributes.is_resource_request:
        return f"{quoted(attributes.verb)} the path {quoted(attributes.path)}"
    resource = str(GroupResource(attributes.group, attributes.resource))
    if attributes.subresource:
        resource += f"/{attributes.subresource}"
    name = f" named {quoted(attributes.name)}" if attributes.name else ""
    scope = f"in the namespace {quoted(attributes.namespace)}" if attributes.namespace else "cluster-wide"
    return f"{quoted(attributes.verb)} the resource {quoted(resource)}{name} {scope}"


def _on_one_line(text: str) -> str:
    # Reasons of several authorizers may contain user names: they must not begin a new line of the log.
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text.replace("\n", "; "))
