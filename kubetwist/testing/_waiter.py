"""
The client of C{wait_for}: it lists and watches, and describes the last object seen in its error.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from attrs import frozen

from ..api.jsontypes import JSONObject, JSONValue
from ._connection import Connection
from ._criteria import Criteria, Where
from ._describing import conditions_of, events_table, to_yaml
from ._objectwatch import DeadlineError, ObjectClient, ObjectWatch, RequestRefusedError
from ._references import Reference, Resource, ResourceTable, UnknownResourceError
from ._waiting import WaitTimeout

if TYPE_CHECKING:
    pass

#: Seconds for the requests that complete the text of an error.
_DESCRIBE_TIMEOUT: Final = 2.0
#: Number of objects in the text of an error.
_MAX_OBJECTS: Final = 3

#: The resources of servers, as they were read last.
_tables: WeakKeyDictionary[Connection, ResourceTable] = WeakKeyDictionary()


@frozen
class Wait:
    """
    What C{wait_for} waits for.

    @ivar namespace: C{""} for all namespaces.
    @ivar absent: Whether to wait until no object meets the criteria.
    @ivar count: The number of objects that meet the criteria; L{None} for all of them, and at least one.
    """

    reference: Reference
    criteria: Criteria
    namespace: str
    selection: Mapping[str, str]
    absent: bool
    count: int | None

    @classmethod
    def of(
        cls,
        resource: object,
        name: str = "",
        *,
        condition: str | Iterable[str] | None = None,
        jsonpath: str | Iterable[str] | Mapping[str, JSONValue] | None = None,
        where: Where | None = None,
        absent: bool = False,
        namespace: str | None = None,
        all_namespaces: bool = False,
        label_selector: str = "",
        field_selector: str = "",
        count: int | None = None,
    ) -> Wait:
        """
        Check the arguments of L{WaitingMixin.wait_for}, and return what to wait for.

        @raise ValueError: They contradict each other, or one is malformed.
        @raise TypeError: C{resource} is no reference.
        """
        reference = Reference.of(resource, name)
        criteria = Criteria.of(condition, jsonpath, where)
        if absent and count is not None:
            raise ValueError("absent=True and count= cannot be combined")
        if reference.name and (label_selector or field_selector or all_namespaces or count is not None):
            raise ValueError(f"{reference.name!r} names one object, so there is no selector, all_namespaces or count")
        if all_namespaces and namespace is not None:
            raise ValueError("namespace= and all_namespaces=True cannot be combined")
        selection = {"labelSelector": label_selector, "fieldSelector": field_selector}
        if reference.name:
            selection["fieldSelector"] = f"metadata.name={reference.name}"
        return cls(
            reference,
            criteria,
            "" if all_namespaces else namespace or reference.namespace or "default",
            {key: value for key, value in selection.items() if value},
            absent,
            count,
        )

    def describe(self, resource: Resource | None) -> str:
        """Return what is waited for as text."""
        text = resource.text if resource is not None else self.reference.text
        if self.reference.name:
            text += f"/{self.reference.name}"
        elif self.selection:
            text += f" ({', '.join(self.selection.values())})"
        if resource is None or resource.namespaced:
            text += f" in namespace {self.namespace}" if self.namespace else " in all namespaces"
        criteria = self.criteria.text
        if self.absent:
            criteria = f"absent with {criteria}" if criteria else "absent"
        elif self.count is not None:
            criteria = f"{self.count} objects" + (f" with {criteria}" if criteria else "")
        return f"{text}: {criteria or 'exists'}"

    def problems(self, objects: Iterable[JSONObject]) -> tuple[list[JSONObject], list[str]]:
        """
        Return the objects that meet the criteria, and what is missing; nothing is missing at the end of the wait.

        @param objects: All objects of the selection.
        """
        met, failed = [], []
        seen = 0
        for obj in objects:
            if self.absent and self.reference.uid and obj["metadata"].get("uid") != self.reference.uid:
                continue  # Another object of the same name.
            seen += 1
            problems = self.criteria.problems(obj)
            if problems:
                failed.append(f"{obj['metadata']['name']}: {'; '.join(problems)}")
            else:
                met.append(obj)
        if self.absent:
            return [], [f"{obj['metadata']['name']} exists" for obj in met]
        if self.count is not None:
            problems = [] if len(met) == self.count else [f"{len(met)} of {seen} objects meet this", *failed]
            return met, problems
        if not seen:
            failed.append("there is no such object")
        return met, failed


class Waiter:
    """Waits with one client. It blocks, and C{cancel} ends it from another thread."""

    def __init__(self, connection: Connection, timeout: float) -> None:
        """
        @param timeout: Seconds of real time.
        @raise ValueError: The timeout is negative.
        """
        if timeout < 0:
            raise ValueError(f"timeout is {timeout}, must not be negative")
        self._connection = connection
        self._timeout = timeout
        self._client = ObjectClient(connection, time.monotonic() + timeout)
        self._resource: Resource | None = None
        self._watch: ObjectWatch | None = None
        self._problems: list[str] = []

    def cancel(self) -> None:
        """End the wait, from any thread; it raises L{WaitTimeout}."""
        self._client.cancel()

    def run(self, wait: Wait) -> Any:
        """
        Wait.

        @return: The object, or the list of objects of a selection; L{None} if they are absent.
        @raise WaitTimeout: The time is over.
        @raise UnknownResourceError: The server does not have the resource.
        @raise RequestRefusedError: The server refused a request.
        """
        try:
            while True:
                try:
                    met = self._follow(wait)
                except RequestRefusedError as error:
                    if error.code != 404:
                        raise
                    # The definition of the resource was deleted, or its scope or version has changed.
                    _tables.pop(self._connection, None)
                    self._client.retry()
                    continue
                if wait.absent:
                    return None
                return met[0] if wait.reference.name else met
        except DeadlineError:
            raise WaitTimeout(self._describe(wait)) from None
        finally:
            self._client.disconnect()

    def _follow(self, wait: Wait) -> list[JSONObject]:
        resource = self._resource = self._find(wait.reference)
        if not {"list", "watch"} <= resource.verbs:
            raise UnknownResourceError(f"{resource.text} cannot be listed and watched")
        watch = ObjectWatch(self._client, resource, resource.path(wait.namespace), wait.selection)
        self._watch = watch
        for _ in watch.changes():
            met, self._problems = wait.problems(watch.objects.values())
            if not self._problems:
                return met
        raise AssertionError("the changes do not end")

    def _find(self, reference: Reference) -> Resource:
        """
        Return a resource. If the reference has its group, it may be served later: wait for its definition.

        @raise UnknownResourceError: There is no such resource, and the reference has no group.
        """
        table = _tables.get(self._connection)
        if table is not None:
            with suppress(UnknownResourceError):
                return table.find(reference)
        table = self._discover(self._client)
        try:
            return table.find(reference)
        except UnknownResourceError as error:
            if not reference.group:
                raise
            self._problems = [str(error)]
        services = table.find(Reference("apiservices", "apiregistration.k8s.io"))
        try:
            for _ in ObjectWatch(self._client, services, services.path(), {}).changes():
                try:
                    return self._discover_again().find(reference)
                except UnknownResourceError as error:
                    self._problems = [str(error)]
        finally:
            self._client.disconnect()
        raise AssertionError("the changes do not end")

    def _discover(self, client: ObjectClient) -> ResourceTable:
        table = _tables[self._connection] = ResourceTable.fetch(client.discover)
        return table

    def _discover_again(self) -> ResourceTable:
        """Fetch the discovery documents while the client is busy with a watch."""
        client = ObjectClient(self._connection, self._client.deadline)
        try:
            return self._discover(client)
        finally:
            client.disconnect()

    # --- the text of the error

    def _describe(self, wait: Wait) -> str:
        lines = [f"{wait.describe(self._resource)}: not within {self._timeout:g} s"]
        lines += [f"  {problem}" for problem in self._problems[:10]]
        watch = self._watch
        if watch is None or not watch.synced:
            return "\n".join(lines if self._problems else [*lines, "  the server did not answer"])
        objects = list(watch.objects.values())
        if not objects:
            if watch.last is None:
                lines.append("no object was seen")
            else:
                lines += ["last object seen, which was deleted:", *_indent(to_yaml(watch.last).splitlines())]
        elif wait.reference.name:
            conditions = conditions_of(objects[0])
            if conditions:
                lines += ["conditions:", *_indent(conditions)]
        lines += self._events(wait)
        if objects:
            lines.append("last object seen:" if wait.reference.name else f"last objects seen ({len(objects)}):")
            for obj in objects[:_MAX_OBJECTS]:
                lines += _indent(["---", *to_yaml(obj).splitlines()][0 if len(objects) > 1 else 1 :])
        return "\n".join(lines)

    def _events(self, wait: Wait) -> list[str]:
        """Return the events of the object, or of the objects' kind and namespace, as lines."""
        resource = self._resource
        assert resource is not None, "the objects were listed"
        selector = f"involvedObject.kind={resource.kind}"
        if wait.reference.name:
            selector += f",involvedObject.name={wait.reference.name}"
        namespace = (wait.namespace if resource.namespaced else "default") or ""
        client = ObjectClient(self._connection, time.monotonic() + _DESCRIBE_TIMEOUT)
        try:
            events = Resource("", "v1", "events", "event", "Event", (), True, frozenset())
            listed = client.get(f"{events.path(namespace)}?fieldSelector={selector}")
        except (RequestRefusedError, DeadlineError):
            return []
        finally:
            client.disconnect()
        lines = events_table(listed.get("items") or ())
        return ["events:", *_indent(lines)] if lines else []


def _indent(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)
