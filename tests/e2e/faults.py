"""Faults for servers that share an etcd of three members: what is killed, paused, cut off and compacted, and when."""

from __future__ import annotations

import json
import os
import random
import signal
import time
import urllib.request
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

from twisted.internet.error import CannotListenError
from twisted.internet.threads import blockingCallFromThread

from kubetwist.testing import SubprocessServer
from kubetwist.testing._reactorthread import running_reactor
from kubetwist.testing.etcd import EtcdMember, EtcdNotReady, EtcdServer
from tests.storage.etcd.cutwire import CutWire

from .historyclients import Client, Clients, SlowWatcher

#: Seconds in which everything must work again when nothing is broken any more.
RECOVERY: Final = 90.0
#: At least so many writes show that it does.
WRITES: Final = 10
#: kube-apiserver's key for the revision that is compacted to; who watches it forgets, too.
COMPACTED_KEY: Final = b"compact_rev_key"

#: What puts an end to a fault.
End = Callable[[], None]


class Wires:
    """What one server has between it and the members; can be used in any thread."""

    def __init__(self, members: Sequence[EtcdMember]) -> None:
        self._reactor = running_reactor()
        self._wires: list[CutWire] = self._there(lambda: [CutWire(self._reactor, member.port) for member in members])
        self._cut: set[int] = set()
        self.urls = [wire.url for wire in self._wires]

    def _there(self, call: Callable[[], Any]) -> Any:
        return blockingCallFromThread(self._reactor, call)

    def reset(self) -> None:
        """Break all connections; new ones can be made."""

        def reset() -> None:
            for wire in self._wires:
                wire.break_connections()

        self._there(reset)

    def swallow(self) -> None:
        """Lose what the members answer, from now on."""

        def swallow() -> None:
            for wire in self._wires:
                wire.swallowing = lambda data: True

        self._there(swallow)

    def spew(self) -> None:
        """Lose nothing more; connections that have lost something are broken."""

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
        """Take connections to some members again."""
        for member in members:
            if member in self._cut:
                self._mend(self._wires[member])
                self._cut.discard(member)

    def _mend(self, wire: CutWire) -> None:
        # Somebody may have got the port meanwhile, for a connection of his own.
        until = time.monotonic() + RECOVERY
        while True:
            try:
                self._there(wire.mend)
                return
            except CannotListenError:
                assert time.monotonic() < until, "the port of a wire is not given back"
                time.sleep(0.1)

    def close(self) -> None:
        """Listen no more."""
        self.cut(range(len(self._wires)))


class Faults:
    """
    All faults that there are, by name.

    A fault is a method that breaks something and returns what mends it. No two of the same sort are there at a time.

    @ivar counts: How often each was begun.
    @ivar told: What was done when, to be read when something is found.
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
        self.told: list[str] = []
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
        """So many faults, each as often as any other, in an order that the dice tell: sort and name."""
        kinds = [(sort, name) for sort, named in self.sorts.items() for name in named]
        schedule: list[tuple[str, str]] = []
        while len(schedule) < count:
            self._dice.shuffle(kinds)
            schedule += kinds
        return schedule[:count]

    def run(self, count: int, longest: float) -> None:
        """
        Have so many faults, one or two at a time, and see after each that writes are done again.

        @param longest: Seconds that one is there at most.
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

    def note(self, what: str) -> None:
        """Remember what is done, and when."""
        line = f"{time.monotonic():.3f} ({self._clients.acknowledged} writes) {what}"
        print(line, flush=True)
        self.told.append(line)

    def recovered(self, writes: int = WRITES) -> None:
        """Wait until writes are done again."""
        wanted, until = self._clients.acknowledged + writes, time.monotonic() + RECOVERY
        while self._clients.acknowledged < wanted:
            assert time.monotonic() < until, f"no writes in {RECOVERY} seconds after {self.told[-4:]}"
            time.sleep(0.005)

    # --- servers

    def kill_server(self) -> End:
        """One server is killed; it is started again at the end."""
        server = self._dice.choice(self._servers)
        server.kill()
        return lambda: self._start([server])

    def kill_servers(self) -> End:
        """No server is left."""
        for server in self._servers:
            server.kill()
        return lambda: self._start(self._servers)

    def _start(self, servers: Sequence[SubprocessServer]) -> None:
        # Not waited for: what else is broken may keep them from being ready.
        self._starting += [self._threads.submit(server.start) for server in servers]

    def pause_server(self) -> End:
        """One server stands still."""
        pid = self._dice.choice(self._servers).pid
        os.kill(pid, signal.SIGSTOP)
        return lambda: os.kill(pid, signal.SIGCONT)

    # --- members of etcd

    def leader(self) -> list[int]:
        """The number of the leader, in a list; of any member where nobody knows a leader."""
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
        """All others."""
        leader = self.leader()
        others = [number for number in range(len(self._etcd.members)) if number not in leader]
        self._dice.shuffle(others)
        return others

    def kill_members(self, numbers: Sequence[int]) -> End:
        """Kill members; nobody listens at their ports."""
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
                    # Its ports were given to somebody else for a moment.
                    assert "address already in use" in str(error), error
                    time.sleep(1)
            for wires in self._wires:
                wires.mend(numbers)

        return end

    def pause_members(self, numbers: Sequence[int]) -> End:
        """Members stand still; what they are sent meanwhile they do later."""
        for number in numbers:
            self._etcd.members[number].signal(signal.SIGSTOP)

        def end() -> None:
            for number in numbers:
                self._etcd.members[number].signal(signal.SIGCONT)

        return end

    def ask(self, member: EtcdMember, path: str, body: Any) -> dict[str, Any] | None:
        """Ask a member; L{None} where it does not answer."""
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
        """The connections of a server break, some times in a row."""
        wires = self._dice.choice(self._wires)
        for _ in range(self._dice.randrange(1, 5)):
            wires.reset()
            time.sleep(0.02)
        return wires.reset

    def swallow(self) -> End:
        """A server is not answered any more, though what it asks for is done."""
        wires = self._dice.choice(self._wires)
        wires.swallow()
        return wires.spew

    def cut(self, members: Sequence[int]) -> End:
        """A server reaches some members no more."""
        wires = self._dice.choice(self._wires)
        wires.cut(members)
        return lambda: wires.mend(members)

    # --- compaction

    def _compact(self) -> None:
        """Forget everything that was superseded, as another server would."""
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
        """Wait for some writes, but not for ever: another fault may keep them from being done."""
        wanted, until = self._clients.acknowledged + count, time.monotonic() + 2
        while self._clients.acknowledged < wanted and time.monotonic() < until:
            time.sleep(0.005)

    def compact(self) -> End:
        """Slow watchers stop reading, or stay away; what they have not seen is compacted."""
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
        """What a server has not heard of, since it is cut off, is compacted."""
        end = self.cut([0, 1, 2])
        self._await_writes(60)
        self._compact()
        return end


class LocalClients(Clients):
    """Clients of several servers, each time of any of them; half of the watchers are slow."""

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
