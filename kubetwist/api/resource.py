"""Identifiers of the API: groups, versions, resources, kinds, users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from attrs import field, frozen

from .jsontypes import JSONObject as JSONObject


class GroupVersion(NamedTuple):
    """An API group and one of its versions; the core group is C{""}."""

    group: str
    version: str

    def __str__(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @classmethod
    def parse(cls, api_version: str) -> GroupVersion:
        """
        Parse an C{apiVersion}.

        @raise ValueError: The value has more than one slash.
        """
        group, _, version = api_version.rpartition("/")
        if "/" in group:
            raise ValueError(f"unexpected GroupVersion string: {api_version}")
        return cls(group, version)


class GroupResource(NamedTuple):
    """A resource independent of its version: C{deployments.apps}."""

    group: str
    resource: str

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


class GroupKind(NamedTuple):
    """A kind independent of its version: C{Deployment.apps}."""

    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


class GroupVersionResource(NamedTuple):
    """A resource as named in a path: C{apps/v1, deployments}."""

    group: str
    version: str
    resource: str

    @property
    def group_version(self) -> GroupVersion:
        """Return the group and version."""
        return GroupVersion(self.group, self.version)

    @property
    def group_resource(self) -> GroupResource:
        """Return the resource without its version."""
        return GroupResource(self.group, self.resource)


class GroupVersionKind(NamedTuple):
    """The group, version and kind of an object: C{apps/v1, Deployment}."""

    group: str
    version: str
    kind: str

    @property
    def group_version(self) -> GroupVersion:
        """Return the group and version."""
        return GroupVersion(self.group, self.version)

    @property
    def group_kind(self) -> GroupKind:
        """Return the kind without its version."""
        return GroupKind(self.group, self.kind)

    @property
    def api_version(self) -> str:
        """Return the C{apiVersion} of objects."""
        return f"{self.group}/{self.version}" if self.group else self.version


@frozen
class UserInfo:
    """The user of a request, as determined by an authenticator."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(factory=dict)
