"""C{twist kubeapi}: the command line, and the service that it starts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from twisted.application.service import IService
from twisted.python import usage

from .server.flags import Flag, FlagError, describe_flags, parse_flags
from .server.flagtable import FLAGS

_USAGE_EXIT = 64


class Options(usage.Options):
    """
    The options, by the names of their flags: C{options["secure-port"]}.

    @ivar parent: The options of C{twist}, when that runs us.
    @ivar given: The names of the flags that stand on the command line.
    @cvar command: What C{twist} knows it by.
    @cvar flags: What can stand on the command line; all others of an API server have their default.
    """

    synopsis = "[flags]"
    longdesc = (
        "The Kubernetes API server. Without flags it makes ./kubetwist-data, listens on\n"
        "https://127.0.0.1:6443 and says where the admin's kubeconfig is."
    )
    parent: Any = None
    given: frozenset[str] = frozenset()
    command = "kubeapi"
    flags: Sequence[Flag] = FLAGS

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.update({flag.name: flag.default for flag in (*FLAGS, *self.flags)})

    def parseOptions(self, options: Sequence[str] | None = None) -> None:
        """
        Read the command line.

        @raise usage.UsageError: It makes no sense. Under C{twist}, which would print pages, the process ends instead.
        """
        arguments = list(sys.argv[1:] if options is None else options)
        if "--help" in arguments or "-h" in arguments:
            print(self)
            raise SystemExit(0)
        if "--version" in arguments or "--version=true" in arguments:
            self.opt_version()
        try:
            given = parse_flags(self.flags, arguments)
            self.given = frozenset(given)
            self.update(given)
            self.postOptions()
        except FlagError as error:
            if self.parent is None:
                raise usage.UsageError(str(error)) from error
            print(f"twist {self.command}: {error}; see twist {self.command} --help", file=sys.stderr)
            raise SystemExit(_USAGE_EXIT) from error

    def postOptions(self) -> None:
        """What can be wrong about flags together."""
        if bool(self["tls-cert-file"]) != bool(self["tls-private-key-file"]):
            raise FlagError("--tls-cert-file and --tls-private-key-file go together")
        if bool(self["proxy-client-cert-file"]) != bool(self["proxy-client-key-file"]):
            raise FlagError("--proxy-client-cert-file and --proxy-client-key-file go together")
        if not self["aggregator-reject-forwarding-redirect"]:
            raise FlagError(
                "--aggregator-reject-forwarding-redirect=false is not possible: redirects of other API servers are"
                " never passed on"
            )
        if not self["disable-http2-serving"]:
            raise FlagError("--disable-http2-serving=false is not possible yet: only HTTP/1.1 is served")
        if self["in-memory"]:
            if self["storage-backend"] != "memory" and "storage-backend" in self.given:
                raise FlagError(f"--in-memory and --storage-backend={self['storage-backend']} contradict each other")
            self["storage-backend"] = "memory"
        if self["etcd-servers"] and "storage-backend" not in self.given and not self["in-memory"]:
            self["storage-backend"] = "etcd3"
        if self["request-timeout"] <= 0:
            raise FlagError("--request-timeout must be greater than 0")
        if self["endpoint-reconciler-type"] not in ("lease", "none"):
            raise FlagError("--endpoint-reconciler-type must be lease or none")
        if not self["etcd-prefix"].strip("/"):
            raise FlagError("--etcd-prefix must not be empty")
        self["etcd-prefix"] = "/" + self["etcd-prefix"].strip("/")
        if self["encryption-provider-config-automatic-reload"] and not self["encryption-provider-config"]:
            raise FlagError(
                "--encryption-provider-config-automatic-reload must be set with --encryption-provider-config"
            )
        from .audit.flags import check_flags as check_audit_flags
        from .authentication.flags import check_flags
        from .server.version import check_kubernetes_version

        try:
            check_flags(self)
            check_audit_flags(self)
            self["kubernetes-version"] = check_kubernetes_version(self["kubernetes-version"])
        except ValueError as error:
            raise FlagError(str(error)) from None

    def opt_version(self) -> None:
        """Tell what this is, and end."""
        from importlib.metadata import version

        from .server.flagtable import DEFAULT_KUBERNETES_VERSION
        from .server.version import git_version

        print(f"Kubernetes {git_version(DEFAULT_KUBERNETES_VERSION)} (kubetwist {version('kubetwist')})")
        raise SystemExit(0)

    def getSynopsis(self) -> str:
        """How it is called."""
        return f"Usage: twist {self.command} [flags]"

    def getUsage(self, width: int | None = None) -> str:
        """The flags, by sections."""
        return f"{self.longdesc}\n{describe_flags(self.flags)}"

    def __str__(self) -> str:
        return f"{self.getSynopsis()}\n\n{self.getUsage()}"


def makeService(options: Options) -> IService:
    """
    Make what C{twist} starts; nothing happens before that.

    @return: A service whose C{ready}, a Deferred, fires when the server is, or fails when it can not be.
    """
    from twisted.internet import reactor

    from .server.service import KubeAPIService, UnderTwist

    service = KubeAPIService(options, reactor)
    if options.parent is not None:
        UnderTwist(service, reactor, options).arrange()
    return service
