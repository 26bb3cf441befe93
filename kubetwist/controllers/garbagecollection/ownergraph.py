"""
The graph of owner references.

Only objects that name owners are nodes, and only uids that are named as owners have a list of dependents; all others
cost nothing. Whether an owner exists is not known here: the garbage collector looks it up. No I/O, no clock.
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
        """Return the same as objects have it."""
        get = entry.get
        block_owner_deletion = get("blockOwnerDeletion") is True
        return cls(
            get("apiVersion") or "", get("kind") or "", get("name") or "", get("uid") or "", block_owner_deletion
        )


class ObjectKey(NamedTuple):
    """
    Where an object is.

    @ivar resource: The identity of the resource.
    @ivar key: The key of its record.
    """

    resource: GroupResource
    key: str


@define(eq=False)
class Node:
    """
    An object that names owners.

    @ivar references: Its owners; shared among nodes that name the same ones.
    @ivar being_deleted: It is being deleted.
    @ivar orphaning: It has the finalizer C{orphan}.
    @ivar deleting_dependents: It has the finalizer C{foregroundDeletion}.
    """

    object_key: ObjectKey
    uid: str
    references: tuple[Reference, ...] = ()
    being_deleted: bool = False
    orphaning: bool = False
    deleting_dependents: bool = False

    def blocks_deletion_of(self, uid: str) -> bool:
        """Return whether a foreground deletion of an owner waits for this one. None waits for itself."""
        return uid != self.uid and any(one.block_owner_deletion and one.uid == uid for one in self.references)

    def blocked_uids(self) -> set[str]:
        """Return the uids whose deletion this node blocks. One pass: a check per uid would be quadratic."""
        return {one.uid for one in self.references if one.block_owner_deletion and one.uid != self.uid}


@define(eq=False)
class _Dependents:
    """
    What names one owner.

    @ivar blocking: How many of them block.
    """

    nodes: dict[ObjectKey, Node]
    blocking: int = 0


@define(eq=False)
class _Shared:
    """
    References that nodes have.

    @ivar users: How many nodes that are.
    """

    references: tuple[Reference, ...]
    users: int = 0


class OwnerGraph:
    """
    Nodes and their dependents.

    @ivar waiting: By uid, the objects that are deleted in the foreground: they wait for their dependents.
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
        """Whether nothing is known, so that no deletion matters."""
        return not self._nodes and not self.waiting

    def node(self, object_key: ObjectKey) -> Node | None:
        """Return the node of an object; L{None} if it has no owners and is not waited for."""
        return self._nodes.get(object_key)

    def dependents(self, uid: str) -> list[Node]:
        """Return all that name a uid as their owner."""
        known = self._dependents.get(uid)
        return [] if known is None else list(known.nodes.values())

    def has_dependents(self, uid: str) -> bool:
        """Return whether there are any."""
        return uid in self._dependents

    def has_blocking_dependents(self, uid: str) -> bool:
        """Return whether a foreground deletion has to wait for dependents."""
        known = self._dependents.get(uid)
        return known is not None and known.blocking > 0

    def blocking_dependents(self, uid: str) -> Iterator[Node]:
        """The dependents that it waits for."""
        return (node for node in self.dependents(uid) if node.blocks_deletion_of(uid))

    # --- changing

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
        Take notice of an object's newest state.

        @return: Whether its owners are to be looked at, because it is new or has others than before; and the uids of
            waiting owners that it blocks no more.
        """
        before = self._nodes.get(object_key)
        named = tuple(references)
        if before is not None and before.uid != uid:
            _, unblocked = self.remove(object_key)
            fresh, more = self.put(
                object_key,
                uid,
                named,
                being_deleted=being_deleted,
                orphaning=orphaning,
                deleting_dependents=deleting_dependents,
            )
            return fresh, [*unblocked, *more]
        node = Node(object_key, uid, self._intern_references(named), being_deleted, orphaning, deleting_dependents)
        fresh = before is None or before.references is not node.references
        if named:
            self._nodes[object_key] = node
            self._link(node, before)
        else:
            self._nodes.pop(object_key, None)
        return fresh and bool(named), self._unlink(before, node)

    def remove(self, object_key: ObjectKey) -> tuple[Node | None, list[str]]:
        """
        Forget an object that is gone.

        @return: What was known of it; and the uids of waiting owners that nothing blocks any more.
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
        """One node less has them."""
        shared = self._shared[references]
        shared.users -= 1
        if not shared.users:
            del self._shared[references]

    def _link(self, node: Node, before: Node | None) -> None:
        has_blocking_dependents = node.blocked_uids()
        blocked_before = set() if before is None else before.blocked_uids()
        for uid in {one.uid for one in node.references}:
            known = self._dependents.get(uid)
            if known is None:
                known = self._dependents[uid] = _Dependents({})
            known.blocking += (uid in has_blocking_dependents) - (uid in blocked_before)
            known.nodes[node.object_key] = node

    def _unlink(self, before: Node | None, now: Node | None) -> list[str]:
        """Take away the edges that are no more; give the waiting owners that became free."""
        if before is None or not before.references:
            return []
        unblocked = []
        left = set() if now is None else {one.uid for one in now.references}
        all_blocked = before.blocked_uids()
        for uid in {one.uid for one in before.references}:
            has_blocking_dependents = uid in all_blocked
            if uid not in left:
                known = self._dependents[uid]
                del known.nodes[before.object_key]
                known.blocking -= has_blocking_dependents
                if not known.nodes:
                    del self._dependents[uid]
            if has_blocking_dependents and uid in self.waiting and not self.has_blocking_dependents(uid):
                unblocked.append(uid)
        self._drop_references(before.references)
        return unblocked

    # --- cycles

    def in_blocking_cycle(self, uid: str) -> bool:
        """Return whether an object in foreground deletion is, through other waiting objects, its own dependent."""
        seen: set[str] = set()
        left = [uid]
        while left:
            for node in self.blocking_dependents(left.pop()):
                if node.uid == uid:
                    return True
                if node.uid in self.waiting and node.uid not in seen:
                    seen.add(node.uid)
                    left.append(node.uid)
        return False
