"""Strategy of CertificateSigningRequests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...api.errors import FieldError
from ...api.names import validate_path_segment_name
from ...api.objectmeta import Rule
from ...api.resource import JSONObject, UserInfo
from ...api.times import now
from ..generic.strategy import Strategy
from . import validation


class CertificateSigningRequestStrategy(Strategy):
    """certificates.k8s.io/v1 CertificateSigningRequest; the store sets the requesting user."""

    metadata_update_rules: Sequence[Rule] = ("whole", "compare")
    status_metadata_update_rules: Sequence[Rule] = ("whole", "compare")
    has_status = True
    status_protects = ()

    def validate_name(self, name: str, prefix: bool) -> Sequence[str]:
        """Validate a path segment."""
        return validate_path_segment_name(name, prefix)

    def default(self, obj: JSONObject) -> None:
        """Add C{spec}, a struct in Go that is always encoded."""
        obj.setdefault("spec", {})

    def reset_status(self, obj: JSONObject) -> None:
        """Clear the status: neither approved nor signed."""
        obj["status"] = {}

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Keep the spec and status; only metadata may change."""
        super().prepare_for_update(obj, old)
        obj["spec"] = old["spec"]

    def prepare_for_status_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Keep the spec and the approval conditions, which the subresource C{approval} changes."""
        super().prepare_for_status_update(obj, old)
        status = obj.setdefault("status", {})
        conditions = list(status.get("conditions") or ())
        for kind in validation.VERDICTS:
            # Validation rejects added and removed approval conditions.
            stored = [one for one in validation.approval_conditions(old) if one.get("type") == kind]
            places = [place for place, one in enumerate(conditions) if one.get("type") == kind]
            if len(places) == len(stored):
                for place, one in zip(places, stored, strict=True):
                    conditions[place] = one
        _set_conditions(status, conditions, old)

    def prepare_for_creator(self, obj: JSONObject, user: UserInfo) -> None:
        """Set the requesting user in the spec, replacing values from the client."""
        spec = obj.setdefault("spec", {})
        for name in ("username", "uid", "groups", "extra"):
            spec.pop(name, None)
        spec["username"] = user.name
        if user.uid:
            spec["uid"] = user.uid
        if user.groups:
            spec["groups"] = list(user.groups)
        if user.extra:
            spec["extra"] = {name: list(values) for name, values in user.extra.items()}

    def prepare_for_approval(self, obj: JSONObject, old: JSONObject) -> None:
        """Keep everything except for the conditions."""
        conditions = list((obj.get("status") or {}).get("conditions") or ())
        super().prepare_for_status_update(obj, old)
        obj["status"] = dict(old.get("status") or {})
        _set_conditions(obj["status"], conditions, old)

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate the signer name and the request."""
        return validation.validate_request(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the conditions and the certificate; the spec is immutable."""
        return validation.validate_request_update(obj, old)

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate a certificate; approval conditions must not change."""
        return validation.validate_request_status_update(obj, old)

    def validate_approval(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate approval conditions; the certificate must not change."""
        return validation.validate_approval_update(obj, old)


def _set_conditions(status: JSONObject, conditions: list[JSONObject], old: JSONObject) -> None:
    """Set the conditions, and their times where the client did not; a kept status keeps its transition time."""
    before = {one.get("type"): one for one in (old.get("status") or {}).get("conditions") or ()}
    for condition in conditions:
        earlier = before.get(condition.get("type"))
        if condition.get("lastUpdateTime") is None:
            condition["lastUpdateTime"] = now()
        if condition.get("lastTransitionTime") is None:
            same = earlier is not None and earlier.get("status") == condition.get("status")
            condition["lastTransitionTime"] = (earlier.get("lastTransitionTime") if same and earlier else None) or now()
    if conditions:
        status["conditions"] = conditions
    else:
        status.pop("conditions", None)


STRATEGIES: Final[Mapping[str, Strategy]] = {"CertificateSigningRequest": CertificateSigningRequestStrategy()}
