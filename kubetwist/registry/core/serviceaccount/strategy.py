"""Strategy of ServiceAccounts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....api.objectmeta import Rule
from ....api.resource import JSONObject
from ...generic.strategy import Strategy

#: The annotation that restricts the pods of an account to its secrets.
_ENFORCE: Final = "kubernetes.io/enforce-mountable-secrets"


class ServiceAccountStrategy(Strategy):
    """Strategy of v1 ServiceAccount."""

    metadata_update_rules: Sequence[Rule] = ("compare", "whole")
    delete_returns_object = True

    def prepare_for_create(self, obj: JSONObject) -> None:
        """Reduce references to secrets to their names."""
        if obj.get("secrets"):
            obj["secrets"] = [{"name": secret["name"]} if secret.get("name") else {} for secret in obj["secrets"]]

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Reduce references to secrets to their names."""
        super().prepare_for_update(obj, old)
        self.prepare_for_create(obj)

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Return a warning if a deprecated annotation is added."""
        if _ENFORCE not in (obj["metadata"].get("annotations") or {}):
            return ()
        if old is not None and _ENFORCE in (old["metadata"].get("annotations") or {}):
            return ()
        reason = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
        return (f"metadata.annotations[{_ENFORCE}]: {reason}",)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "ServiceAccount": ServiceAccountStrategy(),
}
