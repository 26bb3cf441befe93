"""The resource and kind in which a request is matched and sent to webhooks and policies."""

from __future__ import annotations

from attrs import frozen

from ...api.resource import GroupVersionKind, GroupVersionResource


@frozen
class EquivalentResource:
    """A resource under which an object can be requested, and its kind there (C{runtime.EquivalentResourceMapper})."""

    resource: GroupVersionResource
    kind: GroupVersionKind
