"""CustomResourceDefinitions, as objects; what they define is served elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...api.resource import JSONObject
from ..strategy import Strategy


class CustomResourceDefinitionStrategy(Strategy):
    """apiextensions.k8s.io/v1 CustomResourceDefinition."""

    has_generation = True
    has_status = True
    allow_unconditional_update = False
    delete_returns_object = True
    status_protects = ()
    standard_finalizers = False

    def default(self, obj: JSONObject) -> None:
        """See C{apiextensions-apiserver/pkg/apis/apiextensions/v1/defaults.go}."""
        spec = obj.setdefault("spec", {})
        names = spec.setdefault("names", {})
        kind = names.get("kind")
        if kind:
            if not names.get("singular"):
                names["singular"] = kind.lower()
            if not names.get("listKind"):
                names["listKind"] = f"{kind}List"
        if spec.get("conversion") is None:
            spec["conversion"] = {"strategy": "None"}
        webhook = spec["conversion"].get("webhook") or {}
        service = (webhook.get("clientConfig") or {}).get("service")
        if service is not None and service.get("port") is None:
            service["port"] = 443

    def reset_status(self, obj: JSONObject) -> None:
        """Nothing is accepted or stored yet but the version that objects will be stored in."""
        stored = [one["name"] for one in obj["spec"].get("versions") or () if one.get("storage") and one.get("name")]
        obj["status"] = {
            "conditions": None,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": stored or None,
        }

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """A new storage version is remembered with those before it."""
        super().prepare_for_update(obj, old)
        status = obj.get("status")
        if status is None:
            return
        stored = list(status.get("storedVersions") or ())
        for version in obj["spec"].get("versions") or ():
            if version.get("storage") and version.get("name") not in stored:
                stored.append(version["name"])
        obj["status"] = {**status, "storedVersions": stored or None}


STRATEGIES: Final[Mapping[str, Strategy]] = {"CustomResourceDefinition": CustomResourceDefinitionStrategy()}
