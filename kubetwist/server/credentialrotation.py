"""Renew the certificates that a running server has issued to itself, and use changed ones without a restart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger

from ..authentication.certificates import CertPool
from .credentials.certificates import CertKeyPair
from .credentials.rotation import drop_expired_keys
from .credentials.tlscontext import make_context
from .errors import StartError

if TYPE_CHECKING:
    from ..interfaces import IServerReactor
    from .config import ServerConfig

#: Seconds between two checks whether something is due.
CHECK_INTERVAL: Final = 60.0


class CredentialRotation:
    """
    Follows the files of the server's certificates.

    The server renews its certificates after two thirds of their lifetimes, and removes keys of service account tokens
    at the end of their overlap. Commands do the same, or rotate keys: the server reads all changed files by itself. New
    connections get the new certificate; open connections are not affected.
    """

    _log = Logger()

    def __init__(self, config: ServerConfig, reactor: IServerReactor, replace: Callable[[CertKeyPair], object]) -> None:
        """
        @param replace: Uses a serving certificate for new connections.
        """
        self._config = config
        self._reactor = reactor
        self._replace = replace
        self._url = ""
        self._timer: IDelayedCall | None = None
        self._running = False
        # Threads write the same file.
        self._kubeconfig_lock = Lock()

    def follow(self, url: str) -> None:
        """
        Read the files now, and follow them.

        @param url: The URL in the admin's kubeconfig.
        @raise StartError: A file cannot be used.
        """
        self._url = url
        config = self._config
        credentials, files, options = config.credentials, config.files, config.options
        source = "serving certificate"
        if credentials.serving_files:
            source = "--tls-cert-file and --tls-private-key-file" if options["tls-cert-file"] else "--cert-dir"
        try:
            files.watch(credentials.serving_files or credentials.issued_files, self._load, self._use_serving, source)
            files.watch(credentials.admin_files, _load_pair, self._use_admin, "admin's certificate")
            files.watch([credentials.authority_file], _load_authorities, self._use_authorities, "certificate authority")
            proxies = [credentials.front_proxy_authority_file]
            files.watch(proxies, _load_authorities, self._use_proxy_authorities, "front proxy authority")
        except (OSError, ValueError) as error:
            raise StartError(f"cannot use the serving certificate: {error}") from error

    def start(self) -> None:
        """Begin to renew what is due. Only one process of a server does that."""
        self._running = True
        self._check_later()

    def stop(self) -> None:
        """Stop to renew. Idempotent."""
        self._running = False
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _check_later(self) -> None:
        if self._running:
            self._timer = self._reactor.callLater(CHECK_INTERVAL, self._check)

    def _check(self) -> None:
        self._timer = None
        self._in_thread(self._renew).addCallbacks(self._renewed, self._failed).addBoth(lambda _: self._check_later())

    def _renew(self) -> None:
        """Renew what is due; in a thread."""
        credentials = self._config.credentials
        credentials.renew()
        for key_id in drop_expired_keys(credentials.authority_file.parent):
            self._log.info("the overlap of a service account key has ended: kid={key_id}", key_id=key_id)

    def _renewed(self, _: object) -> Deferred[None]:
        return self._config.files.poll_now()

    def _failed(self, failure: Any) -> None:
        if failure.check(StartError):
            self._log.error("cannot renew certificates: error={error}", error=str(failure.value))
        else:
            self._log.failure("renewing certificates failed", failure)

    def _load(self, contents: Sequence[bytes]) -> CertKeyPair:
        pair = _load_pair(contents)
        make_context(pair, self._config.options["tls-min-version"])
        return pair

    def _use_serving(self, pair: CertKeyPair) -> None:
        credentials = self._config.credentials
        if credentials.serving_files:
            credentials.set_serving_certificate(pair)
        else:
            credentials.serving = pair
        self._replace(pair)
        if credentials.serving_files:
            self._bundle_changed()

    def _use_admin(self, pair: CertKeyPair) -> None:
        self._config.credentials.admin = pair
        self._write_kubeconfig()

    def _use_authorities(self, certificates: bytes) -> None:
        self._config.credentials.set_authority_certificates(certificates)
        self._bundle_changed()

    def _use_proxy_authorities(self, certificates: bytes) -> None:
        credentials = self._config.credentials
        credentials.front_proxy_authority = certificates
        for listener in credentials.front_proxy_listeners:
            listener()

    def _bundle_changed(self) -> None:
        for listener in self._config.credentials.ca_bundle_listeners:
            listener()
        self._write_kubeconfig()

    def _write_kubeconfig(self) -> None:
        # The storage process writes it for the fronts, too.
        if self._config.is_front:
            return

        def write() -> None:
            with self._kubeconfig_lock:
                self._config.credentials.write_kubeconfig(self._url)

        self._in_thread(write).addErrback(
            lambda failure: self._log.failure("writing the admin's kubeconfig failed", failure)
        )

    def _in_thread(self, call: Callable[[], Any]) -> Deferred[Any]:
        return deferToThreadPool(self._reactor, self._reactor.getThreadPool(), call)


def _load_pair(contents: Sequence[bytes]) -> CertKeyPair:
    pair = CertKeyPair(*contents)
    pair.parsed()
    return pair


def _load_authorities(contents: Sequence[bytes]) -> bytes:
    (content,) = contents
    CertPool(content)
    return content
