"""ConfigMaps, Secrets, ServiceAccounts, LimitRanges, ResourceQuotas: what is configured rather than run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....api.errors import Cause
from ....api.objectmeta import Rule
from ....api.resource import JSONObject
from ...generic.strategy import Strategy
from ...generic.validation.tlspairs import tls_problem
from ..pod.defaults import round_up
from . import validation as config

#: Has pods of an account use the secrets only that it names.
_ENFORCE: Final = "kubernetes.io/enforce-mountable-secrets"


class ConfigMapStrategy(Strategy):
    """v1 ConfigMap."""

    metadata_update_rules: Sequence[Rule] = ("compare", "whole")

    def validate(self, obj: JSONObject) -> Sequence[Cause]:
        """Keys and size."""
        return config.validate_config_map(obj)

    def compares_empties(self, old: JSONObject) -> bool:
        """Return whether the data are immutable, and so compared as they are (C{reflect.DeepEqual})."""
        return bool(old.get("immutable"))

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[Cause]:
        """What is marked immutable stays."""
        return config.validate_config_map_update(obj, old)


class SecretStrategy(Strategy):
    """v1 Secret."""

    metadata_update_rules: Sequence[Rule] = ("compare", "whole")

    def default(self, obj: JSONObject) -> None:
        """C{stringData} is for writing only; C{data} holds the same in base64."""
        strings = obj.pop("stringData", None)
        if strings:
            data = obj.get("data")
            if data is None:
                data = obj["data"] = {}
            data.update(config.encoded(strings))
        if not obj.get("type"):
            obj["type"] = "Opaque"

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """A type that is left out stays as it was."""
        if not obj.get("type"):
            obj["type"] = old.get("type", "Opaque")

    def validate(self, obj: JSONObject) -> Sequence[Cause]:
        """Keys, size, and what the type asks for."""
        return config.validate_secret(obj)

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """A certificate that no server could use."""
        if obj.get("type") != "kubernetes.io/tls":
            return ()
        problem = tls_problem(obj.get("data") or {})
        return (problem,) if problem else ()

    def compares_empties(self, old: JSONObject) -> bool:
        """Return whether the data are immutable, and so compared as they are (C{reflect.DeepEqual})."""
        return bool(old.get("immutable"))

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[Cause]:
        """The type stays, and what is marked immutable."""
        return config.validate_secret_update(obj, old)


class ServiceAccountStrategy(Strategy):
    """v1 ServiceAccount."""

    metadata_update_rules: Sequence[Rule] = ("compare", "whole")
    delete_returns_object = True

    def prepare_for_create(self, obj: JSONObject) -> None:
        """Of secrets, which are in the account's namespace, the name stays."""
        if obj.get("secrets"):
            obj["secrets"] = [{"name": secret["name"]} if secret.get("name") else {} for secret in obj["secrets"]]

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Likewise."""
        super().prepare_for_update(obj, old)
        self.prepare_for_create(obj)

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Of an annotation that is on its way out, when it comes new."""
        if _ENFORCE not in (obj["metadata"].get("annotations") or {}):
            return ()
        if old is not None and _ENFORCE in (old["metadata"].get("annotations") or {}):
            return ()
        why = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
        return (f"metadata.annotations[{_ENFORCE}]: {why}",)


class LimitRangeStrategy(Strategy):
    """v1 LimitRange."""

    metadata_update_rules: Sequence[Rule] = ("whole",)
    allow_create_on_update = True

    def default(self, obj: JSONObject) -> None:
        """For containers, limits default to maxima, and requests to limits or else to minima."""
        spec = obj.setdefault("spec", {})
        spec.setdefault("limits", None)
        for item in spec["limits"] or ():
            for name in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
                round_up(item.get(name))
            if item.get("type") != "Container":
                continue
            limits = item.get("default") or {}
            for name, quantity in (item.get("max") or {}).items():
                limits.setdefault(name, quantity)
            requests = item.get("defaultRequest") or {}
            for name, quantity in limits.items():
                requests.setdefault(name, quantity)
            for name, quantity in (item.get("min") or {}).items():
                requests.setdefault(name, quantity)
            if limits:
                item["default"] = limits
            if requests:
                item["defaultRequest"] = requests

    def prepare_for_create(self, obj: JSONObject) -> None:
        """A limit range without a name gets one."""
        if not obj["metadata"].get("name"):
            from uuid import uuid4

            obj["metadata"]["name"] = str(uuid4())

    def validate(self, obj: JSONObject) -> Sequence[Cause]:
        """The limits agree with each other."""
        return config.validate_limit_range(obj)


class ResourceQuotaStrategy(Strategy):
    """v1 ResourceQuota."""

    has_status = True
    status_protects = ()
    delete_returns_object = True

    def default(self, obj: JSONObject) -> None:
        """C{spec} is a struct in Go: always there."""
        round_up(obj.setdefault("spec", {}).get("hard"))
        status = obj.get("status") or {}
        for name in ("hard", "used"):
            round_up(status.get(name))

    def reset_status(self, obj: JSONObject) -> None:
        """Nothing is counted yet."""
        obj["status"] = {}

    def validate(self, obj: JSONObject) -> Sequence[Cause]:
        """Resources and scopes that exist."""
        return config.validate_resource_quota(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[Cause]:
        """The scopes stay."""
        return config.validate_resource_quota_update(obj, old)

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[Cause]:
        """Quantities."""
        return config.validate_resource_quota_status(obj)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "ConfigMap": ConfigMapStrategy(),
    "Secret": SecretStrategy(),
    "ServiceAccount": ServiceAccountStrategy(),
    "LimitRange": LimitRangeStrategy(),
    "ResourceQuota": ResourceQuotaStrategy(),
}
