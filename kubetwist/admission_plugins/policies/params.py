"""
Finds the parameters of policies.

@see: kubernetes/apiserver, C{pkg/admission/plugin/policy/generic/policy_dispatcher.go}: C{CollectParams}.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import orjson

from ...api.resource import GroupVersion, GroupVersionKind, JSONObject
from ...api.selectors import SelectorError, label_selector_from_object
from ...registry.generic.store import Store

if TYPE_CHECKING:
    from ...api.record import Record
    from ...registry.admissioncontext import ServerAdmissionContext


class ConfigurationError(Exception):
    """A policy or binding cannot be used; the failure policy applies. The text is the reference's."""


class ParamKind:
    """
    The kind of the parameters of a policy.

    @ivar gvk: The kind in C{paramKind}.
    """

    def __init__(self, kind: JSONObject, server: ServerAdmissionContext) -> None:
        """
        @raise ValueError: The apiVersion is invalid.
        """
        group, version = GroupVersion.parse(kind.get("apiVersion") or "")
        self.gvk = GroupVersionKind(group, version, kind.get("kind") or "")
        self._server = server

    def _resource(self) -> tuple[str, bool]:
        """
        Return the plural name, and whether the resource is namespaced.

        @raise ConfigurationError: The kind does not exist.
        """
        resources = self._server.resources_for_kind(self.gvk.group, self.gvk.version, self.gvk.kind)
        if not resources:
            gvk = f"{self.gvk.group}/{self.gvk.version}, Kind={self.gvk.kind}"
            raise ConfigurationError(f"failed to find resource referenced by paramKind: '{gvk}'")
        return resources[0]

    def check(self) -> None:
        """
        Check that the kind exists.

        @raise ConfigurationError: The kind does not exist.
        """
        self._resource()

    async def collect(self, ref: JSONObject, namespace: str) -> list[JSONObject]:
        """
        Return the parameters of a binding.

        @param ref: The binding's C{paramRef}.
        @param namespace: The namespace of the request.
        @raise ConfigurationError: The parameters are not available, or none exist and C{parameterNotFoundAction} is
            Deny.
        """
        resource, namespaced = self._resource()
        params_namespace = ref.get("namespace") or ""
        if namespaced:
            params_namespace = params_namespace or namespace
            if not params_namespace:
                raise ConfigurationError(
                    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                )
        elif params_namespace:
            raise ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        store = await self._store(resource)
        records = self._matching_records(store, ref, params_namespace)
        if not records and ref.get("parameterNotFoundAction") == "Deny":
            raise ConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction")
        await store.ensure_converted(records)
        return [await self._versioned(store, record) for record in records]

    async def _store(self, resource: str) -> Store:
        store = self._server.stores.find(self.gvk.group, resource)
        if store is not None:
            await store.cache.on_demand.ensure()
            return store
        served = self._server.stores.custom.get(f"{resource}.{self.gvk.group}")
        if served is None:
            raise ConfigurationError(f"paramKind kind `{self.gvk.api_version}, Kind={self.gvk.kind}` not known")
        await served.start()
        return served.store(served.definition.version(self.gvk.version))

    @staticmethod
    def _matching_records(store: Store, ref: JSONObject, namespace: str) -> Sequence[Record]:
        name, selector = ref.get("name"), ref.get("selector")
        if name:
            if selector is not None:
                raise ConfigurationError("paramRef.name and paramRef.selector are mutually exclusive")
            record = store.cache.get(store.cache_key(namespace, name))
            return () if record is None else (record,)
        if selector is None:
            raise ConfigurationError("one of name or selector must be provided")
        try:
            matches = label_selector_from_object(selector).matches
        except SelectorError as error:
            raise ConfigurationError(str(error)) from None
        prefix = f"{namespace}/" if store.info.namespaced else ""
        return [record for record in store.cache.list(prefix).records if matches(record.labels)]

    async def _versioned(self, store: Store, record: Record) -> JSONObject:
        """Return an object in the version of the policy; converted once and cached in the record."""
        key = ("params", self.gvk)
        if record.views is None:
            record.views = {}
        versioned: JSONObject | None = record.views.get(key)
        if versioned is None:
            codec = getattr(store, "codec", None)
            obj = orjson.loads(record.item if codec is None else codec.item(record))
            source = store.gvk if codec is None else self.gvk
            versioned = await self._server.versions.convert_to_gvk(
                store.info.group, store.info.resource, obj, source, self.gvk
            )
            record.views[key] = versioned
        return versioned
