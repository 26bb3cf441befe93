"""Tests of L{kubetwist.server.context}."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.client.services import NoSuchService
from kubetwist.server.context import PluginContext
from kubetwist.server.errors import StartError


class PluginContextTests(SynchronousTestCase):
    """L{PluginContext}."""

    def setUp(self) -> None:
        """Create a context before the server is built."""
        self.configs: dict[str, str] = {}
        options: Any = {"webhook-url-denied-cidrs": (), "plugin-config-file": self.configs}
        clock: Any = Clock()
        data: Any = None
        self.context = PluginContext(options, clock, data, "127.0.0.1:6443")

    def test_services(self) -> None:
        """Outgoing calls find services in the stores."""

        class Stores:
            def get_decoded(self, *place: str) -> Any:
                self.asked = place

        stores: Any = Stores()
        self.context.stores = stores
        with self.assertRaises(NoSuchService):
            self.context.outgoing.services.resolve("default", "web", 443)
        self.assertEqual(stores.asked, ("", "services", "default", "web"))

    def test_tokens(self) -> None:
        """Tokens are authenticated by all authenticators after their creation."""
        with self.assertRaises(AssertionError):
            self.context.authenticate_token("x")

        class Authenticator:
            def authenticate_token(self, token: str, audiences: Any) -> Any:
                return token, audiences

        authenticator: Any = Authenticator()
        self.context.authenticator = authenticator
        self.assertEqual(self.context.authenticate_token("x", ["y"]), ("x", ["y"]))

    def test_close(self) -> None:
        """Closing the context calls the closers in order."""
        calls: list[int] = []
        self.context.closers += [lambda: calls.append(1), lambda: calls.append(2)]
        self.successResultOf(self.context.close())  # type: ignore[arg-type]
        self.assertEqual(calls, [1, 2])

    def read_config(self, content: bytes) -> Any:
        """Read a configuration file with this content as the plugin C{Badges}."""
        path = Path(self.mktemp())
        path.write_bytes(content)
        self.configs["Badges"] = str(path)
        return self.context.watch_config("Badges", int, self.fail)

    def test_config(self) -> None:
        """A plugin reads the file that the flag gives for its name."""
        self.assertEqual(self.read_config(b"17"), 17)
        self.assertIsNone(self.context.watch_config("Other", int, self.fail))
        self.context.check_configs_used()

    def test_invalid_config(self) -> None:
        """A file that cannot be read or is invalid stops the start with the path and the reason."""
        error = self.assertRaises(StartError, self.read_config, b"x")
        self.assertIn(f"--plugin-config-file: {self.configs['Badges']}: invalid literal", str(error))
        self.configs["Badges"] = "/missing"
        error = self.assertRaises(StartError, self.context.watch_config, "Badges", int, self.fail)
        self.assertEqual(str(error), "--plugin-config-file: cannot read /missing: No such file or directory")

        def nested(content: bytes) -> None:
            raise RecursionError

        self.configs["Badges"] = __file__
        error = self.assertRaises(StartError, self.context.watch_config, "Badges", nested, self.fail)
        self.assertTrue(str(error).endswith(": it nests too deep"))

    def test_images(self) -> None:
        """The file of --fake-images configures images; an invalid file stops the start."""
        self.context.watch_images()
        self.assertEqual(self.context.images.find("web").exit, ())
        path = Path(self.mktemp())
        path.write_bytes(b"images: {web: {exit: 3}}")
        self.context.options["fake-images"] = str(path)
        self.context.watch_images()
        self.assertEqual(self.context.images.find("web").exit, (3,))
        path.write_bytes(b"images: {web: {exit: x}}")
        error = self.assertRaises(StartError, self.context.watch_images)
        self.assertIn(f"--fake-images: {path}: images.web.exit: must be a whole number", str(error))
        self.context.options["fake-images"] = "/missing"
        error = self.assertRaises(StartError, self.context.watch_images)
        self.assertEqual(str(error), "--fake-images: cannot read /missing: No such file or directory")

    def test_unused_config(self) -> None:
        """A file that no plugin has read stops the start."""
        self.read_config(b"1")
        self.configs["Bagdes"] = "x"
        error = self.assertRaises(StartError, self.context.check_configs_used)
        self.assertEqual(str(error), "--plugin-config-file: no authenticator or enabled authorizer reads Bagdes")
