"""
The filter chain of the server (Go: C{DefaultBuildHandlerChain}).

A filter takes the next handler and returns one that runs before it. A request passes the filters of
L{build_handler_chain} from its last line to its first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from twisted.internet.interfaces import IReactorTime

from ..api.featuregates import FeatureGates
from ..authentication.requestheader import RequestHeaderConfig
from ..http.request import Handler
from ..interfaces import (
    IAuthenticator,
    IAuthorizer,
)
from .audit import with_audit
from .auditid import with_audit_id
from .authentication import with_authentication
from .authorization import with_authorization
from .bodies import (
    by_head,
    with_body,
)
from .cachecontrol import with_cache_control
from .deadline import with_deadline
from .denials import DenialLog
from .impersonation import with_impersonation
from .latencytrackers import with_latency_trackers
from .panicrecovery import with_panic_recovery
from .requestinfo import with_request_info

if TYPE_CHECKING:
    from ..audit.auditor import Auditor
    from ..metrics.requests import RequestMetrics
    from .consistency import ConsistentReadFilter
    from .tracing import RequestTracing


#: The features of a server of the default release.
_DEFAULT_FEATURES: Final = FeatureGates()


def build_handler_chain(
    handler: Handler,
    *,
    reactor: IReactorTime,
    authenticator: IAuthenticator,
    authorizer: IAuthorizer,
    request_timeout: float = 60.0,
    proxy_headers: RequestHeaderConfig | None = None,
    features: FeatureGates = _DEFAULT_FEATURES,
    auditor: Auditor | None = None,
    metrics: RequestMetrics | None = None,
    limit: Callable[[Handler], Handler] | None = None,
    consistency: ConsistentReadFilter | None = None,
    memory: Callable[[Handler], Handler] | None = None,
    tracing: RequestTracing | None = None,
) -> Handler:
    """
    Return C{handler} with all filters in front of it.

    @param handler: Routes requests.
    @param reactor: Schedules timeouts.
    @param authenticator: Returns the user of a request.
    @param authorizer: Decides whether a request is allowed.
    @param request_timeout: Seconds for requests that are not long-running.
    @param proxy_headers: Names of the headers of authenticating proxies, if not the default ones.
    @param features: The feature gates and the release of the server.
    @param limit: Wraps a handler with priority and fairness.
    @param consistency: Delays requests until this server's caches are as new as the storage; L{None} for a single
        server.
    @param memory: Wraps a handler with the memory limit; L{None} without one.
    @param metrics: Counts requests; the site reports their end.
    @param tracing: Creates spans for requests; the site reports their end.
    @param auditor: Audits requests, which are L{AuditedRequest<kubetwist.audit.auditedrequest.AuditedRequest>}s then.
    """

    def timed(name: str, handler: Handler, *, in_both_chains: bool = False) -> Handler:
        return handler if tracing is None else tracing.mark_filter_done(name, handler, in_both_chains=in_both_chains)

    denials = DenialLog(reactor.seconds)
    handler = with_latency_trackers(handler)
    if metrics is not None:
        handler = metrics.after_authorization(handler)
    authorized = handler
    authorization = partial(
        with_authorization,
        authorizer=authorizer,
        denials=denials,
        creates_streams=features.enabled("AuthorizePodWebsocketUpgradeCreatePermission"),
    )
    handler = authorization(timed("authorization", handler))
    if consistency is not None:
        handler = consistency.wrap(timed("consistency", handler))
    if limit is not None:
        handler = limit(timed("priorityandfairness", handler))
        authorized = limit(timed("priorityandfairness", authorized, in_both_chains=True))
    # Refused requests need no body, and waiting for a body needs no seat.
    early = authorization(timed("authorization", with_body(authorized), in_both_chains=True))
    if consistency is not None:
        early = consistency.wrap(timed("consistency", early, in_both_chains=True))
    handler = by_head(handler, early)
    if memory is not None:
        handler = memory(handler)
    constrained = features.enabled("ConstrainedImpersonation")
    impersonation = "constrainedimpersonation" if constrained else "impersonation"
    counted = None if metrics is None else metrics.impersonations
    handler = with_impersonation(timed(impersonation, handler), authorizer, features, denials, counted)
    if auditor is not None:
        handler = with_audit(timed("audit", handler), auditor)
    if tracing is not None:
        handler = tracing.after_authentication(handler)
    handler = with_authentication(handler, authenticator, (proxy_headers or RequestHeaderConfig()).reserved_headers())
    if consistency is not None:
        handler = consistency.before_authentication(handler)
    handler = with_deadline(handler, reactor, request_timeout)
    handler = with_cache_control(handler)
    handler = with_request_info(handler, features.enabled("AuthorizeWithSelectors"))
    handler = with_panic_recovery(handler)
    handler = with_audit_id(handler)
    if tracing is not None:
        handler = tracing.clear_context(handler)
    return handler
