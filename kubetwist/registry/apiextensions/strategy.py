"""Strategy of CustomResourceDefinitions as objects; L{kubetwist.resources.customresources} serves their resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from ...api.errors import FieldError
from ...api.names import ValidateNameFunc
from ...api.resource import JSONObject
from ...schema.nodes import StructNode
from ..generic.gatedstrategy import GatedStrategy
from ..generic.gates import ITEMS, GatedField, field_at, fields_of, not_empty
from ..generic.strategy import Strategy
from .validation.definition import (
    coerce_default_metadata,
    schema_warnings,
    validate_crd,
    validate_crd_name,
    validate_crd_status,
)

_SELECTABLE: Final = field_at("spec", "versions", ITEMS, "selectableFields")
_FIELDS: Final = (GatedField(gate="CustomResourceFieldSelectors", find=_SELECTABLE, in_use=not_empty(_SELECTABLE)),)
_STATUS: Final = (
    GatedField(
        gate="CRDObservedGenerationTracking",
        find=fields_of(
            field_at("status", "observedGeneration"), field_at("status", "conditions", ITEMS, "observedGeneration")
        ),
    ),
)


class CustomResourceDefinitionStrategy(GatedStrategy):
    """apiextensions.k8s.io/v1 CustomResourceDefinition."""

    has_generation = True
    untyped = True
    has_status = True
    allow_unconditional_update = False
    delete_returns_object = True
    status_protects = ()
    standard_finalizers = False
    gated_fields = _FIELDS
    gated_status_fields = _STATUS

    def __init__(self, object_meta: StructNode | None = None) -> None:
        """@param object_meta: The type of C{metadata}, for defaults in schemas."""
        self._object_meta = object_meta
        super().__init__()

    def name_validator(self, obj: JSONObject) -> ValidateNameFunc:
        """Return the validation of the name, which must be C{<plural>.<group>}."""
        return partial(validate_crd_name, obj)

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """See L{validate_crd}; as in the reference, validation removes unknown metadata from defaults."""
        return self._coerced(obj, validate_crd(obj, None, self._object_meta))

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate a change; see L{validate_crd}."""
        return self._coerced(obj, validate_crd(obj, old, self._object_meta))

    def _coerced(self, obj: JSONObject, errors: Sequence[FieldError]) -> Sequence[FieldError]:
        if not errors and self._object_meta is not None:
            coerce_default_metadata(obj, self._object_meta)
        return errors

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the accepted names."""
        return validate_crd_status(obj)

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Return warnings for new formats that are not validated; since 1.34."""
        if not self.features.since(1, 34):
            return ()
        known = frozenset(schema_warnings(old)) if old is not None else ()
        return [text for text in schema_warnings(obj) if text not in known]

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
        status = obj.get("status")
        if status is None or not status.get("storedVersions"):
            stored = [one["name"] for one in spec.get("versions") or () if one.get("storage") and one.get("name")]
            if stored:
                obj["status"] = {**(status or {}), "storedVersions": stored[:1]}
        webhook = spec["conversion"].get("webhook") or {}
        if webhook.get("clientConfig") is None and not webhook.get("conversionReviewVersions"):
            # The internal type has these two fields only.
            spec["conversion"].pop("webhook", None)
        service = (webhook.get("clientConfig") or {}).get("service")
        if service is not None and service.get("port") is None:
            service["port"] = 443

    def reset_status(self, obj: JSONObject) -> None:
        """Set the status of a new CRD: its storage version is the only stored version."""
        stored = [one.get("name") or "" for one in obj["spec"].get("versions") or () if one.get("storage")]
        obj["status"] = {
            "conditions": None,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": stored[:1] or None,
        }

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Add a new storage version to C{status.storedVersions}."""
        super().prepare_for_update(obj, old)
        status = obj.get("status")
        if status is None:
            return
        stored = list(status.get("storedVersions") or ())
        storage = next((one for one in obj["spec"].get("versions") or () if one.get("storage")), None)
        if storage is not None and (storage.get("name") or "") not in stored:
            stored.append(storage.get("name") or "")
        obj["status"] = {**status, "storedVersions": stored or None}


STRATEGIES: Final[Mapping[str, Strategy]] = {"CustomResourceDefinition": CustomResourceDefinitionStrategy()}
