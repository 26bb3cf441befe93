"""
Who depends on whom, as far as anybody depends on anybody.

Only objects that name owners are nodes, and only uids that are named as owners have a list of dependents; all others
cost nothing. That an owner exists is not known here: whoever uses the graph looks it up. No I/O, no clock.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import NamedTuple

from attrs import define

from ...api.resource import JSONObject


class Reference(NamedTuple):
    """
    An entry of C{ownerReferences}.

    @ivar blocks: C{blockOwnerDeletion}: a foreground deletion of the owner waits for this dependent.
    """

    api_version: str
    kind: str
    name: str
    uid: str
    blocks: bool

    @classmethod
    def of(cls, entry: JSONObject) -> Reference:
        """The same as objects have it."""
        get = entry.get
        blocks = get("blockOwnerDeletion") is True
        return cls(get("apiVersion") or "", get("kind") or "", get("name") or "", get("uid") or "", blocks)


class Place(NamedTuple):
    """
    Where an object is.

    @ivar resource: What tells resources apart.
    @ivar key: Of its record.
    """

    resource: Hashable
    key: str


@define(eq=False)
class Node:
    """
    An object that names owners.

    @ivar references: Its owners; shared among nodes that name the same ones.
    @ivar deleting: It is being deleted.
    @ivar orphans: It has the finalizer C{orphan}.
    @ivar foreground: It has the finalizer C{foregroundDeletion}.
    """

    place: Place
    uid: str
    references: tuple[Reference, ...] = ()
    deleting: bool = False
    orphans: bool = False
    foreground: bool = False

    def blocks(self, uid: str) -> bool:
        """Whether a foreground deletion of an owner waits for this one. None waits for itself."""
        return uid != self.uid and any(one.blocks and one.uid == uid for one in self.references)

    def all_blocked(self) -> set[str]:
        """All uids that it L{blocks}: there may be thousands, and asking for each would take their square."""
        return {one.uid for one in self.references if one.blocks and one.uid != self.uid}


@define(eq=False)
class _Dependents:
    """
    What names one owner.

    @ivar blocking: How many of them block.
    """

    nodes: dict[Place, Node]
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
        self.waiting: dict[str, Place] = {}
        self._nodes: dict[Place, Node] = {}
        self._dependents: dict[str, _Dependents] = {}
        # What is alike is one.
        self._shared: dict[tuple[Reference, ...], _Shared] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def empty(self) -> bool:
        """Whether nothing is known, so that no deletion matters."""
        return not self._nodes and not self.waiting

    def node(self, place: Place) -> Node | None:
        """What is known of an object; L{None} where it has no owners."""
        return self._nodes.get(place)

    def dependents(self, uid: str) -> list[Node]:
        """All that name a uid as their owner."""
        known = self._dependents.get(uid)
        return [] if known is None else list(known.nodes.values())

    def has_dependents(self, uid: str) -> bool:
        """Whether there are any."""
        return uid in self._dependents

    def blocked(self, uid: str) -> bool:
        """Whether a foreground deletion has to wait for dependents."""
        known = self._dependents.get(uid)
        return known is not None and known.blocking > 0

    def blocking(self, uid: str) -> Iterator[Node]:
        """The dependents that it waits for."""
        return (node for node in self.dependents(uid) if node.blocks(uid))

    # --- changing

    def put(
        self,
        place: Place,
        uid: str,
        references: Iterable[Reference],
        *,
        deleting: bool = False,
        orphans: bool = False,
        foreground: bool = False,
    ) -> tuple[bool, list[str]]:
        """
        Take notice of an object's newest state.

        @return: Whether its owners are to be looked at, because it is new or has others than before; and the uids of
            waiting owners that it blocks no more.
        """
        before = self._nodes.get(place)
        named = tuple(references)
        if before is not None and before.uid != uid:
            _, released = self.remove(place)
            fresh, more = self.put(place, uid, named, deleting=deleting, orphans=orphans, foreground=foreground)
            return fresh, [*released, *more]
        node = Node(place, uid, self._taken(named), deleting, orphans, foreground)
        fresh = before is None or before.references is not node.references
        if named:
            self._nodes[place] = node
            self._link(node, before)
        else:
            self._nodes.pop(place, None)
        return fresh and bool(named), self._unlink(before, node)

    def remove(self, place: Place) -> tuple[Node | None, list[str]]:
        """
        Forget an object that is gone.

        @return: What was known of it; and the uids of waiting owners that nothing blocks any more.
        """
        node = self._nodes.pop(place, None)
        return node, self._unlink(node, None)

    def _taken(self, references: tuple[Reference, ...]) -> tuple[Reference, ...]:
        """The same references as others have them who have the same, for one node more."""
        if not references:
            return ()
        shared = self._shared.get(references)
        if shared is None:
            shared = self._shared[references] = _Shared(references)
        shared.users += 1
        return shared.references

    def _returned(self, references: tuple[Reference, ...]) -> None:
        """One node less has them."""
        shared = self._shared[references]
        shared.users -= 1
        if not shared.users:
            del self._shared[references]

    def _link(self, node: Node, before: Node | None) -> None:
        blocked = node.all_blocked()
        blocked_before = set() if before is None else before.all_blocked()
        for uid in {one.uid for one in node.references}:
            known = self._dependents.get(uid)
            if known is None:
                known = self._dependents[uid] = _Dependents({})
            known.blocking += (uid in blocked) - (uid in blocked_before)
            known.nodes[node.place] = node

    def _unlink(self, before: Node | None, now: Node | None) -> list[str]:
        """Take away the edges that are no more; give the waiting owners that became free."""
        if before is None or not before.references:
            return []
        released = []
        left = set() if now is None else {one.uid for one in now.references}
        all_blocked = before.all_blocked()
        for uid in {one.uid for one in before.references}:
            blocked = uid in all_blocked
            if uid not in left:
                known = self._dependents[uid]
                del known.nodes[before.place]
                known.blocking -= blocked
                if not known.nodes:
                    del self._dependents[uid]
            if blocked and uid in self.waiting and not self.blocked(uid):
                released.append(uid)
        self._returned(before.references)
        return released

    # --- cycles

    def waits_for_itself(self, uid: str) -> bool:
        """Whether an object that waits for its dependents is, by way of others that wait as well, one of those."""
        seen: set[str] = set()
        left = [uid]
        while left:
            for node in self.blocking(left.pop()):
                if node.uid == uid:
                    return True
                if node.uid in self.waiting and node.uid not in seen:
                    seen.add(node.uid)
                    left.append(node.uid)
        return False
