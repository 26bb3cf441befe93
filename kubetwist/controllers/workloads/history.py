"""
ControllerRevisions: the history of the templates of StatefulSets and DaemonSets.

@see: kubernetes, C{pkg/controller/history/controller_history.go}.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from ...api.errors import APIStatusError
from ...api.frozen import mutable_copy
from ...api.resource import JSONObject
from ...registry.stores import decoded_object
from .pods import ControllerRefManager, Owner
from .rollout import template_hash

if TYPE_CHECKING:
    from ..machinery.client import Client
    from ..machinery.informer import Informer

#: The label of pods with the hash of their revision.
REVISION_LABEL: Final = "controller-revision-hash"
#: The label of the revisions of StatefulSets with their hash.
HASH_LABEL: Final = "controller.kubernetes.io/hash"


def revision_data(owner: JSONObject) -> JSONObject:
    """Return the data of the revision of an object: a patch with its template."""
    return {"spec": {"template": {**owner["spec"]["template"], "$patch": "replace"}}}


def apply_revision(owner: JSONObject, revision: JSONObject) -> JSONObject:
    """Return an object with the template of a revision. Parts are shared with both."""
    template = {name: part for name, part in revision["data"]["spec"]["template"].items() if name != "$patch"}
    return {**owner, "spec": {**owner["spec"], "template": template}}


def _revision_order(revision: JSONObject) -> tuple[int, str, str]:
    meta = revision["metadata"]
    return revision.get("revision") or 0, meta.get("creationTimestamp") or "", meta["name"]


class ControllerHistory:
    """
    Manages the revisions of the objects of one controller.

    @ivar hash_label: The label of a revision with its hash.
    """

    def __init__(self, informer: Informer, client: Client, hash_label: str) -> None:
        self._informer = informer
        self._client = client
        self._hash_label = hash_label
        self._ref_manager = ControllerRefManager(informer, client, "apps", "controllerrevisions")

    async def claim(self, owner: Owner, can_adopt: Callable[[], bool]) -> list[JSONObject]:
        """
        Return the revisions of an owner, the oldest first. Matching revisions without a controller are adopted.

        @param can_adopt: See L{ControllerRefManager.claim}.
        """
        return sorted(await self._ref_manager.claim(owner, can_adopt), key=_revision_order)

    async def get_or_create_current(
        self, owner: Owner, revisions: Sequence[JSONObject], collisions: int
    ) -> tuple[JSONObject, list[JSONObject], int]:
        """
        Return the revision of the current template. It is created or renumbered to be the newest, if necessary.

        @param revisions: All revisions of the owner, the oldest first.
        @param collisions: The number of hash collisions so far (C{collisionCount}).
        @return: The revision, all revisions including it, and the number of hash collisions.
        """
        data = revision_data(owner.obj)
        number = (revisions[-1].get("revision") or 0) + 1 if revisions else 1
        equal = [one for one in revisions if one.get("data") == data]
        if equal:
            current = equal[-1]
            if current is not revisions[-1]:
                current = await self._renumber(current, number)
                other_revisions = [one for one in revisions if one["metadata"]["uid"] != current["metadata"]["uid"]]
                return current, [*other_revisions, current], collisions
            return current, list(revisions), collisions
        created, collisions = await self._create_revision(owner, data, number, collisions)
        return created, [*revisions, created], collisions

    async def _renumber(self, revision: JSONObject, number: int) -> JSONObject:
        meta = revision["metadata"]

        def change(live: JSONObject) -> None:
            live["revision"] = number

        record = await self._client.update(
            "apps", "controllerrevisions", meta["namespace"], meta["name"], change, uid=meta["uid"]
        )
        return decoded_object(record)

    async def _create_revision(
        self, owner: Owner, data: JSONObject, number: int, collisions: int
    ) -> tuple[JSONObject, int]:
        template = owner.obj["spec"]["template"]
        labels = (template.get("metadata") or {}).get("labels") or {}
        while True:
            name_hash = template_hash(template, collisions)
            obj = {
                "metadata": {
                    # The name with the hash must be a valid name.
                    "name": f"{owner.name[:223]}-{name_hash}",
                    "namespace": owner.namespace,
                    "labels": {**labels, self._hash_label: name_hash},
                    "ownerReferences": [owner.reference()],
                },
                "data": mutable_copy(data),
                "revision": number,
            }
            annotations = owner.obj["metadata"].get("annotations")
            if annotations:
                obj["metadata"]["annotations"] = dict(annotations)
            try:
                return decoded_object(await self._client.create("apps", "controllerrevisions", obj)), collisions
            except APIStatusError as error:
                if error.reason != "AlreadyExists":
                    raise
            record = self._informer.get(owner.namespace, obj["metadata"]["name"])
            if (
                record is not None
                and decoded_object(record).get("data") == data
                and self._is_owned_by(decoded_object(record), owner)
            ):
                return decoded_object(record), collisions
            collisions += 1

    @staticmethod
    def _is_owned_by(revision: JSONObject, owner: Owner) -> bool:
        return any(one.get("uid") == owner.uid for one in revision["metadata"].get("ownerReferences") or ())

    async def label(self, revision: JSONObject, value: str) -> JSONObject:
        """Set the hash label of a revision."""
        meta = revision["metadata"]

        def change(live: JSONObject) -> None:
            live["metadata"].setdefault("labels", {})[self._hash_label] = value

        record = await self._client.update(
            "apps", "controllerrevisions", meta["namespace"], meta["name"], change, uid=meta["uid"]
        )
        return decoded_object(record)

    async def truncate(
        self, owner: Owner, revisions: Sequence[JSONObject], live: Collection[str], *, counted: bool = False
    ) -> None:
        """
        Delete the oldest unused revisions above the history limit of the owner.

        @param owner: The owner.
        @param revisions: The revisions of the owner, the oldest first.
        @param live: The names of the revisions in use, which are kept.
        @param counted: Whether the revisions in use count towards the limit.
        """
        limit = owner.obj["spec"].get("revisionHistoryLimit")
        limit = 10 if limit is None else limit
        unused = [one for one in revisions if one["metadata"]["name"] not in live]
        await self.delete(unused[: max(0, len(revisions if counted else unused) - limit)])

    async def delete(self, revisions: Iterable[JSONObject]) -> None:
        """Delete revisions."""
        for one in revisions:
            meta = one["metadata"]
            try:
                await self._client.delete(
                    "apps", "controllerrevisions", meta["namespace"], meta["name"], uid=meta["uid"]
                )
            except APIStatusError as error:
                if error.code not in (404, 409):
                    raise
