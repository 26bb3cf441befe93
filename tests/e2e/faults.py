"""Faults for servers with a shared three-member etcd: killed, paused and disconnected processes, and compactions."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
import urllib.request
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

from twisted.internet.epollreactor import EPollReactor
from twisted.internet.error import CannotListenError
from twisted.internet.threads import blockingCallFromThread

from kubetwist.testing import SubprocessServer
from kubetwist.testing.etcd import EtcdMember, EtcdNotReady, EtcdServer
from tests.storage.etcd.cutwire import CutWire

from .historyclients import Client, Clients, SlowWatcher

#: Seconds in which everything must work again when nothing is broken any more.
RECOVERY: Final = 90.0
#: Number of writes after which a server counts as recovered.
WRITES: Final = 10
#: kube-apiserver's key for the revision that is compacted to; who watches it forgets, too.
COMPACTED_KEY: Final = b"compact_rev_key"

#: What puts an end to a fault.
End = Callable[[], None]


class Wires:
    """The connections of one server to the members, through proxies of the test; thread-safe."""

    def __init__(self, members: Sequence[EtcdMember]) -> None:
        # A separate reactor: pytest-twisted runs the global one, and a test blocks it.
        self._reactor: Any = EPollReactor()
        threading.Thread(target=self._reactor.run, args=[False], name="wires", daemon=True).start()
        self._wires: list[CutWire] = self._there(lambda: [CutWire(self._reactor, member.port) for member in members])
        self._cut: set[int] = set()
        self.urls = [wire.url for wire in self._wires]

    def _there(self, call: Callable[[], Any]) -> Any:
        return blockingCallFromThread(self._reactor, call)

    def reset(self) -> None:
        """Break all connections; new ones are accepted."""

        def reset() -> None:
            for wire in self._wires:
                wire.break_connections()

        self._there(reset)

    def swallow(self) -> None:
        """Drop the members' responses from now on."""

        def swallow() -> None:
            for wire in self._wires:
                wire.swallowing = lambda data: True

        self._there(swallow)

    def spew(self) -> None:
        """Stop dropping; connections that lost data are broken."""

        def spew() -> None:
            for wire in self._wires:
                wire.break_connections()
                wire.swallowing = None

        self._there(spew)

    def cut(self, members: Sequence[int]) -> None:
        """Break the connections to some members, and refuse new ones."""
        for member in members:
            if member not in self._cut:
                self._cut.add(member)
                self._there(self._wires[member].cut)

    def mend(self, members: Sequence[int]) -> None:
        """Accept connections to some members again."""
        for member in members:
            if member in self._cut:
                self._mend(self._wires[member])
                self._cut.discard(member)

    def _mend(self, wire: CutWire) -> None:
        # Another process may use the port for an outgoing connection.
        deadline = time.monotonic() + RECOVERY
        while True:
            try:
                self._there(wire.accept_again)
                return
            except CannotListenError:
                assert time.monotonic() < deadline, "the port of a wire is not given back"
                time.sleep(0.1)

    def close(self) -> None:
        """Stop listening, and stop the reactor."""
        self.cut(range(len(self._wires)))
        self._reactor.callFromThread(self._reactor.stop)


class Faults:
    """
    All faults, by name.

    A fault is a method that breaks something and returns the function that repairs it. Two faults of the same kind are
    never active together.

    @ivar counts: The number of times each fault was injected.
    @ivar log_lines: The timed log of actions, for the analysis of failures.
    """

    def __init__(
        self,
        dice: random.Random,
        etcd: EtcdServer,
        servers: Sequence[SubprocessServer],
        wires: Sequence[Wires],
        clients: Clients,
    ) -> None:
        self._dice = dice
        self._etcd = etcd
        self._servers = servers
        self._wires = wires
        self._clients = clients
        self._threads = ThreadPoolExecutor(len(servers))
        self._starting: list[Future[SubprocessServer]] = []
        self.counts: Counter[str] = Counter()
        self.log_lines: list[str] = []
        self.sorts: dict[str, dict[str, Callable[[], End]]] = {
            "servers": {
                "kill a server": self.kill_server,
                "pause a server": self.pause_server,
                "kill both servers": self.kill_servers,
            },
            "members": {
                "kill etcd's leader": lambda: self.kill_members(self.leader()),
                "kill a minority": lambda: self.kill_members(self.followers()[:1]),
                "kill the majority": lambda: self.kill_members([*self.leader(), *self.followers()[:1]]),
                "kill all members": lambda: self.kill_members([0, 1, 2]),
                "pause etcd's leader": lambda: self.pause_members(self.leader()),
                "pause a minority": lambda: self.pause_members(self.followers()[:1]),
                "pause the majority": lambda: self.pause_members([*self.leader(), *self.followers()[:1]]),
            },
            "wires": {
                "reset connections": self.reset,
                "swallow answers": self.swallow,
                "cut off from a member": lambda: self.cut([self._dice.randrange(3)]),
                "cut off from all": lambda: self.cut([0, 1, 2]),
            },
            "compaction": {
                "compact under slow watchers": self.compact,
                "compact behind a server": self.compact_behind,
            },
        }

    def schedule(self, count: int) -> list[tuple[str, str]]:
        """Return a random schedule of faults, each equally often: kind and name."""
        kinds = [(sort, name) for sort, named in self.sorts.items() for name in named]
        schedule: list[tuple[str, str]] = []
        while len(schedule) < count:
            self._dice.shuffle(kinds)
            schedule += kinds
        return schedule[:count]

    def run(self, count: int, longest: float) -> None:
        """
        Inject the faults, one or two at a time, and check after each that writes succeed again.

        @param longest: Maximum duration of a fault in seconds.
        """
        schedule = self.schedule(count)
        while schedule:
            sort, name = schedule.pop()
            faults = [(sort, name)]
            if schedule and schedule[-1][0] != sort and self._dice.random() < 0.3:
                faults.append(schedule.pop())
            ends: list[tuple[str, End]] = []
            try:
                for sort, name in faults:
                    self.note(f"begin: {name}")
                    self.counts[name] += 1
                    ends.append((name, self.sorts[sort][name]()))
                    time.sleep(self._dice.choice((0.0, 0.05, 0.2)))
                time.sleep(longest * self._dice.choice((0.05, 0.05, 0.1, 0.1, 0.2, 0.5, 1.0)))
            finally:
                self._dice.shuffle(ends)
                for name, end in ends:
                    self.note(f"end: {name}")
                    end()
                    time.sleep(self._dice.choice((0.0, 0.0, 0.2)))
                starting, self._starting = self._starting, []
                for server in starting:
                    server.result()
            self.recovered(self._dice.randrange(WRITES, 10 * WRITES))

    def note(self, action: str) -> None:
        """Log an action with its time."""
        line = f"{time.monotonic():.3f} ({self._clients.acknowledged} writes) {action}"
        print(line, flush=True)
        self.log_lines.append(line)

    def recovered(self, writes: int = WRITES) -> None:
        """Wait until writes succeed again."""
        required, deadline = self._clients.acknowledged + writes, time.monotonic() + RECOVERY
        while self._clients.acknowledged < required:
            assert time.monotonic() < deadline, f"no writes in {RECOVERY} seconds after {self.log_lines[-4:]}"
            time.sleep(0.005)

    # --- servers

    def kill_server(self) -> End:
        """Kill one server; restart it afterwards."""
        server = self._dice.choice(self._servers)
        server.kill()
        return lambda: self._start([server])

    def kill_servers(self) -> End:
        """Kill all servers."""
        for server in self._servers:
            server.kill()
        return lambda: self._start(self._servers)

    def _start(self, servers: Sequence[SubprocessServer]) -> None:
        # Not waited for: what else is broken may keep them from being ready.
        self._starting += [self._threads.submit(server.start) for server in servers]

    def pause_server(self) -> End:
        """Pause one server."""
        pid = self._dice.choice(self._servers).pid
        os.kill(pid, signal.SIGSTOP)
        return lambda: os.kill(pid, signal.SIGCONT)

    # --- members of etcd

    def leader(self) -> list[int]:
        """Return a list with the number of the leader; of any member if there is no leader."""
        for member in self._etcd.members:
            status = self.ask(member, "maintenance/status", {})
            leader = status.get("leader") if status else None
            if leader not in (None, "0"):
                for number, other in enumerate(self._etcd.members):
                    if (self.ask(other, "maintenance/status", {}) or {"header": {}})["header"].get(
                        "member_id"
                    ) == leader:
                        return [number]
        return [self._dice.randrange(len(self._etcd.members))]

    def followers(self) -> list[int]:
        """Return all members but the leader."""
        leader = self.leader()
        numbers = [number for number in range(len(self._etcd.members)) if number not in leader]
        self._dice.shuffle(numbers)
        return numbers

    def kill_members(self, numbers: Sequence[int]) -> End:
        """Kill members; their ports refuse connections."""
        for wires in self._wires:
            wires.cut(numbers)
        for number in numbers:
            self._etcd.members[number].kill()

        def end() -> None:
            for _ in range(3):
                try:
                    self._etcd.start_stopped_members()
                    break
                except EtcdNotReady as error:
                    # Another process used one of the ports for a moment.
                    assert "address already in use" in str(error), error
                    time.sleep(1)
            for wires in self._wires:
                wires.mend(numbers)

        return end

    def pause_members(self, numbers: Sequence[int]) -> End:
        """Pause members, which process requests that arrive during the pause later."""
        for number in numbers:
            self._etcd.members[number].signal(signal.SIGSTOP)

        def end() -> None:
            for number in numbers:
                self._etcd.members[number].signal(signal.SIGCONT)

        return end

    def ask(self, member: EtcdMember, path: str, body: Any) -> dict[str, Any] | None:
        """Request the status of a member; L{None} if it does not respond."""
        if not member.running:
            return None
        request = urllib.request.Request(f"{member.url}/v3/{path}", json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=1) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except (OSError, ValueError):
            return None

    # --- wires

    def reset(self) -> End:
        """Break the connections of a server several times in a row."""
        wires = self._dice.choice(self._wires)
        for _ in range(self._dice.randrange(1, 5)):
            wires.reset()
            time.sleep(0.02)
        return wires.reset

    def swallow(self) -> End:
        """Drop the responses to a server, although its requests are executed."""
        wires = self._dice.choice(self._wires)
        wires.swallow()
        return wires.spew

    def cut(self, members: Sequence[int]) -> End:
        """Disconnect a server from some members."""
        wires = self._dice.choice(self._wires)
        wires.cut(members)
        return lambda: wires.mend(members)

    # --- compaction

    def _compact(self) -> None:
        """Compact up to the current revision, as another server would."""
        for member in self._etcd.members:
            found = self.ask(member, "kv/range", {"key": b64encode(COMPACTED_KEY).decode()})
            if found is None:
                continue
            revision = found["header"]["revision"]
            put = {"key": b64encode(COMPACTED_KEY).decode(), "value": b64encode(revision.encode()).decode()}
            if self.ask(member, "kv/put", put) is not None:
                self.ask(member, "kv/compaction", {"revision": revision, "physical": True})
                self.note(f"compacted to {revision}")
                return

    def _await_writes(self, count: int) -> None:
        """Wait for some writes with a timeout, as another fault may prevent them."""
        required, deadline = self._clients.acknowledged + count, time.monotonic() + 2
        while self._clients.acknowledged < required and time.monotonic() < deadline:
            time.sleep(0.005)

    def compact(self) -> End:
        """Pause the slow watchers, and compact the events that they have not read."""
        slow = [watcher for watcher in self._clients.watchers if isinstance(watcher, SlowWatcher)]
        for watcher in slow:
            watcher.held.set()
        self._await_writes(60)
        self._compact()

        def end() -> None:
            for watcher in slow:
                watcher.held.clear()

        return end

    def compact_behind(self) -> End:
        """Compact the events that a disconnected server has not received."""
        end = self.cut([0, 1, 2])
        self._await_writes(60)
        self._compact()
        return end


class LocalClients(Clients):
    """Clients of several servers, which choose a server for each connection; half of the watchers are slow."""

    def __init__(self, servers: Sequence[SubprocessServer], writers: int, watchers: int, patience: float) -> None:
        """
        @param patience: Seconds after which clients take an answer for lost.
        """
        dice = random.Random()
        super().__init__(lambda: dice.choice(servers).connection, "default", writers, watchers)
        names = self.watchers[0].names
        self.watchers += [
            SlowWatcher(self.history, self.clients[0].choose, "default", f"s{number}", names)
            for number in range(watchers)
        ]
        everybody: list[Client] = [*self.clients, *self.watchers]
        for client in everybody:
            client.patience = patience
