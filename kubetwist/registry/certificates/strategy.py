"""CertificateSigningRequests."""

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
    """certificates.k8s.io/v1 CertificateSigningRequest; who asks is written into it by the store."""

    metadata_update_rules: Sequence[Rule] = ("whole", "compare")
    status_metadata_update_rules: Sequence[Rule] = ("whole", "compare")
    has_status = True
    status_protects = ()

    def validate_name(self, name: str, prefix: bool) -> Sequence[str]:
        """A part of a path."""
        return validate_path_segment_name(name, prefix)

    def default(self, obj: JSONObject) -> None:
        """C{spec} is a struct in Go: always there."""
        obj.setdefault("spec", {})

    def reset_status(self, obj: JSONObject) -> None:
        """Neither approved nor signed."""
        obj["status"] = {}

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """A request stays what it was; only its metadata change here."""
        super().prepare_for_update(obj, old)
        obj["spec"] = old["spec"]

    def prepare_for_status_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Approval and denial are another subresource's."""
        super().prepare_for_status_update(obj, old)
        status = obj.setdefault("status", {})
        conditions = list(status.get("conditions") or ())
        for kind in validation.VERDICTS:
            # Those that come or go are left for validation to refuse.
            held = [one for one in validation.approvals(old) if one.get("type") == kind]
            places = [place for place, one in enumerate(conditions) if one.get("type") == kind]
            if len(places) == len(held):
                for place, one in zip(places, held, strict=True):
                    conditions[place] = one
        _set_conditions(status, conditions, old)

    def prepare_for_creator(self, obj: JSONObject, user: UserInfo) -> None:
        """A request says whose it is, whatever its body says."""
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
        """Take nothing but the conditions from C{obj}."""
        conditions = list((obj.get("status") or {}).get("conditions") or ())
        super().prepare_for_status_update(obj, old)
        obj["status"] = dict(old.get("status") or {})
        _set_conditions(obj["status"], conditions, old)

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """A signer, and a request that can be read."""
        return validation.validate_request(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """The spec was checked when it came."""
        return validation.validate_request_update(obj, old)

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """A certificate, and no verdict."""
        return validation.validate_request_status_update(obj, old)

    def validate_approval(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """A verdict, and no certificate."""
        return validation.validate_approval_update(obj, old)


def _set_conditions(status: JSONObject, conditions: list[JSONObject], old: JSONObject) -> None:
    """A change of a condition is as new as the server says."""
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
