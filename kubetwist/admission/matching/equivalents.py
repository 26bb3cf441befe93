"""The resource and kind in which a request is matched and sent to webhooks and policies."""

from __future__ import annotations

from attrs import frozen

from ...api.resource import GroupVersionKind, GroupVersionResource


@frozen
class EquivalentResource:
    """One of the names by which a resource can be asked for, and the kind that it has there."""

    resource: GroupVersionResource
    kind: GroupVersionKind
