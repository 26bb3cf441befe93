"""Tests of L{kubetwist.http.connection.memorylimit} and L{kubetwist.filters.memory}."""

from __future__ import annotations

import json
import resource
import ssl
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPSConnection
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.connection import memorylimit
from kubetwist.http.connection.memorylimit import MemoryGuard, Usage, group_limit, make_guard, parse_memory, read_usage
from kubetwist.testing._process import SubprocessServer
from tests.http.connection.guardcase import MAPS, MIB, GuardCase


class LimitTests(SynchronousTestCase):
    """Sources of the limit."""

    def groups(self, cgroup_file: str, **limits: str) -> int:
        """
        Return the limit for control group files; in names double underscores stand for slashes, single ones for dots.
        """
        folder = Path(self.mktemp())
        (folder / "fs").mkdir(parents=True)
        (folder / "own").write_text(cgroup_file)
        for name, limit in limits.items():
            path = folder / "fs" / name.replace("__", "/").replace("max", "memory.max")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(limit)
        return group_limit(folder / "own", folder / "fs")

    def test_groups(self) -> None:
        """The limit is the smallest one of the control group and its parents, in both versions."""
        self.assertEqual(self.groups("0::/a/b\n", a__b__max="3000\n", a__max="2000\n", max="max\n"), 2000)
        self.assertEqual(self.groups("0::/a\n", a__max="max\n"), 0)
        # A container has the group at the root.
        self.assertEqual(self.groups("0::/docker/x\n", max="4000\n"), 4000)
        folder = Path(self.mktemp())
        (folder / "memory" / "a").mkdir(parents=True)
        cgroup_file = folder / "own"
        cgroup_file.write_text("8:pids:/p\n4:cpu,memory:/a\n0::/\n")
        (folder / "memory" / "memory.limit_in_bytes").write_text("9223372036854771712\n")
        self.assertEqual(group_limit(cgroup_file, folder), 0)
        (folder / "memory" / "a" / "memory.limit_in_bytes").write_text("5000\n")
        self.assertEqual(group_limit(cgroup_file, folder), 5000)

    def test_none(self) -> None:
        """Without control groups there is no limit."""
        self.assertEqual(group_limit(Path(self.mktemp())), 0)
        self.assertEqual(self.groups("nonsense\n0::/a\n", a__max="nonsense"), 0)

    def test_flag(self) -> None:
        """The flag takes quantities; 0 is no limit, and an absent value is the control group's."""
        self.assertEqual([parse_memory(text) for text in ("", "0", "512Mi", "1G")], [None, 0, 512 * MIB, 10**9])
        for text in ("much", "-1", "1 Gi"):
            with self.assertRaises(ValueError):
                parse_memory(text)

    def test_guard(self) -> None:
        """A guard exists if there is a limit: of the flag, the control group, or the address space."""
        self.patch(memorylimit, "group_limit", lambda: 0)
        self.patch(memorylimit, "read_usage", lambda: Usage(1))
        self.patch(memorylimit, "limit_arenas", lambda: None)
        self.assertIsNone(make_guard(None))
        self.assertIsNone(make_guard(0))
        self.assertEqual(getattr(make_guard(5), "limit", None), 5)
        # Equal shares of the processes of a server.
        self.assertEqual(getattr(make_guard(9, 3), "limit", None), 3)
        self.patch(memorylimit, "read_usage", lambda: Usage(1, 1, 2))
        self.assertEqual(getattr(make_guard(None), "limit", None), 0)
        self.assertIsNone(make_guard(0))
        self.patch(memorylimit, "group_limit", lambda: 7)
        self.assertEqual(getattr(make_guard(None), "limit", None), 7)

    def test_usage(self) -> None:
        """The memory of this process is read from the system."""
        usage = read_usage()
        self.assertLess(MIB, usage.resident)
        self.assertLess(usage.resident, usage.mapped)


class GuardTests(GuardCase):
    """L{MemoryGuard}."""

    def test_room(self) -> None:
        """Requests that fit below the limit are admitted, and the reserve is kept."""
        self.assertTrue(self.guard.admit(836 * MIB))
        self.assertFalse(self.guard.admit(837 * MIB))
        self.use(936)
        self.assertTrue(self.guard.admit(0))
        self.assertFalse(self.guard.admit(1))
        self.assertTrue(self.guard.admit(MIB, urgent=True))
        self.use(984)
        self.assertFalse(self.guard.admit(MIB, urgent=True))

    def test_reserved(self) -> None:
        """Admitted requests count before they use memory, except for urgent requests."""
        self.guard.reserved = 800 * MIB
        self.assertFalse(self.guard.admit(37 * MIB))
        self.assertTrue(self.guard.admit(37 * MIB, urgent=True))

    def test_address_space(self) -> None:
        """The address space is limited, too; the smaller free space decides."""
        self.use(100, mapped=400 * MIB, mapped_limit=512 * MIB)
        self.assertTrue(self.guard.admit(48 * MIB))
        self.assertFalse(self.guard.admit(49 * MIB))
        guard = MemoryGuard(0, lambda: Usage(100), lambda: 0.0)
        self.assertTrue(guard.admit(10**15))

    def test_sampled(self) -> None:
        """Memory is not measured for each request."""
        asked: list[None] = []
        guard = MemoryGuard(MIB, lambda: asked.append(None) or Usage(0), lambda: self.time)
        for _ in range(100):
            guard.admit(0)
        self.assertEqual(len(asked), 1)

    def test_trim(self) -> None:
        """Kept data are dropped and freed memory is released to the system during a shortage, once a second."""
        self.guard.on_shortage.append(lambda: self.trims.append(0.0))
        self.use(990)
        for _ in range(10):
            self.guard.admit(MIB)
        self.assertEqual(self.trims, [0.0, 1.0])
        self.use(990)
        self.guard.admit(MIB)
        self.assertEqual(self.trims, [0.0, 1.0, 0.0, 2.0])

    def test_ballast(self) -> None:
        """A failed allocation frees the reserve, which is allocated again when there is room."""
        self.guard.exhausted()
        self.assertIsNone(self.guard._ballast)
        self.use(990)
        self.guard.recover()
        self.assertIsNone(self.guard._ballast)
        self.use(100)
        self.guard.recover()
        self.assertIsNotNone(self.guard._ballast)


class ProcessTests(SynchronousTestCase):
    """A server with a small address space."""

    def test_little_memory(self) -> None:
        """A server with little memory keeps running, answers completely, and stores exactly the acknowledged writes."""
        server = SubprocessServer("--controllers=", "--memory-limit=8Gi").__enter__()
        self.addCleanup(server.__exit__, None, None, None)
        statm = Path(f"/proc/{server.pid}/statm").read_text().split()
        limit = int(statm[0]) * resource.getpagesize() + 224 * MIB
        unlimited = resource.prlimit(server.pid, resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        body = {f"key-{number}": "value" for number in range(15_000)}
        port, token = server._connection.port, server._token
        context = ssl._create_unverified_context()

        def post(number: int) -> tuple[str, int, bytes]:
            name = f"m{number}"
            connection = HTTPSConnection("127.0.0.1", port, context=context, timeout=120)
            head = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            try:
                connection.request("POST", MAPS, json.dumps({"metadata": {"name": name}, "data": body}), head)
                answer = connection.getresponse()
                return name, answer.status, answer.read()
            finally:
                connection.close()

        with ThreadPoolExecutor(16) as threads:
            answers = list(threads.map(post, range(48)))
        codes = {code for _, code, _ in answers}
        self.assertLessEqual(codes, {201, 429, 503})
        self.assertIn(201, codes)
        self.assertIn(429, codes)
        for _, code, content in answers:
            if code == 201:
                self.assertEqual(len(json.loads(content)["data"]), len(body))
        resource.prlimit(server.pid, resource.RLIMIT_AS, unlimited)
        server.kill()
        server.start()
        usage = {one["metadata"]["name"] for one in server.request("GET", MAPS)[1]["items"]}
        self.assertEqual(usage, {name for name, code, _ in answers if code == 201})
