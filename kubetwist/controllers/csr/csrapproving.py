"""
Approves CSRs of kubelets for client certificates if the requester is authorized.

Other CSRs need manual approval.

@see: kubernetes, C{pkg/controller/certificates/approver/sarapprove.go}.
"""

from __future__ import annotations

from typing import ClassVar, Final

from ...admission.decisions import decide
from ...api.authorization import (
    AuthorizerAttributes,
    Decision,
)
from ...api.resource import (
    JSONObject,
    UserInfo,
)
from ...api.times import format_time
from ...registry.stores import decoded_object
from ..machinery.controller import Controller
from .requests import (
    GROUP,
    KUBELET_CLIENT,
    REQUESTS,
    InvalidCSR,
    check_kubelet_client,
    common_name,
    has_certificate,
    has_condition,
    parse_request,
)

#: Seconds until authorization is checked again.
RETRY: Final = 60.0


class CSRApprovingController(Controller[str]):
    """Approves CSRs by authorization. Keys are the names of CSRs."""

    name: ClassVar[str] = "certificatesigningrequest-approving-controller"
    service_account: ClassVar[str] = "certificate-controller"
    workers: ClassVar[int] = 5

    def register_handlers(self) -> None:
        """Register a handler for CSRs."""
        self._requests = self.watch(GROUP, REQUESTS)

    async def sync(self, key: str) -> None:
        """See L{Controller.sync}."""
        record = self._requests.by_key(key)
        if record is None:
            return
        obj = decoded_object(record)
        spec = obj["spec"]
        if spec.get("signerName") != KUBELET_CLIENT or has_certificate(obj):
            return
        if has_condition(obj, "Approved") or has_condition(obj, "Denied"):
            return
        try:
            request = parse_request(obj)
            check_kubelet_client(request, spec.get("usages") or ())
        except (InvalidCSR, ValueError):
            return
        own = spec.get("username") == common_name(request)
        if own and await self._is_authorized(spec, "selfnodeclient"):
            message = "Auto approving self kubelet client certificate after SubjectAccessReview."
        elif await self._is_authorized(spec, "nodeclient"):
            message = "Auto approving kubelet client certificate after SubjectAccessReview."
        else:
            self.queue.add_after(key, RETRY)
            return

        def change(new: JSONObject) -> None:
            new.setdefault("status", {}).setdefault("conditions", []).append(
                {
                    "type": "Approved",
                    "status": "True",
                    "reason": "AutoApproved",
                    "message": message,
                    "lastUpdateTime": format_time(self.clock.seconds()),
                }
            )

        await self.client.update(GROUP, REQUESTS, "", key, change, subresource="approval", revision=record.revision)

    async def _is_authorized(self, spec: JSONObject, subresource: str) -> bool:
        """Return whether the requester is authorized for automatic approval."""
        authorizer = self.context.registry.context.authorizer
        if authorizer is None:
            return False
        user = UserInfo(
            spec.get("username") or "",
            uid=spec.get("uid") or "",
            groups=tuple(spec.get("groups") or ()),
            extra={name: tuple(values) for name, values in (spec.get("extra") or {}).items()},
        )
        question = AuthorizerAttributes(
            user, "create", group=GROUP, version="*", resource=REQUESTS, subresource=subresource
        )
        verdict = await decide(authorizer, question)
        return verdict.decision is Decision.ALLOW
