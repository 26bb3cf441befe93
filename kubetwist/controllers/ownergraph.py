"""
Who depends on whom, as far as anybody depends on anybody.

Only objects that name owners are nodes, and only uids that are named as owners have a list of dependents; all others
cost nothing. That an owner exists is not known here: whoever uses the graph looks it up. No I/O, no clock.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from attrs import define


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
    def of(cls, entry: Mapping[str, Any]) -> Reference:
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


@define(eq=False)
class _Dependents:
    """
    What names one owner.

    @ivar shared: The references of dependents, so that those which are alike are one.
    @ivar blocking: How many of them block.
    """

    nodes: dict[Place, Node]
    shared: dict[tuple[Reference, ...], tuple[Reference, ...]]
    blocking: int = 0


class OwnerGraph:
    """
    Nodes and their dependents.

    @ivar waiting: By uid, the objects that are deleted in the foreground: they wait for their dependents.
    """

    def __init__(self) -> None:
        self.waiting: dict[str, Place] = {}
        self._nodes: dict[Place, Node] = {}
        self._dependents: dict[str, _Dependents] = {}

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
        node = Node(place, uid, self._one(named), deleting, orphans, foreground)
        if before is not None and before.references == named:
            node.references = before.references
        fresh = before is None or before.references != named
        if named:
            self._nodes[place] = node
            self._link(node)
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

    def _one(self, references: tuple[Reference, ...]) -> tuple[Reference, ...]:
        """The references that another dependent has already, if they are the same."""
        if not references:
            return ()
        known = self._dependents.get(references[0].uid)
        return references if known is None else known.shared.get(references, references)

    def _link(self, node: Node) -> None:
        references = node.references
        for uid in {one.uid for one in references}:
            known = self._dependents.get(uid)
            if known is None:
                known = self._dependents[uid] = _Dependents({}, {})
            there = known.nodes.get(node.place)
            known.blocking += node.blocks(uid) - (there is not None and there.blocks(uid))
            known.nodes[node.place] = node
            known.shared.setdefault(references, references)
            if len(known.shared) > 2 * len(known.nodes) + 8:
                known.shared = {one.references: one.references for one in known.nodes.values()}

    def _unlink(self, before: Node | None, now: Node | None) -> list[str]:
        """Take away the edges that are no more; give the waiting owners that became free."""
        if before is None:
            return []
        released = []
        left = set() if now is None else {one.uid for one in now.references}
        for uid in {one.uid for one in before.references}:
            blocked = before.blocks(uid)
            if uid not in left:
                known = self._dependents[uid]
                del known.nodes[before.place]
                known.blocking -= blocked
                if not known.nodes:
                    del self._dependents[uid]
            if blocked and uid in self.waiting and not self.blocked(uid):
                released.append(uid)
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
