"""The built-in cluster roles that gather the rules of others, C{admin}, C{edit} and C{view}: kept filled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import orjson

from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from ..api.errors import APIStatusError
from ..api.options import UpdateOptions
from ..api.rbacrules import Rule
from ..api.resource import JSONObject
from ..api.selectors import SelectorError, label_selector_from_object
from ..interfaces import IWatchSink
from .bootstraproles import AGGREGATED
from .grants import GROUP
from .scope import RequestScope

if TYPE_CHECKING:
    from .store import Store
    from .stores import Stores

#: Seconds until a change that could not be followed is looked at again.
RETRY = 1.0


def gathered(role: JSONObject, roles: Mapping[str, JSONObject]) -> list[Rule]:
    """The rules that a role with an C{aggregationRule} should have: each once, in the order of selectors and names."""
    rules: list[Rule] = []
    own = role["metadata"]["name"]
    for selector in (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ():
        try:
            matches = label_selector_from_object(selector).matches
        except SelectorError:
            continue
        for name in sorted(roles):
            other = roles[name]
            if name != own and matches(other["metadata"].get("labels") or {}):
                rules += [rule for rule in other.get("rules") or () if rule not in rules]
    return rules


def stale(roles: Mapping[str, JSONObject]) -> dict[str, list[Rule]]:
    """The rules of those built-in roles that should have others than they have; changes them in C{roles}."""
    changed: dict[str, list[Rule]] = {}
    # They gather from each other, in a line at most.
    for _ in AGGREGATED:
        for name in AGGREGATED:
            role = roles.get(name)
            if role is None or not role.get("aggregationRule"):
                continue
            rules = gathered(role, roles)
            if rules != (role.get("rules") or []):
                role["rules"] = changed[name] = rules
    return changed


async def fill(store: Store) -> None:
    """Give the built-in roles the rules that they should have."""
    roles = {record.name: orjson.loads(record.item) for record in store.cache.list().records}

    async def write(name: str, rules: list[Rule]) -> None:
        def change(obj: JSONObject | None) -> JSONObject:
            assert obj is not None, "a patch makes nothing"
            return {**obj, "rules": rules or None}

        try:
            await store.update(RequestScope(), name, change, UpdateOptions(), patching=True)
        except APIStatusError as error:
            if error.code != 404:
                raise

    changed = stale(roles)
    await gatherResults([Deferred.fromCoroutine(write(*one)) for one in changed.items()], consumeErrors=True)


@implementer(IWatchSink)
class Aggregation:
    """Looks after them whenever a labelled cluster role changes."""

    _log = Logger()

    def __init__(self, stores: Stores, reactor: IReactorTime) -> None:
        self._store = stores.get(GROUP, "clusterroles")
        self._reactor = reactor
        self._watch: Any = None
        self._planned: IDelayedCall | None = None
        self._running: Deferred[None] | None = None
        self._again = False
        self._stopped = False

    async def start(self) -> None:
        """Fill them, and keep them filled from now on."""
        self._follow()
        await fill(self._store)

    def stop(self) -> None:
        """Look no longer."""
        self._stopped = True
        if self._planned is not None:
            self._planned.cancel()
            self._planned = None
        if self._watch is not None:
            self._watch.stop()

    def send(self, kind: str, record: Any, event: Any) -> None:
        """See L{IWatchSink.send}: what bears no label is gathered by nobody."""
        previous = getattr(event, "previous", None)
        if record.labels or record.name in AGGREGATED or (previous is not None and previous.labels):
            self._plan(0)

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """Nothing changed."""

    def end(self, error: Any) -> None:
        """The cache starts over: so do we."""
        self._watch = None
        self._plan(RETRY)

    def _follow(self) -> None:
        self._watch = self._store.cache.watch("", sink=self)

    def _plan(self, delay: float) -> None:
        if self._planned is None and not self._stopped:
            self._planned = self._reactor.callLater(delay, self._look)

    def _look(self) -> None:
        self._planned = None
        if self._running is not None:
            self._again = True
            return
        if self._watch is None:
            if not self._store.cache.ready:
                self._plan(RETRY)
                return
            self._follow()
        self._running = Deferred.fromCoroutine(fill(self._store))
        self._running.addErrback(self._failed).addCallback(self._looked)

    def _failed(self, failure: Failure) -> None:
        self._log.failure("aggregated cluster roles could not be filled", failure)

    def _looked(self, _: None) -> None:
        self._running = None
        if self._again:
            self._again = False
            self._plan(0)
