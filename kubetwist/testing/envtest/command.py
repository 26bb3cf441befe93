"""C{twist kubeapi-envtest DIR}: write a directory for C{$KUBEBUILDER_ASSETS}."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from twisted.application.service import IService

from ...cli.command import CommandError, CommandOptions, CommandService
from ...cli.flagcommand import flag_command
from ...cli.flags.kubetwist import DEFAULT_KUBERNETES_VERSION
from ...cli.flagtypes import STRING, Flag, FlagError
from .assets import AssetsError, write_assets


class Options(CommandOptions):
    """
    Options of C{twist kubeapi-envtest}.

    @ivar folder: The directory.
    """

    command: ClassVar[str] = "kubeapi-envtest"
    description: ClassVar[str] = (
        "Write a directory with kube-apiserver, etcd and kubectl for test frameworks that start these, such as\n"
        "envtest of controller-runtime, and print its path. kube-apiserver is twist kubeapi, etcd a stand-in.\n"
        "\n"
        "    export KUBEBUILDER_ASSETS=$(twist kubeapi-envtest bin/kubetwist)\n"
    )
    flags: ClassVar = (
        Flag(
            "kubernetes-version",
            STRING,
            DEFAULT_KUBERNETES_VERSION,
            "The Kubernetes release whose API is served.",
            "Envtest",
        ),
        Flag(
            "controllers",
            STRING,
            "*",
            "Controllers that run in kube-apiserver, as for twist kubeapi. Empty for none: envtest has none.",
            "Envtest",
        ),
    )
    argument: ClassVar[str] = "DIR"
    folder: Path | None = None

    def set_argument(self, text: str) -> None:
        """Set the directory."""
        self.folder = Path(text)

    def check(self) -> None:
        """Check that the directory is given, and the release."""
        from ...server.version import check_kubernetes_version

        if self.folder is None:
            raise FlagError("DIR is required")
        try:
            self["kubernetes-version"] = check_kubernetes_version(self["kubernetes-version"])
        except ValueError as error:
            raise FlagError(str(error)) from None

    def server_flags(self) -> list[str]:
        """Return the flags of the API server that are not defaults."""
        return [f"--{flag.name}={self[flag.name]}" for flag in self.flags if self[flag.name] != flag.default]


async def run(service: CommandService) -> None:
    """Write the directory, and print its path."""
    options = service.options
    assert isinstance(options, Options) and options.folder is not None
    try:
        folder = write_assets(options.folder, options.server_flags())
    except AssetsError as error:
        raise CommandError(str(error)) from error
    service.print_line(str(folder))


def makeService(options: Options) -> IService:
    """Return the service that C{twist} starts."""
    from twisted.internet import reactor

    return CommandService(options, reactor, run).install()


#: C{kubetwist envtest}.
command = flag_command(Options, run)
