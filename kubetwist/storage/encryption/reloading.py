"""The encryption of a server's values by a configuration file, which is reloaded when it changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from ...api.configurations import MAX_FILE_SIZE, ConfigurationError
from ...api.filewatcher import FileWatcher
from ...api.go.quote import quoted
from ...api.resource import GroupResource
from ...metrics.registry import MetricSnapshot
from ..worker import ThreadedReactor
from ._configuration import (
    KeyService,
    Rule,
    load_configuration,
)
from ._envelope import key_id_hash
from ._kms import (
    KMSService,
    KMSv2Provider,
)
from ._transformers import (
    Transformer,
    Transformers,
)
from .metrics import EncryptionMetrics

#: Returns the resource of a storage key; L{None} if it is no resource.
Places = Callable[[str], GroupResource | None]
MakeService = Callable[[KeyService, ThreadedReactor], KMSService]

#: The minimum of seconds to wait for the services of a new file, and the seconds between two health checks.
_START_TIMEOUT: Final = 10.0
_POLL_INTERVAL: Final = 0.1
#: Seconds until a file with unhealthy services is retried: the first delay, and the maximum.
_RETRY_INITIAL: Final = 10.0
_RETRY_MAX: Final = 300.0


class _Generation:
    """
    The configuration in one version of the file.

    @ivar grace: Seconds for which calls of its services may go on after its replacement.
    """

    def __init__(
        self, rules: Sequence[Rule], make_service: MakeService, reactor: ThreadedReactor, metrics: EncryptionMetrics
    ) -> None:
        """
        @raise ValueError: A service cannot be called.
        """
        self.providers: list[KMSv2Provider] = []
        self.grace = 0.0

        def service(one: KeyService) -> Transformer:
            provider = KMSv2Provider(one.name, make_service(one, reactor), reactor, metrics)
            self.providers.append(provider)
            self.grace += 2 * one.timeout
            return provider.envelope

        try:
            self.transformers = Transformers(rules, service, metrics.transformations)
        except BaseException:
            self.close()
            raise

    async def start(self) -> None:
        """Check all services once."""
        await gatherResults([Deferred.fromCoroutine(provider.start()) for provider in self.providers])

    async def problem(self) -> str | None:
        """Return the errors of the services, or L{None}."""
        problems = []
        for index, provider in enumerate(self.providers):
            problem = await provider.check()
            if problem is not None:
                problems.append(f"kms-provider-{index}: {problem}")
        if not problems:
            return None
        return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"

    def close(self) -> None:
        """Stop all calls of services."""
        for provider in self.providers:
            provider.close()


class FileEncryption:
    """
    L{kubetwist.storage.encryption.storage.Encryption} from a file.

    @ivar changed: Called when new rules apply.
    """

    _log = Logger()

    def __init__(
        self, path: str, places: Places, reactor: ThreadedReactor, make_service: MakeService | None = None
    ) -> None:
        """
        @param make_service: Makes the client of a service; L{None} for gRPC.
        """
        self.changed: Callable[[], object] = lambda: None
        self._metrics = EncryptionMetrics()
        self._path = path
        self._places = places
        self._reactor = reactor
        self._make_service = make_service or _over_grpc
        self._current: _Generation | None = None
        #: The configuration that waits for its services.
        self._next: _Generation | None = None
        self._retired: dict[_Generation, IDelayedCall] = {}
        self._retry: IDelayedCall | None = None
        self._stopped = False

    def read(self) -> None:
        """
        Read the file, without later reloads.

        @raise ValueError: It is invalid.
        """
        try:
            with open(self._path, "rb") as file:
                content = file.read(MAX_FILE_SIZE + 1)
        except OSError as error:
            raise self._unreadable(error) from None
        self._current = self._made(load_configuration(content, self._path, reload=False))

    def follow(self, files: FileWatcher) -> None:
        """
        Read the file now and after each change.

        @raise ValueError: It is invalid.
        """

        def load(contents: Sequence[bytes]) -> tuple[Rule, ...]:
            try:
                rules = load_configuration(contents[0], self._path, reload=True)
            except ValueError:
                self._metrics.reloaded(False)
                raise
            if any(provider.service for rule in rules for provider in rule.providers):
                _import_grpc()
            return rules

        try:
            rules = files.watch([self._path], load, self._use, "--encryption-provider-config")
        except OSError as error:
            raise self._unreadable(error) from None
        self._current = self._made(rules)

    def collect(self) -> Iterator[MetricSnapshot]:
        """Yield the metrics."""
        providers = () if self._current is None else self._current.providers
        cached_keys = {provider.name: provider.envelope.cached_keys for provider in providers}
        uses = {provider.name: provider.envelope.uses for provider in providers}
        return self._metrics.collect(cached_keys, uses, key_id_hash)

    @property
    def has_services(self) -> bool:
        """Return whether there are key management services."""
        return self._current is not None and bool(self._current.providers)

    async def problem(self) -> str | None:
        """Return the errors of the present services, or L{None}."""
        return None if self._current is None else await self._current.problem()

    # --- Encryption

    def transformer(self, key: str) -> Transformer | None:
        """See L{kubetwist.storage.encryption.storage.Encryption.transformer}."""
        resource = self._places(key)
        if resource is None or self._current is None:
            return None
        return self._current.transformers.of(resource)

    async def start(self) -> None:
        """See L{kubetwist.storage.encryption.storage.Encryption.start}; unresponsive services are polled later."""
        if self._current is not None:
            await self._current.start()

    def stop(self) -> None:
        """See L{kubetwist.storage.encryption.storage.Encryption.stop}. Idempotent."""
        self._stopped = True
        self._forget_retry()
        for generation, closing in self._retired.items():
            closing.cancel()
            generation.close()
        self._retired.clear()
        for one in (self._current, self._next):
            if one is not None:
                one.close()

    # --- new content

    def _use(self, rules: tuple[Rule, ...]) -> Deferred[None] | None:
        return self._try(rules, _RETRY_INITIAL)

    def _try(self, rules: tuple[Rule, ...], again: float) -> Deferred[None] | None:
        """
        Apply new rules as soon as their services are healthy.

        @raise ValueError: A service cannot be called.
        """
        self._forget_retry()
        made = self._made(rules)
        superseded, self._next = self._next, None
        if superseded is not None:
            superseded.close()
        if not made.providers:
            self._take(made)
            return None
        self._next = made

        def failed(failure: Failure) -> Failure:
            self._metrics.reloaded(False)
            made.close()
            if self._next is made:
                self._next = None
                if not self._stopped:
                    later = min(2 * again, _RETRY_MAX)
                    self._retry = self._reactor.callLater(again, self._try_again, rules, later)
            return failure

        return Deferred.fromCoroutine(self._when_well(made)).addErrback(failed)

    def _try_again(self, rules: tuple[Rule, ...], again: float) -> None:
        self._retry = None

        def failed(failure: Failure) -> None:
            self._log.error("--encryption-provider-config: {problem}", problem=failure.getErrorMessage())

        try:
            result = self._try(rules, again)
        except ValueError as error:
            self._log.error("--encryption-provider-config: {problem}", problem=error)
        else:
            if result is not None:
                result.addErrback(failed)

    async def _when_well(self, made: _Generation) -> None:
        until = self._reactor.seconds() + max(made.grace, _START_TIMEOUT)
        await made.start()
        while True:
            problem = await made.problem()
            if self._next is not made or self._stopped:
                raise ConfigurationError("the file has changed again")
            if problem is None:
                self._next = None
                self._take(made)
                return
            if self._reactor.seconds() >= until:
                raise ConfigurationError(
                    "health check for new transformers failed, polling error timed out waiting for the condition: "
                    f"{problem}"
                )
            await self._sleep(_POLL_INTERVAL)

    def _take(self, made: _Generation) -> None:
        before, self._current = self._current, made
        self.changed()
        if before is None:
            return
        self._metrics.reloaded(True)
        if not before.providers:
            before.close()
            return

        def close() -> None:
            del self._retired[before]
            before.close()

        # Calls to its services may still be under way.
        self._retired[before] = self._reactor.callLater(before.grace, close)

    def _made(self, rules: Sequence[Rule]) -> _Generation:
        return _Generation(rules, self._make_service, self._reactor, self._metrics)

    def _forget_retry(self) -> None:
        retry, self._retry = self._retry, None
        if retry is not None:
            retry.cancel()

    def _sleep(self, seconds: float) -> Deferred[None]:
        done: Deferred[None] = Deferred()
        self._reactor.callLater(seconds, done.callback, None)
        return done

    def _unreadable(self, error: OSError) -> ConfigurationError:
        return ConfigurationError(
            "error while parsing file: error while loading file: error reading encryption provider configuration file "
            f"{quoted(self._path)}: open {self._path}: {(error.strerror or str(error)).lower()}"
        )


def _over_grpc(service: KeyService, reactor: ThreadedReactor) -> KMSService:
    from ._kmsclient import GRPCKMSService

    return GRPCKMSService(service, reactor)


def _import_grpc() -> None:
    """Import gRPC in a thread, as the import is slow."""
    with suppress(ImportError):  # The error is reported on first use.
        import grpc  # noqa: F401
