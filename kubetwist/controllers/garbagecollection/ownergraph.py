"""
The graph of owner references.

Only objects with owner references are nodes, and only referenced uids have a list of dependents. Whether an owner
exists is not part of the graph: the garbage collector looks it up. No I/O, no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from attrs import define

from ...api.resource import GroupResource, JSONObject


class Reference(NamedTuple):
    """
    An entry of C{ownerReferences}.

    @ivar block_owner_deletion: C{blockOwnerDeletion}: a foreground deletion of the owner waits for this dependent.
    """

    api_version: str
    kind: str
    name: str
    uid: str
    block_owner_deletion: bool

    @classmethod
    def from_object(cls, entry: JSONObject) -> Reference:
        """Return the reference of an entry of C{ownerReferences}."""
        get = entry.get
        block_owner_deletion = get("blockOwnerDeletion") is True
        return cls(
            get("apiVersion") or "", get("kind") or "", get("name") or "", get("uid") or "", block_owner_deletion
        )


class ObjectKey(NamedTuple):
    """
    The identity of an object.

    @ivar resource: The group and resource.
    @ivar key: The key of the record.
    """

    resource: GroupResource
    key: str


@define(eq=False)
class Node:
    """
    An object with owner references.

    @ivar references: Its owner references, shared among nodes with equal ones.
    @ivar being_deleted: Whether it has a deletion timestamp.
    @ivar orphaning: Whether it has the finalizer C{orphan}.
    @ivar deleting_dependents: Whether it has the finalizer C{foregroundDeletion}.
    """

    object_key: ObjectKey
    uid: str
    references: tuple[Reference, ...] = ()
    being_deleted: bool = False
    orphaning: bool = False
    deleting_dependents: bool = False

    def blocks_deletion_of(self, uid: str) -> bool:
        """Return whether this dependent blocks the foreground deletion of an owner. An object never blocks itself."""
        return uid != self.uid and any(one.block_owner_deletion and one.uid == uid for one in self.references)

    def blocked_uids(self) -> set[str]:
        """Return the uids of owners whose deletion this node blocks. One pass: a check per uid would be quadratic."""
        return {one.uid for one in self.references if one.block_owner_deletion and one.uid != self.uid}


@define(eq=False)
class _Dependents:
    """
    The dependents of an owner.

    @ivar blocking: Number of dependents that block the deletion of the owner.
    """

    nodes: dict[ObjectKey, Node]
    blocking: int = 0


@define(eq=False)
class _Shared:
    """
    Owner references shared by nodes.

    @ivar users: Number of nodes with these references.
    """

    references: tuple[Reference, ...]
    users: int = 0


class OwnerGraph:
    """
    Objects with owner references, and the dependents of each owner.

    @ivar waiting: Objects in foreground deletion, which wait for their dependents, by uid.
    """

    def __init__(self) -> None:
        self.waiting: dict[str, ObjectKey] = {}
        self._nodes: dict[ObjectKey, Node] = {}
        self._dependents: dict[str, _Dependents] = {}
        # Equal reference lists are shared.
        self._shared: dict[tuple[Reference, ...], _Shared] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def empty(self) -> bool:
        """Whether there are no nodes and no waiting objects, so that deletions can be ignored."""
        return not self._nodes and not self.waiting

    def node(self, object_key: ObjectKey) -> Node | None:
        """Return the node of an object; L{None} if it has no owners and is not waited for."""
        return self._nodes.get(object_key)

    def dependents(self, uid: str) -> list[Node]:
        """Return the objects with an owner reference to a uid."""
        entry = self._dependents.get(uid)
        return [] if entry is None else list(entry.nodes.values())

    def has_dependents(self, uid: str) -> bool:
        """Return whether any object has an owner reference to a uid."""
        return uid in self._dependents

    def has_blocking_dependents(self, uid: str) -> bool:
        """Return whether the foreground deletion of an object must wait for dependents."""
        entry = self._dependents.get(uid)
        return entry is not None and entry.blocking > 0

    def blocking_dependents(self, uid: str) -> Iterator[Node]:
        """Return the dependents that block the foreground deletion of an object."""
        return (node for node in self.dependents(uid) if node.blocks_deletion_of(uid))

    # --- updates

    def put(
        self,
        object_key: ObjectKey,
        uid: str,
        references: Iterable[Reference],
        *,
        being_deleted: bool = False,
        orphaning: bool = False,
        deleting_dependents: bool = False,
    ) -> tuple[bool, list[str]]:
        """
        Add an object, or update its state.

        @param object_key: The key of the object.
        @param uid: The uid of the object.
        @param references: Its owner references.
        @param being_deleted: Whether it has a deletion timestamp.
        @param orphaning: Whether it has the finalizer C{orphan}.
        @param deleting_dependents: Whether it has the finalizer C{foregroundDeletion}.
        @return: Whether the owners must be checked because the object is new or has new references; and the uids of
            waiting owners that it blocked until now.
        """
        old = self._nodes.get(object_key)
        owner_references = tuple(references)
        if old is not None and old.uid != uid:
            _, unblocked = self.remove(object_key)
            changed, further = self.put(
                object_key,
                uid,
                owner_references,
                being_deleted=being_deleted,
                orphaning=orphaning,
                deleting_dependents=deleting_dependents,
            )
            return changed, [*unblocked, *further]
        node = Node(
            object_key, uid, self._intern_references(owner_references), being_deleted, orphaning, deleting_dependents
        )
        changed = old is None or old.references is not node.references
        if owner_references:
            self._nodes[object_key] = node
            self._link(node, old)
        else:
            self._nodes.pop(object_key, None)
        return changed and bool(owner_references), self._unlink(old, node)

    def remove(self, object_key: ObjectKey) -> tuple[Node | None, list[str]]:
        """
        Remove a deleted object.

        @return: Its node, or L{None}; and the uids of waiting owners that nothing blocks any more.
        """
        node = self._nodes.pop(object_key, None)
        return node, self._unlink(node, None)

    def _intern_references(self, references: tuple[Reference, ...]) -> tuple[Reference, ...]:
        """Return the shared copy of equal references, and count one more user."""
        if not references:
            return ()
        shared = self._shared.get(references)
        if shared is None:
            shared = self._shared[references] = _Shared(references)
        shared.users += 1
        return shared.references

    def _drop_references(self, references: tuple[Reference, ...]) -> None:
        """Decrement the reference count of shared owner references."""
        shared = self._shared[references]
        shared.users -= 1
        if not shared.users:
            del self._shared[references]

    def _link(self, node: Node, old: Node | None) -> None:
        blocked = node.blocked_uids()
        blocked_by_old = set() if old is None else old.blocked_uids()
        for uid in {one.uid for one in node.references}:
            entry = self._dependents.get(uid)
            if entry is None:
                entry = self._dependents[uid] = _Dependents({})
            entry.blocking += (uid in blocked) - (uid in blocked_by_old)
            entry.nodes[node.object_key] = node

    def _unlink(self, old: Node | None, new: Node | None) -> list[str]:
        """Remove obsolete edges, and return the uids of waiting owners that nothing blocks any more."""
        if old is None or not old.references:
            return []
        unblocked = []
        current_uids = set() if new is None else {one.uid for one in new.references}
        blocked = old.blocked_uids()
        for uid in {one.uid for one in old.references}:
            was_blocking = uid in blocked
            if uid not in current_uids:
                entry = self._dependents[uid]
                del entry.nodes[old.object_key]
                entry.blocking -= was_blocking
                if not entry.nodes:
                    del self._dependents[uid]
            if was_blocking and uid in self.waiting and not self.has_blocking_dependents(uid):
                unblocked.append(uid)
        self._drop_references(old.references)
        return unblocked

    # --- cycles

    def in_blocking_cycle(self, uid: str) -> bool:
        """Return whether an object in foreground deletion blocks itself through other waiting objects."""
        visited: set[str] = set()
        stack = [uid]
        while stack:
            for node in self.blocking_dependents(stack.pop()):
                if node.uid == uid:
                    return True
                if node.uid in self.waiting and node.uid not in visited:
                    visited.add(node.uid)
                    stack.append(node.uid)
        return False
