"""Clients that write, read and watch ConfigMaps over HTTPS while servers restart, and log the responses."""

from __future__ import annotations

import http.client
import json
import random
import ssl
import threading
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from kubetwist.testing._connection import Connection
from kubetwist.testing.history import Action, History, Operation, Outcome, WatchHistory

#: Seconds until a client treats a response as lost.
PATIENCE = 20.0
#: Seconds until a client retries a failed connection.
AGAIN = 0.05
#: The name of the last created object: a watcher that has seen it has seen everything.
LAST = "the-last"

_REASONS = {"Conflict": Outcome.CONFLICT, "AlreadyExists": Outcome.EXISTS, "NotFound": Outcome.MISSING}

#: Where to send the next request: asked each time, since servers come and go.
Choose = Callable[[], Connection]


class Client(threading.Thread):
    """
    Client that works on a few objects of one namespace until it is stopped.

    @ivar acknowledged: The number of acknowledged writes.
    @ivar problems: Responses that a server must not send.
    @ivar patience: Seconds until a response is treated as lost.
    """

    patience = PATIENCE

    def __init__(self, history: History, choose: Choose, namespace: str, name: str, names: Sequence[str]) -> None:
        super().__init__(name=name, daemon=True)
        self.history, self.choose, self.namespace = history, choose, namespace
        self.names = names
        self.dice = random.Random(name)
        self.stopping = threading.Event()
        self.acknowledged = 0
        self.problems: list[str] = []
        self.known: dict[str, int] = {}
        self._connection: http.client.HTTPSConnection | None = None
        self._chosen: Connection | None = None
        self._context: ssl.SSLContext | None = None
        self._number = 0

    @property
    def path(self) -> str:
        """Return the path of the collection."""
        return f"/api/v1/namespaces/{self.namespace}/configmaps"

    def key(self, name: str) -> str:
        """Return the key of an object in the history."""
        return f"{self.namespace}/{name}"

    def run(self) -> None:
        """Run random steps until stopped."""
        try:
            while not self.stopping.is_set():
                self.step()
        finally:
            self.disconnect()

    def step(self) -> None:
        """Run one random step."""
        choice = self.dice.random()
        name = self.dice.choice(self.names)
        if choice < 0.08:
            self.list(self.dice.choice(("", "", "?resourceVersion=0", "?limit=2")))
        elif choice < 0.2:
            self.read(name, self.dice.choice(("", "", "?resourceVersion=0")))
        elif name not in self.known:
            self.create(name)
        elif choice < 0.35:
            self.delete(name)
        elif choice < 0.55:
            self.patch(name)
        else:
            self.update(name)

    # --- what it does

    def create(self, name: str) -> None:
        """Create an object."""
        operation = self._begin(Action.CREATE, name, value=self._value())
        self._write(operation, name, "POST", self.path, self._object(name, operation.value))

    def update(self, name: str) -> None:
        """Replace an object with the last seen resourceVersion."""
        operation = self._begin(Action.UPDATE, name, value=self._value(), expected=self.known[name])
        body = self._object(name, operation.value, self.known[name])
        self._write(operation, name, "PUT", f"{self.path}/{name}", body)

    def patch(self, name: str) -> None:
        """Patch an object unconditionally."""
        operation = self._begin(Action.UPDATE, name, value=self._value())
        body = {"data": {"value": operation.value}}
        self._write(operation, name, "PATCH", f"{self.path}/{name}", body)

    def delete(self, name: str) -> None:
        """Delete an object with the last seen resourceVersion."""
        operation = self._begin(Action.DELETE, name, expected=self.known[name])
        body = {"preconditions": {"resourceVersion": str(self.known[name])}}
        self._write(operation, name, "DELETE", f"{self.path}/{name}", body)

    def read(self, name: str, query: str = "") -> None:
        """Read an object; without a query the result must be the newest state."""
        operation = self._begin(Action.READ, name)
        operation.consistent = not query
        code, answer = self._request("GET", f"{self.path}/{name}{query}")
        if code == 200:
            operation.found(*self._learn(name, answer))
        else:
            self._failed(operation, name, code, answer)

    def list(self, query: str = "") -> int:
        """
        List all objects, in several pages if the query has a limit.

        @return: The revision of the list; 0 without a response.
        """
        operation = self.history.begin(Action.LIST, f"{self.namespace}/", client=self.name)
        operation.consistent = query != "?resourceVersion=0"
        code, answer = self._request("GET", f"{self.path}{query}")
        found = answer["items"] if code == 200 else []
        while code == 200 and answer["metadata"].get("continue"):
            code, answer = self._request("GET", f"{self.path}{query}&continue={quote(answer['metadata']['continue'])}")
            found += answer["items"] if code == 200 else []
        if code != 200:
            return 0
        revision = int(answer["metadata"]["resourceVersion"])
        items = {item["metadata"]["name"]: item for item in found if "value" in (item.get("data") or {})}
        self.known = {}
        operation.listed(revision, {self.key(name): self._learn(name, item) for name, item in items.items()})
        return revision

    def _begin(self, action: Action, name: str, value: str = "", expected: int | None = None) -> Operation:
        return self.history.begin(action, self.key(name), value, expected, self.name)

    def _value(self) -> str:
        self._number += 1
        return f"{self.name}-{self._number}"

    def _object(self, name: str, value: str, revision: int = 0) -> dict[str, Any]:
        metadata = {"name": name, "resourceVersion": str(revision)} if revision else {"name": name}
        return {"metadata": metadata, "data": {"value": value, "pad": "x" * self.dice.choice((0, 100, 5000))}}

    def _write(self, operation: Operation, name: str, method: str, path: str, body: Any) -> None:
        code, answer = self._request(method, path, body)
        if code in (200, 201):
            self.acknowledged += 1
            if operation.action is Action.DELETE:
                self.known.pop(name, None)
                operation.done()
            else:
                operation.done(self._learn(name, answer)[0])
        else:
            self._failed(operation, name, code, answer)

    def _failed(self, operation: Operation, name: str, code: int, answer: Any) -> None:
        outcome = _REASONS.get(answer.get("reason", ""), Outcome.UNKNOWN)
        if code == 429:
            outcome = Outcome.REFUSED
        elif outcome is Outcome.UNKNOWN and code and code < 500:
            self.problems.append(f"{operation}: {code} {answer}")
        operation.failed(outcome)
        if outcome is Outcome.MISSING:
            self.known.pop(name, None)
        elif outcome in (Outcome.CONFLICT, Outcome.EXISTS):
            self.read(name)

    def _learn(self, name: str, obj: Any) -> tuple[int, str]:
        revision = int(obj["metadata"]["resourceVersion"])
        self.known[name] = revision
        return revision, obj["data"]["value"]

    # --- HTTP

    def _request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return the status and the response; 0 without a response."""
        try:
            connection = self.connect()
            text = None if body is None else json.dumps(body)
            kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
            connection.request(method, path, text, {"Content-Type": kind} | self._authorization)
            response = connection.getresponse()
            answer = json.loads(response.read())
            if response.status >= 500:
                # Another server may fare better.
                self.disconnect()
                self.stopping.wait(AGAIN)
            return response.status, answer
        except (OSError, http.client.HTTPException, ValueError):
            self.disconnect()
            self.stopping.wait(AGAIN)
            return 0, {}

    def connect(self) -> http.client.HTTPSConnection:
        """Return a connection to the chosen server, or the existing one to the server that was chosen before."""
        if self._connection is None:
            chosen = self.choose()
            if chosen is not self._chosen:
                self._chosen, self._context = chosen, chosen.ssl_context()
                self._authorization = {"Authorization": f"Bearer {chosen.token}"}
            self._connection = http.client.HTTPSConnection(
                "127.0.0.1", chosen.port, context=self._context, timeout=self.patience
            )
        return self._connection

    def disconnect(self) -> None:
        """Close the connection; the next one may be to another server."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class Watcher(Client):
    """
    Watcher that lists and watches one namespace, and resumes until it has seen the last object.

    @ivar expired: The number of 410 responses.
    """

    expired = 0

    def run(self) -> None:
        """Watch until the last object is seen."""
        revision = 0
        try:
            while not self.stopping.is_set():
                if not revision:
                    revision = self.list()
                    if self.key(LAST) in self.known or LAST in self.known:
                        return
                    continue
                watched = self.history.watch(f"{self.namespace}/", revision, self.name)
                self._watch(watched)
                if watched.complete:
                    return
                revision = 0 if watched.ended else watched.last
        finally:
            self.disconnect()

    def _watch(self, watched: WatchHistory) -> None:
        path = f"{self.path}?watch=1&allowWatchBookmarks=1&resourceVersion={watched.start}"
        try:
            connection = self.connect()
            connection.request("GET", path, headers=self._authorization)
            response = connection.getresponse()
            if response.status != 200:
                self._ended(watched, json.loads(response.read()))
                return
            for line in response:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    self._ended(watched, event["object"])
                    break
                self._show(watched, event)
                if watched.complete or self.stopping.is_set():
                    break
        except (OSError, http.client.HTTPException, ValueError):
            self.stopping.wait(AGAIN)
        finally:
            self.disconnect()

    def _show(self, watched: WatchHistory, event: Any) -> None:
        meta = event["object"]["metadata"]
        revision = int(meta["resourceVersion"])
        if event["type"] == "BOOKMARK":
            watched.bookmark(revision)
        elif "value" in (event["object"].get("data") or {}):
            watched.event(event["type"], self.key(meta["name"]), revision, event["object"]["data"]["value"])
            watched.complete = meta["name"] == LAST

    def _ended(self, watched: WatchHistory, status: Any) -> None:
        if status.get("code") == 410:
            self.expired += 1
            watched.expired()
        else:
            self.stopping.wait(AGAIN)


class SlowWatcher(Watcher):
    """
    Watcher that pauses reading, or reconnecting, while it is held.

    @ivar held: Whether it is held; set by the test.
    """

    def __init__(self, history: History, choose: Choose, namespace: str, name: str, names: Sequence[str]) -> None:
        super().__init__(history, choose, namespace, name, names)
        self.held = threading.Event()

    def _show(self, watched: WatchHistory, event: Any) -> None:
        super()._show(watched, event)
        if self.held.is_set():
            if self.dice.random() < 0.5:
                # What has arrived by then is lost; it watches again from where it was.
                self.disconnect()
                self._wait()
                raise ConnectionAbortedError
            self._wait()

    def _wait(self) -> None:
        while self.held.is_set() and not self.stopping.is_set():
            self.stopping.wait(AGAIN)


class Clients:
    """Clients and watchers of one namespace."""

    def __init__(self, choose: Choose, namespace: str, writers: int, watchers: int, objects: int = 6) -> None:
        self.history = History()
        names = [f"cm-{number}" for number in range(objects)]
        self.clients = [Client(self.history, choose, namespace, f"c{number}", names) for number in range(writers)]
        self.watchers = [Watcher(self.history, choose, namespace, f"w{number}", names) for number in range(watchers)]
        self._last = Client(self.history, choose, namespace, "last", names)

    def start(self) -> None:
        """Start all clients and watchers."""
        for client in (*self.clients, *self.watchers):
            client.start()

    @property
    def acknowledged(self) -> int:
        """Return the number of acknowledged writes."""
        return sum(client.acknowledged for client in self.clients)

    @property
    def problems(self) -> list[str]:
        """Return the responses that a server must not send."""
        return [problem for client in (*self.clients, *self.watchers) for problem in client.problems]

    def stop(self) -> None:
        """Stop all clients."""
        for client in (*self.clients, *self.watchers):
            client.stopping.set()

    def finish(self) -> History:
        """Stop the clients, create the last object, wait until the watchers see it, and list all objects."""
        for client in self.clients:
            client.stopping.set()
        for client in self.clients:
            client.join(PATIENCE * 2)
        while LAST not in self._last.known:
            self._last.create(LAST)
        for watcher in self.watchers:
            watcher.join(PATIENCE * 5)
            assert not watcher.is_alive(), f"{watcher.name} has not seen the last object"
        while not self._last.list():
            pass
        self._last.disconnect()
        return self.history
