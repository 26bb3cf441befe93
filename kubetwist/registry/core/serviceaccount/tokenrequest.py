"""C{serviceaccounts/token}: creation of tokens."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

import orjson

from zope.interface import implementer

from ....api import times
from ....api.errors import APIStatusError
from ....api.go.quote import quoted
from ....api.options import CreateOptions
from ....api.requestscope import RequestScope
from ....api.resource import GroupResource, GroupVersionKind, JSONObject
from ....interfaces import INamedCreator
from ...generic import deletion
from ...generic.keys import check_key
from .tokens import EXTENDED_SECONDS, RENEWED_SECONDS, check_expiry, check_token_request, token_claims

if TYPE_CHECKING:
    from ...generic.store import Store
    from ..servercontext import ServerContext


TOKEN_REQUEST = GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest")
_NODE_BINDING: Final = "ServiceAccountTokenNodeBinding"
#: The kinds and resources of objects that tokens can be bound to.
BINDABLE = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


@implementer(INamedCreator)
class TokenRequests:
    """Storage of C{serviceaccounts/token}, which creates tokens with the L{TokenIssuer} of the server."""

    def __init__(self, accounts: Store, context: ServerContext) -> None:
        self._accounts = accounts
        self._stores = context.stores
        self._issuer = context.token_issuer
        self.info = accounts.info

    async def create_named(self, scope: RequestScope, name: str, obj: JSONObject, options: CreateOptions) -> JSONObject:
        """
        Create a token for a service account; see L{INamedCreator.create_named}.

        @param name: The name of the service account.
        @param obj: The C{TokenRequest}.
        @param options: The options of the request.
        @return: The C{TokenRequest} with the token.
        """
        self._accounts.check_namespace(scope, obj["metadata"])
        attributes = self._accounts.attributes("CREATE", scope, name, obj, None, options, "token", TOKEN_REQUEST)
        await self._accounts.admit(attributes)
        check_token_request(obj, name, scope.namespace)
        account = orjson.loads(self._accounts.existing(scope, name).item)
        meta, owner = obj["metadata"], account["metadata"]
        uid = self._uid(scope, name, meta.get("uid") or "", owner["uid"])
        issuer = self._issuer
        if issuer is None:
            raise APIStatusError.service_unavailable("no issuer of service account tokens is configured")
        spec = obj.get("spec") or {}
        audiences = spec.get("audiences") or list(issuer.audiences)
        requested_seconds = spec.get("expirationSeconds")
        seconds = 3600 if requested_seconds is None else int(requested_seconds)
        check_expiry(seconds)
        await self._accounts.admission.validate(attributes)
        reference = spec.get("boundObjectRef")
        bound = {} if reference is None else self._bound(scope.namespace, name, reference)
        now = times.utc_now()
        if issuer.max_seconds and seconds > issuer.max_seconds:
            scope.warn(f"requested expiration of {seconds} seconds shortened to {issuer.max_seconds} seconds")
            seconds = issuer.max_seconds
        extended = (
            issuer.extend and seconds == RENEWED_SECONDS and "pod" in bound and set(audiences) <= set(issuer.audiences)
        )
        claims = token_claims(
            account,
            bound,
            audiences,
            int(now.timestamp()),
            EXTENDED_SECONDS if extended else seconds,
            seconds if extended else 0,
        )
        if self._accounts.strategy.features.enabled("ServiceAccountTokenJTI"):
            scope.annotate("authentication.kubernetes.io/issued-credential-id", f"JTI={claims['jti']}", "Metadata")
        else:
            del claims["jti"]
        metadata = {**meta, **{field: owner[field] for field in ("name", "namespace")}}
        metadata.pop("uid", None)
        if uid:
            metadata["uid"] = uid
        metadata["creationTimestamp"] = deletion.timestamp(now)
        return {
            "metadata": metadata,
            "spec": {"audiences": list(audiences), "expirationSeconds": seconds, "boundObjectRef": reference},
            "status": {
                "token": issuer.sign(claims),
                "expirationTimestamp": deletion.timestamp(now + timedelta(seconds=seconds)),
            },
        }

    def _uid(self, scope: RequestScope, name: str, requested: str, uid: str) -> str:
        """
        Return the uid in the response: C{""} in releases before 1.34, which ignore the requested one.

        @param name: The name of the service account.
        @param requested: The uid in the request; C{""} without one.
        @param uid: The uid of the service account.
        @raise APIStatusError: They differ (409).
        """
        features = self._accounts.strategy.features
        if not features.since(1, 34):
            return ""
        if not requested or requested == uid:
            return uid
        reason = f"the UID in the token request ({requested}) does not match the UID of the service account ({uid})"
        gate = "TokenRequestServiceAccountUIDValidation"
        if features.enabled(gate):
            raise APIStatusError.conflict(GroupResource("authentication.k8s.io", "TokenRequest"), name, reason)
        scope.annotate("authentication.k8s.io/token-request-uid-mismatch", reason, "Metadata")
        scope.warn(f"{reason} but {gate} is not enabled. In the future, this will return a conflict error")
        return requested

    def _bound(self, namespace: str, account: str, reference: JSONObject) -> dict[str, JSONObject]:
        """
        Return the object that a token is bound to, and the node of a pod.

        @raise APIStatusError: The object does not exist (404), its uid differs (409), or it cannot be bound (400).
        """
        kind, name = reference.get("kind") or "", reference.get("name") or ""
        group, _, version = (reference.get("apiVersion") or "").rpartition("/")
        resource = BINDABLE.get(kind) if not group else None
        if resource is None:
            group_version = f"{group}/{version}" if group else f"/{version}"
            raise APIStatusError.bad_request(f"cannot bind token to object of type {group_version}, Kind={kind}")
        features = self._accounts.strategy.features
        if kind == "Node" and not features.enabled(_NODE_BINDING):
            text = f"cannot bind token to a Node object as the {quoted(_NODE_BINDING)} feature-gate is disabled"
            raise APIStatusError.bad_request(text)
        check_key(name)
        target = self._stores.get_copy("", resource, namespace if kind != "Node" else "", name)
        if target is None:
            raise APIStatusError.not_found(GroupResource("", resource), name)
        bound = {kind.lower(): target}
        if kind == "Pod":
            if target["spec"].get("serviceAccountName") != account:
                reason = (
                    f'cannot bind token for serviceaccount "{account}" to pod running with different '
                    "serviceaccount name."
                )
                raise APIStatusError.bad_request(reason)
            node = target["spec"].get("nodeName")
            if node and features.enabled("ServiceAccountTokenPodNodeInfo"):
                existing_node = self._stores.get_copy("", "nodes", "", node)
                bound["node"] = existing_node or {"metadata": {"name": node, "uid": ""}}
        uid, expected = target["metadata"]["uid"], reference.get("uid")
        if expected and expected != uid:
            reason = (
                f"the UID in the bound object reference ({expected}) does not match the UID in record. "
                "The object might have been deleted and then recreated"
            )
            raise APIStatusError.conflict(GroupResource(group, kind), name, reason)
        return bound
