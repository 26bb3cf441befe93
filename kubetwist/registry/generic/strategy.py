"""
What is special about a kind, as the generic store asks it.

A strategy works on plain dicts that have passed L{kubetwist.schema}'s decoding, so types are right, unknown fields
are gone and what Go leaves out when empty is left out. It does no I/O; what needs other objects (allocators,
admission) is elsewhere. All methods are synchronous and may change C{obj} only where they say so.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Self

from ...api.errors import FieldError
from ...api.jsonequality import same_json
from ...api.names import ValidateNameFunc, validate_dns1123_subdomain
from ...api.objectmeta import Rule

if TYPE_CHECKING:
    from ...api.options import DeleteOptions
    from ...api.resource import JSONObject, UserInfo


class Strategy:
    """The rules that kinds have unless they say otherwise; kinds derive from it."""

    #: The feature gates that were opened; others are closed, or of no concern to strategies.
    open_gates: Collection[str] = ()
    #: PUT of a name that is not there makes it.
    allow_create_on_update = False
    #: PUT without a resourceVersion overwrites whatever is there.
    allow_unconditional_update = True
    #: metadata.generation starts at 1 and grows when the spec changes; kinds without it never show one.
    has_generation = False
    #: Whether objects have untyped fields, for which Python's C{==} does not detect all changes.
    untyped = False
    #: The kind has a status that its main resource may not write.
    has_status = False
    #: What C{metadata.generation} starts at, for kinds that have one; 0 leaves it out until the first change.
    first_generation = 1
    #: The parts of metadata, besides what no write may touch, that the status subresource leaves alone.
    status_protects: Sequence[str] = ("labels", "annotations", "finalizers", "ownerReferences")
    #: DELETE answers with the object instead of a Status.
    delete_returns_object = False
    #: What DELETE without a policy does to dependents: L{None} (background) or C{"orphan"}.
    default_garbage_collection: str | None = None

    #: Metadata rules of updates that the kind runs after the generic ones: an error may be reported twice.
    #: See L{kubetwist.api.objectmeta}.
    metadata_update_rules: Sequence[Rule] = ("compare",)
    #: Likewise, of updates through subresources.
    status_metadata_update_rules: Sequence[Rule] = ("compare",)
    #: The versions, besides the stored one, whose objects L{default} completes: it is applied to them before they are
    #: converted, and not to the result of the conversion.
    default_versions: Collection[str] = ()
    #: The kind looks at the metadata of new objects; of others, the registry does where the kind finds nothing wrong.
    checks_metadata = True
    #: Finalizers without a domain must be known ones; custom resources only get a warning.
    standard_finalizers = True

    def with_gates(self, names: Collection[str]) -> Self:
        """A strategy like this for a server where these gates were opened."""
        strategy = copy(self)
        strategy.open_gates = names
        return strategy

    def validate_name(self, name: str, prefix: bool) -> Sequence[str]:
        """What is wrong with C{name}; C{prefix} when it is a generateName."""
        return validate_dns1123_subdomain(name, prefix)

    def name_validator(self, obj: JSONObject) -> ValidateNameFunc:
        """What is wrong with names of this object, for kinds whose names depend on what they are."""
        return self.validate_name

    def default(self, obj: JSONObject) -> None:
        """Fill in, in C{obj}, what the kind's version fills in; idempotent, applied to every body and patch result."""

    def defaulted(self, obj: JSONObject, to_storage: Callable[[JSONObject], JSONObject]) -> JSONObject:
        """
        Return an object as the store writes it: in the stored version, with defaults.

        @param obj: The object in the version of the request; it may be modified.
        @param to_storage: Converts it.
        """
        if obj.get("apiVersion") in self.default_versions:
            self.default(obj)
            return to_storage(obj)
        obj = to_storage(obj)
        self.default(obj)
        return obj

    def default_on_read(self, obj: JSONObject) -> None:
        """
        Fill in what C{obj} lacks; idempotent, applied to what is stored and to what is found in the storage.

        The reference fills in defaults whenever it decodes, so that objects of older releases have those of newer ones.
        """
        self.default(obj)

    def prepare_for_create(self, obj: JSONObject) -> None:
        """Change C{obj}: drop what clients may not set on create (status), set what creation sets."""
        if self.has_status:
            obj.pop("status", None)
            self.reset_status(obj)

    def prepare_for_creator(self, obj: JSONObject, user: UserInfo) -> None:
        """Set the creating user in a new C{obj}, for kinds that record it."""

    def reset_status(self, obj: JSONObject) -> None:
        """Give a new C{obj} the status that its kind is born with."""

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Change C{obj}: keep of C{old} what the main resource may not write (status)."""
        if self.has_status:
            if "status" in old:
                obj["status"] = old["status"]
            else:
                obj.pop("status", None)

    def prepare_for_status_update(self, obj: JSONObject, old: JSONObject) -> None:
        """
        Change C{obj}: keep of C{old} all that the status subresource may not write.

        That is everything but status and metadata, and of metadata what L{status_protects} names.
        """
        status = obj.get("status")
        # In place: the store holds on to this dictionary.
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
        """Whether this update makes a new generation: anything changed outside of metadata and status."""
        same: Callable[[Any, Any], bool] = same_json if self.untyped else operator.eq
        return any(
            not same(obj.get(name), old.get(name))
            for name in obj.keys() | old.keys()
            if name not in ("metadata", "status", "kind", "apiVersion")
        )

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """All that is wrong with a new object beyond its metadata, in the reference's order."""
        return ()

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """All that is wrong with C{obj} as a successor of C{old}, beyond its metadata."""
        return self.validate(obj)

    def compares_empties(self, old: JSONObject) -> bool:
        """Return whether this kind considers an update a change if it only adds an empty list or map to C{old}."""
        return False

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """All that is wrong with an update through the status subresource."""
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
        Seconds between the first DELETE and the end, for kinds that end gracefully; L{None} for all others.

        0 deletes at once.
        """
        return None
