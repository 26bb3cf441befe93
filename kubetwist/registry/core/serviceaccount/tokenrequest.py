"""C{serviceaccounts/token}: issues a token."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import orjson

from zope.interface import implementer

from ....api import times
from ....api.errors import APIStatusError
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
#: What tokens can end with, by kind.
BINDABLE = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


@implementer(INamedCreator)
class TokenRequests:
    """C{serviceaccounts/token}: tokens for an account, signed by the server's L{TokenIssuer}."""

    def __init__(self, accounts: Store, context: ServerContext) -> None:
        self._accounts = accounts
        self._stores = context.stores
        self._issuer = context.token_issuer
        self.info = accounts.info

    async def create_named(self, scope: RequestScope, name: str, obj: JSONObject, options: CreateOptions) -> JSONObject:
        """See L{INamedCreator.create_named}."""
        self._accounts.check_namespace(scope, obj["metadata"])
        attributes = self._accounts.attributes("CREATE", scope, name, obj, None, options, "token", TOKEN_REQUEST)
        await self._accounts.admit(attributes)
        check_token_request(obj, name, scope.namespace)
        account = orjson.loads(self._accounts.existing(scope, name).item)
        meta, owner = obj["metadata"], account["metadata"]
        if meta.get("uid") and meta["uid"] != owner["uid"]:
            why = (
                f"the UID in the token request ({meta['uid']}) does not match the UID of the service account"
                f" ({owner['uid']})"
            )
            raise APIStatusError.conflict(GroupResource("authentication.k8s.io", "TokenRequest"), name, why)
        issuer = self._issuer
        if issuer is None:
            raise APIStatusError.service_unavailable("no issuer of service account tokens is configured")
        spec = obj.get("spec") or {}
        audiences = spec.get("audiences") or list(issuer.audiences)
        asked = spec.get("expirationSeconds")
        seconds = 3600 if asked is None else int(asked)
        check_expiry(seconds)
        await self._accounts.admission.validate(attributes)
        reference = spec.get("boundObjectRef")
        bound = {} if reference is None else self._bound(scope.namespace, name, reference)
        now = times.utc_now()
        if issuer.longest and seconds > issuer.longest:
            scope.warn(f"requested expiration of {seconds} seconds shortened to {issuer.longest} seconds")
            seconds = issuer.longest
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
        scope.annotate("authentication.kubernetes.io/issued-credential-id", f"JTI={claims['jti']}", "Metadata")
        shown = {**meta, **{field: owner[field] for field in ("name", "namespace", "uid")}}
        shown["creationTimestamp"] = deletion.timestamp(now)
        return {
            "metadata": shown,
            "spec": {"audiences": list(audiences), "expirationSeconds": seconds, "boundObjectRef": reference},
            "status": {
                "token": issuer.sign(claims),
                "expirationTimestamp": deletion.timestamp(now + timedelta(seconds=seconds)),
            },
        }

    def _bound(self, namespace: str, account: str, reference: JSONObject) -> dict[str, JSONObject]:
        """
        The object that a token ends with, and the node of a pod.

        @raise APIStatusError: There is no such object (404), its uid differs (409), or it cannot be bound (400).
        """
        kind, name = reference.get("kind") or "", reference.get("name") or ""
        group, _, version = (reference.get("apiVersion") or "").rpartition("/")
        resource = BINDABLE.get(kind) if not group else None
        if resource is None:
            shown = f"{group}/{version}" if group else f"/{version}"
            raise APIStatusError.bad_request(f"cannot bind token to object of type {shown}, Kind={kind}")
        check_key(name)
        found = self._stores.get_copy("", resource, namespace if kind != "Node" else "", name)
        if found is None:
            raise APIStatusError.not_found(GroupResource("", resource), name)
        bound = {kind.lower(): found}
        if kind == "Pod":
            if found["spec"].get("serviceAccountName") != account:
                why = (
                    f'cannot bind token for serviceaccount "{account}" to pod running with different '
                    "serviceaccount name."
                )
                raise APIStatusError.bad_request(why)
            node = found["spec"].get("nodeName")
            if node:
                known = self._stores.get_copy("", "nodes", "", node)
                bound["node"] = known or {"metadata": {"name": node, "uid": ""}}
        uid, wanted = found["metadata"]["uid"], reference.get("uid")
        if wanted and wanted != uid:
            why = (
                f"the UID in the bound object reference ({wanted}) does not match the UID in record. "
                "The object might have been deleted and then recreated"
            )
            raise APIStatusError.conflict(GroupResource(group, kind), name, why)
        return bound
