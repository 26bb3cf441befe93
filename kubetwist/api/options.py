"""The options of the verbs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from attrs import define, field

from .resource import JSONObject
from .selectors import Requirement

#: Decides whether an object with these labels, or fields, is selected.
Matcher = Callable[[Mapping[str, str]], bool]


@define
class GetOptions:
    """
    The options of a GET.

    @ivar resource_version: C{resourceVersion} as sent; C{""} requests the newest version.
    """

    resource_version: str = ""


@define
class ListOptions:
    """
    The options of a list or watch.

    @ivar labels: Matches an object's labels; L{None} for all.
    @ivar requirements: What C{labels} requires, if that is known.
    @ivar fields: Terms of the field selector, C{(field, value, equal)}, validated and converted by the kind.
    @ivar timeout: Seconds; L{None} if not set.
    """

    labels: Matcher | None = None
    requirements: tuple[Requirement, ...] = ()
    fields: tuple[tuple[str, str, bool], ...] = ()
    resource_version: str = ""
    resource_version_match: str = ""
    limit: int = 0
    continue_token: str = ""
    watch: bool = False
    allow_watch_bookmarks: bool = False
    send_initial_events: bool | None = None
    timeout: float | None = None
    label_selector: str = ""
    field_selector: str = ""


@define
class WriteOptions:
    """
    The options shared by all writes.

    @ivar field_validation: C{Strict}, C{Warn} or C{Ignore}; C{""}, the default, means C{Warn}.
    """

    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = ""


class CreateOptions(WriteOptions):
    """The options of a POST."""


class UpdateOptions(WriteOptions):
    """The options of a PUT."""


@define
class PatchOptions(WriteOptions):
    """The options of a PATCH; C{force} is for apply."""

    force: bool | None = None


@define
class DeleteOptions:
    """
    The options of a DELETE, from the body or, without a body, from the query.

    @ivar propagation_policy: C{Orphan}, C{Background}, C{Foreground} or L{None}.
    """

    dry_run: bool = False
    grace_period_seconds: int | None = None
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    precondition_uid: str | None = None
    precondition_resource_version: str | None = None
    ignore_store_read_error: bool = field(default=False)


#: The option type of a write, by its verb.
_KINDS: Final = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


def options_object(options: WriteOptions | DeleteOptions, operation: str) -> JSONObject:
    """
    Return the options as an object for webhooks and policies.

    @param options: The options.
    @param operation: C{CREATE}, C{UPDATE} or C{DELETE}.
    """
    shown: JSONObject = {"kind": _KINDS[operation], "apiVersion": "meta.k8s.io/v1"}
    if isinstance(options, WriteOptions):
        if options.dry_run:
            shown["dryRun"] = ["All"]
        if options.field_manager:
            shown["fieldManager"] = options.field_manager
        if options.field_validation:
            shown["fieldValidation"] = options.field_validation
        return shown
    if options.grace_period_seconds is not None:
        shown["gracePeriodSeconds"] = options.grace_period_seconds
    preconditions = {
        name: value
        for name, value in (
            ("uid", options.precondition_uid),
            ("resourceVersion", options.precondition_resource_version),
        )
        if value is not None
    }
    if preconditions:
        shown["preconditions"] = preconditions
    if options.orphan_dependents is not None:
        shown["orphanDependents"] = options.orphan_dependents
    if options.propagation_policy is not None:
        shown["propagationPolicy"] = options.propagation_policy
    if options.dry_run:
        shown["dryRun"] = ["All"]
    return shown
