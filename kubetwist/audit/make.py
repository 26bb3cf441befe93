"""Creates the auditor from the C{--audit-*} flags."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger

from ..api.flagvalues import FlagValues
from ..interfaces import IAuditBackend, IAuditOutput
from .auditor import Auditor
from .buffered import (
    BatchConfig,
    BlockingBackend,
    BufferedBackend,
)
from .errors import (
    Counts,
    PluginErrors,
)
from .modes import BATCH, BLOCKING_STRICT
from .policy import BadPolicy, Policy, read_policy
from .truncation import TruncateConfig

if TYPE_CHECKING:
    from .dependencies import AuditDependencies

_log = Logger()

_MEGABYTE: Final = 1024 * 1024


def make_auditor(options: FlagValues, server: AuditDependencies) -> Auditor | None:
    """
    Create the auditor, not started yet; return L{None} without a policy or without a backend.

    @param options: The parsed command line, L{kubetwist.cli.kubeapi.Options}.
    @param server: The reactor, watched files and outgoing clients.
    @raise ValueError: A file cannot be used; the text names the file and the reason.
    """
    path, log, webhook = (
        options[name] for name in ("audit-policy-file", "audit-log-path", "audit-webhook-config-file")
    )
    if not path or not (log or webhook):
        for name in ("log", "webhook"):
            if options["audit-log-path" if name == "log" else "audit-webhook-config-file"]:
                _log.info("No audit policy file provided, no events will be recorded for {name} backend", name=name)
        if path:
            _policy(path, server, lambda policy: None)
        return None
    auditor: list[Auditor] = []
    policy = _policy(path, server, lambda policy: auditor[0].set_policy(policy))
    counts = Counts()
    backends = []
    if log:
        backends.append(_backend("log", _log_output(options, server, counts), options, server, counts))
    if webhook:
        backends.append(_backend("webhook", _webhook_output(options, server, counts), options, server, counts))
    strict = any(isinstance(backend, BlockingBackend) and backend.strict for backend in backends)
    auditor.append(Auditor(policy, backends, strict, counts))
    return auditor[0]


def _policy(path: str, server: AuditDependencies, use: Callable[[Policy], object]) -> Policy:
    """Read the policy file, and read it again when it changes."""

    def load(contents: Sequence[bytes]) -> Policy:
        try:
            return read_policy(contents[0])
        except BadPolicy as error:
            raise ValueError(f"{error}: from file {path}") from None

    try:
        policy: Policy = server.files.watch([path], load, use, "--audit-policy-file")
    except OSError as error:
        reason = f'failed to read file path "{path}": open {path}: {(error.strerror or str(error)).lower()}'
        raise ValueError(f"loading audit policy file: {reason}") from None
    except ValueError as error:
        raise ValueError(f"loading audit policy file: {error}") from None
    return policy


def _backend(
    name: str, output: IAuditOutput, options: FlagValues, server: AuditDependencies, counts: Counts
) -> IAuditBackend:
    mode = options[f"audit-{name}-mode"]
    if mode != BATCH:
        return BlockingBackend(output, mode == BLOCKING_STRICT)
    flag = f"audit-{name}-batch-"
    throttled = options[f"{flag}throttle-enable"]
    settings = BatchConfig(
        options[f"{flag}buffer-size"],
        options[f"{flag}max-size"],
        options[f"{flag}max-wait"],
        options[f"{flag}throttle-qps"] if throttled else 0.0,
        options[f"{flag}throttle-burst"] if throttled else 1,
    )
    return BufferedBackend(output, settings, server.reactor, PluginErrors("buffered", counts, server.reactor))


def _limits(name: str, options: FlagValues) -> TruncateConfig | None:
    if not options[f"audit-{name}-truncate-enabled"]:
        return None
    flag = f"audit-{name}-truncate-max-"
    return TruncateConfig(options[f"{flag}event-size"], options[f"{flag}batch-size"])


def _log_output(options: FlagValues, server: AuditDependencies, counts: Counts) -> IAuditOutput:
    from .log import LogOutput
    from .logfile import LogFile, Rotation, StandardOutput

    file: LogFile | StandardOutput = StandardOutput()
    if options["audit-log-path"] != "-":
        rotation = Rotation(
            options["audit-log-maxsize"] * _MEGABYTE,
            options["audit-log-maxage"],
            options["audit-log-maxbackup"],
            options["audit-log-compress"],
        )
        shared = options["workers"] > 0
        file = LogFile(Path(options["audit-log-path"]).absolute(), rotation, shared=shared)
        try:
            file.ensure()
        except OSError as error:
            raise ValueError(f"ensureLogFile: open {error.filename}: {(error.strerror or '').lower()}") from None
    return LogOutput(
        file,
        server.reactor,
        PluginErrors("log", counts, server.reactor),
        PluginErrors("truncate", counts, server.reactor),
        legacy=options["audit-log-format"] == "legacy",
        limits=_limits("log", options),
    )


def _webhook_output(options: FlagValues, server: AuditDependencies, counts: Counts) -> IAuditOutput:
    from ..client.errors import InvalidRESTConfig
    from ..client.kubeconfig import InvalidKubeconfig, read_kubeconfig
    from .webhook import WebhookOutput

    try:
        client = server.outgoing.client(read_kubeconfig(Path(options["audit-webhook-config-file"])))
    except (InvalidKubeconfig, InvalidRESTConfig, OSError) as error:
        raise ValueError(f"initializing audit webhook: {error}") from None
    backoff = options["audit-webhook-initial-backoff"]
    if "audit-webhook-initial-backoff" not in options.changed:
        backoff = options["audit-webhook-batch-initial-backoff"]
    reactor = server.reactor

    def in_thread(call: Any, *arguments: Any) -> Any:
        return deferToThreadPool(reactor, reactor.getThreadPool(), call, *arguments)

    return WebhookOutput(
        client,
        reactor,
        in_thread,
        PluginErrors("webhook", counts, reactor),
        PluginErrors("truncate", counts, reactor),
        initial_backoff=backoff,
        limits=_limits("webhook", options),
    )
