"""Tests for L{kubetwist.controllers.fakeimages}."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.quantity import Quantity
from kubetwist.controllers.fakeimages import (
    MAX_FILE,
    MAX_IMAGES,
    MAX_TEXT,
    CommandResult,
    FakeImages,
    ImageBehavior,
    InvalidImages,
    LogScript,
    PortAnswer,
    ProbeScript,
    parse_images,
    parse_images_file,
)

EXAMPLE = b"""
images:
  nginx:
    logs: {lines: [starting], every: 1s, line: "request {n}"}
    exec:
      ls: "index.html\\n"
      sh -c 'exit 3': {stdout: out, stderr: err, exit: 3}
      "false": 1
    ready_after: 2s
    exit: [1, 0]
    run_for: 1m
    stop_after: 500ms
    ports:
      80: {http: {status: 201, headers: {X-A: b}, body: hello}}
      81: echo
      82: {response: "220 ready"}
      83: {forward: "localhost:8083"}
      84: {http: text}
    usage: {cpu: 250m, memory: 64Mi}
    probes: {liveness: {fail_after: 20s}, readiness: false, startup: true}
    files: {/etc/version: "1"}
  registry.example/team/broken: {pull_error: true, ready: false, logs: "one\\ntwo\\n"}
"""


class ParsingTests(SynchronousTestCase):
    """L{parse_images} and L{parse_images_file}."""

    def test_all_fields(self) -> None:
        """All fields are parsed."""
        nginx = parse_images_file(EXAMPLE)["nginx"]
        self.assertEqual(nginx.logs, LogScript(("starting",), 1.0, "request {n}"))
        self.assertEqual(
            nginx.exec,
            {
                "ls": CommandResult(b"index.html\n"),
                "sh -c 'exit 3'": CommandResult(b"out", b"err", 3),
                "false": CommandResult(exit=1),
            },
        )
        self.assertEqual((nginx.ready_after, nginx.run_for, nginx.stop_after, nginx.exit), (2.0, 60.0, 0.5, (1, 0)))
        self.assertEqual(
            nginx.ports,
            {
                80: PortAnswer("http", 201, (("X-A", "b"),), b"hello"),
                81: PortAnswer("echo"),
                82: PortAnswer("response", body=b"220 ready"),
                83: PortAnswer("forward", host="127.0.0.1", port=8083),
                84: PortAnswer("http", body=b"text"),
            },
        )
        assert nginx.usage is not None
        self.assertEqual(nginx.usage.cpu, Quantity.parse("250m"))
        self.assertEqual(nginx.usage.memory, Quantity.parse("64Mi"))
        self.assertEqual(
            nginx.probes, {"liveness": ProbeScript(20.0), "readiness": ProbeScript(0.0), "startup": ProbeScript()}
        )
        self.assertEqual(nginx.files, {"/etc/version": b"1"})

    def test_log_text(self) -> None:
        """A log is text or a list of lines."""
        broken = parse_images_file(EXAMPLE)["registry.example/team/broken"]
        self.assertEqual(broken, ImageBehavior(pull_error=True, ready=False, logs=LogScript(("one", "two"))))
        self.assertEqual(parse_images({"a": {"logs": ["one\ntwo", 3]}})["a"].logs, LogScript(("one", "two", "3")))
        self.assertEqual(parse_images({"a": {"logs": ""}})["a"].logs, LogScript())

    def test_functions(self) -> None:
        """Functions of Python handle commands."""
        self.assertIs(parse_images({"a": {"exec": {"ls": repr}}})["a"].exec["ls"], repr)

    def test_exit_needs_an_end(self) -> None:
        """An image with an exit code and no duration exits after a second."""
        self.assertEqual(parse_images({"a": {"exit": 3}})["a"].run_for, 1.0)

    def test_empty(self) -> None:
        """An empty file configures no images."""
        self.assertEqual(parse_images_file(b""), {})
        self.assertEqual(parse_images_file(b"images:\n"), {})
        self.assertEqual(parse_images({"a": None}), {"a": ImageBehavior()})

    def test_errors(self) -> None:
        """An invalid configuration has an error with the path of the field."""
        cases: list[tuple[Any, str]] = [
            ([], "images: must be a mapping"),
            ({"a": {"log": ""}}, "images.a: unknown field 'log': must be one of logs, exec, "),
            ({"a": {"logs": True}}, "images.a.logs: must be a mapping"),
            ({"a": {"logs": {"every": "1s"}}}, "images.a.logs: 'every' and 'line' must be set together"),
            ({"a": {"logs": {"lines": {"a": 1}}}}, "images.a.logs.lines: must be text or a list of lines"),
            ({"a": {"logs": {"every": 0, "line": "x"}}}, "images.a.logs.every: must be at least 1ms"),
            ({"a": {"ready_after": "2"}}, 'images.a.ready_after: time: missing unit in duration "2"'),
            ({"a": {"run_for": -1}}, "images.a.run_for: must be a duration such as 2s or 500ms"),
            ({"a": {"run_for": float("nan")}}, "images.a.run_for: must be a duration such as 2s or 500ms"),
            ({"a": {"exit": 256}}, "images.a.exit: must be a whole number from 0 to 255"),
            ({"a": {"exit": []}}, "images.a.exit: must be an exit code, or a list"),
            ({"a": {"ready": "no"}}, "images.a.ready: must be true or false"),
            ({"a": {"exec": {"ls": {"code": 1}}}}, "images.a.exec.ls: unknown field 'code'"),
            ({"a": {"exec": {"ls": {"exit": "x"}}}}, "images.a.exec.ls.exit: must be a whole number"),
            ({"a": {"ports": {"http": "echo"}}}, "images.a.ports: must be a whole number from 1 to 65535"),
            ({"a": {"ports": {80: {}}}}, "images.a.ports.80: must be echo, or one of http, response and forward"),
            (
                {"a": {"ports": {80: {"forward": "example.com:80"}}}},
                "images.a.ports.80.forward: must be localhost:PORT",
            ),
            ({"a": {"ports": {80: {"http": {"headers": {"a b": "c"}}}}}}, "images.a.ports.80.http.headers: invalid"),
            ({"a": {"ports": {80: {"http": {"headers": {"a": "c\r\nd"}}}}}}, "images.a.ports.80.http.headers: invalid"),
            ({"a": {"usage": {"cpu": "many"}}}, "images.a.usage.cpu: quantities must match"),
            ({"a": {"usage": {"cpu": "-1"}}}, "images.a.usage.cpu: must not be negative"),
            ({"a": {"probes": {"exec": True}}}, "images.a.probes: unknown field 'exec'"),
            ({"a": {"files": {"etc/x": ""}}}, "images.a.files: invalid absolute path 'etc/x'"),
            ({"a": {"files": {"/x": b"1" * (MAX_TEXT + 1)}}}, "images.a.files./x: must have at most"),
            ({"a": {"logs": "1" * (MAX_TEXT + 1)}}, "images.a.logs: must have at most"),
            ({str(n): {} for n in range(MAX_IMAGES + 1)}, "images: must have at most 1000 entries"),
        ]
        for images, message in cases:
            with self.subTest(message):
                error = self.assertRaises(InvalidImages, parse_images, images)
                self.assertIn(message, str(error))

    def test_invalid_files(self) -> None:
        """A file that is not YAML, has other fields, repeats one, or is too large is refused."""
        for data, message in (
            (b"a: [", "yaml: "),
            (b"a: 1", "unknown field 'a': must be one of images"),
            (b"- a", "must be a mapping"),
            (b"images: {a: {}, a: {}}", '"a"'),
            (b" " * (MAX_FILE + 1), "the file has more than"),
        ):
            with self.subTest(message):
                self.assertIn(message, str(self.assertRaises(InvalidImages, parse_images_file, data)))


class FindTests(SynchronousTestCase):
    """L{FakeImages.find}."""

    def find(self, reference: str, *names: str) -> int | None:
        """Return the index of the name that matches a reference."""
        behaviors = {name: ImageBehavior(ready_after=float(n)) for n, name in enumerate(names, 1)}
        found = FakeImages(behaviors).find(reference).ready_after
        return int(found) - 1 if found else None

    def test_specific_first(self) -> None:
        """The most specific name matches."""
        image = "registry.example:5000/team/web:1.2"
        names = (image, "team/web:1.2", "web:1.2", "registry.example:5000/team/web", "team/web", "web", "*")
        for n in range(len(names)):
            self.assertEqual(self.find(image, *names[n:]), 0, names[n])
        self.assertIsNone(self.find(image, "team", "web:1.3", "eb", "5000"))

    def test_tags_and_digests(self) -> None:
        """A missing tag is latest; a digest is ignored unless a name has it."""
        self.assertEqual(self.find("web", "web:latest"), 0)
        self.assertEqual(self.find("a/web:1@sha256:12", "web:1"), 0)
        self.assertEqual(self.find("a/web:1@sha256:12", "web", "a/web:1@sha256:12"), 1)

    def test_built_in(self) -> None:
        """Some names have a behavior without configuration, which the configuration replaces."""
        images = FakeImages()
        self.assertEqual(images.find("a.example/false:1").exit, (1,))
        self.assertTrue(images.find("pull-error").pull_error)
        images.replace({"false": ImageBehavior(exit=(2,)), "*": ImageBehavior(exit=(4,))})
        self.assertEqual(images.find("a.example/false:1").exit, (2,))
        self.assertEqual(images.find("other").exit, (4,))

    @given(st.text(max_size=30))
    def test_any_text(self, reference: str) -> None:
        """All references have a behavior."""
        self.assertIsInstance(FakeImages().find(reference), ImageBehavior)
