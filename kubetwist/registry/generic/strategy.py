"""
Strategies: the rules of a kind for the generic store.

A strategy gets objects that L{kubetwist.schema} has decoded: types are valid, unknown fields are removed, and fields
that Go omits when empty are omitted. It does no I/O; rules that need other objects are in allocators and admission
plugins. All methods are synchronous, and modify C{obj} only if the docstring states it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Self

from ...api.errors import FieldError
from ...api.featuregates import FeatureGates
from ...api.jsonequality import same_json
from ...api.names import ValidateNameFunc, validate_dns1123_subdomain
from ...api.objectmeta import Rule

if TYPE_CHECKING:
    from ...api.options import DeleteOptions
    from ...api.resource import JSONObject, UserInfo


class Strategy:
    """The default rules; the strategies of kinds derive from it."""

    #: The feature gates and the release of the server.
    features: FeatureGates = FeatureGates()
    #: Whether PUT of a name that does not exist creates the object.
    allow_create_on_update = False
    #: Whether PUT without a resourceVersion replaces the object in any state.
    allow_unconditional_update = True
    #: Whether objects have metadata.generation, which is incremented when the spec changes.
    has_generation = False
    #: Whether objects have untyped fields, for which Python's C{==} does not detect all changes.
    untyped = False
    #: Whether the kind has a status that updates of the main resource do not change.
    has_status = False
    #: The generation of a new object, for kinds with generations; 0 omits it until the first change.
    first_generation = 1
    #: The fields of the metadata that updates of the status subresource do not change.
    status_protects: Sequence[str] = ("labels", "annotations", "finalizers", "ownerReferences")
    #: Whether the response to DELETE is the object instead of a Status.
    delete_returns_object = False
    #: The effect of DELETE without a policy on dependents: L{None} (background) or C{"orphan"}.
    default_garbage_collection: str | None = None

    #: Rules for the metadata of updates that the validation of the kind runs after the generic ones: an error may be
    #: reported twice. See L{kubetwist.api.objectmeta}.
    metadata_update_rules: Sequence[Rule] = ("compare",)
    #: The same for updates of subresources.
    status_metadata_update_rules: Sequence[Rule] = ("compare",)
    #: The versions, besides the stored one, whose defaults L{default} sets before the conversion, not after it.
    default_versions: Collection[str] = ()
    #: Whether the validation of the kind checks the metadata of new objects; otherwise the registry checks it if the
    #: validation of the kind finds no error.
    checks_metadata = True
    #: Whether finalizers without a domain must be standard ones; custom resources only get a warning.
    standard_finalizers = True

    def __init__(self) -> None:
        """Configure this strategy for the default release; see L{with_features}."""
        self.configure()

    def with_features(self, features: FeatureGates) -> Self:
        """Return a copy of this strategy for a server with these feature gates and this release."""
        strategy = copy(self)
        strategy.features = features
        strategy.configure()
        return strategy

    def configure(self) -> None:
        """Decide what depends on L{features}; called once for each server, for strategies with such rules."""

    def validate_name(self, name: str, prefix: bool) -> Sequence[str]:
        """Return the errors of a name, or of a generateName if C{prefix} is set."""
        return validate_dns1123_subdomain(name, prefix)

    def name_validator(self, obj: JSONObject) -> ValidateNameFunc:
        """Return the function that validates the name of an object, for kinds whose names depend on other fields."""
        return self.validate_name

    def default(self, obj: JSONObject) -> None:
        """Set the defaults of C{obj}; idempotent, called for each body and each result of a patch."""

    def defaulted(self, obj: JSONObject, to_storage: Callable[[JSONObject], JSONObject]) -> JSONObject:
        """
        Return an object as the store writes it: in the stored version, with defaults.

        @param obj: The object in the version of the request; may be modified.
        @param to_storage: Converts the object to the stored version.
        """
        if obj.get("apiVersion") in self.default_versions:
            self.default(obj)
            return to_storage(obj)
        obj = to_storage(obj)
        self.default(obj)
        return obj

    def default_on_read(self, obj: JSONObject) -> None:
        """
        Set missing defaults of C{obj}; idempotent, called before objects are written and when they are read.

        The reference sets defaults when it decodes stored objects, so that objects of older releases get new defaults.
        """
        self.default(obj)

    def prepare_for_create(self, obj: JSONObject) -> None:
        """Modify a new C{obj}: remove the fields that clients may not set, such as the status."""
        if self.has_status:
            obj.pop("status", None)
            self.reset_status(obj)

    def prepare_for_creator(self, obj: JSONObject, user: UserInfo) -> None:
        """Set the creating user in a new C{obj}, for kinds that record it."""

    def reset_status(self, obj: JSONObject) -> None:
        """Set the initial status of a new C{obj}."""

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Modify C{obj}: restore the fields of C{old} that updates of the main resource may not change (the status)."""
        if self.has_status:
            if "status" in old:
                obj["status"] = old["status"]
            else:
                obj.pop("status", None)

    def prepare_for_status_update(self, obj: JSONObject, old: JSONObject) -> None:
        """
        Modify C{obj}: restore the fields of C{old} that updates of the status subresource may not change.

        These are all but the status and the metadata, and the fields of the metadata in L{status_protects}.
        """
        status = obj.get("status")
        # Modified in place: the store refers to this dictionary.
        metadata = obj["metadata"]
        for name in self.status_protects:
            if name in old["metadata"]:
                metadata[name] = old["metadata"][name]
            else:
                metadata.pop(name, None)
        obj.clear()
        obj.update(old)
        obj["metadata"] = metadata
        if status is None:
            obj.pop("status", None)
        else:
            obj["status"] = status

    def generation_changes(self, obj: JSONObject, old: JSONObject) -> bool:
        """Return whether an update increments the generation: a field outside of metadata and status changed."""
        same: Callable[[Any, Any], bool] = same_json if self.untyped else operator.eq
        return any(
            not same(obj.get(name), old.get(name))
            for name in obj.keys() | old.keys()
            if name not in ("metadata", "status", "kind", "apiVersion")
        )

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Return the validation errors of a new object, except those of its metadata, in the order of the reference."""
        return ()

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Return the validation errors of an update from C{old} to C{obj}, except those of the metadata."""
        return self.validate(obj)

    def compares_empties(self, old: JSONObject) -> bool:
        """Return whether this kind considers an update a change if it only adds an empty list or map to C{old}."""
        return False

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Return the validation errors of an update of the status subresource."""
        return ()

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Return the texts of Warning headers for a write."""
        return ()

    def early_warnings(self, obj: JSONObject) -> Sequence[str]:
        """Return warnings for a new C{obj} before it is prepared; they are sent even if it is rejected."""
        return ()

    def delete_warnings(self, propagation_policy: str | None, orphan_dependents: bool | None) -> Sequence[str]:
        """Return the texts of Warning headers for a DELETE."""
        return ()

    def grace_period(self, obj: JSONObject, options: DeleteOptions) -> int | None:
        """
        Return the grace period of a deletion in seconds; L{None} for kinds without graceful deletion.

        With 0 the object is removed immediately.
        """
        return None
