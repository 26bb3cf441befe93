"""The command line of C{twist kubeapi}."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from typing import ClassVar

from attrs import evolve

from ..api.featuregates import FeatureGates
from ..logs.verbosity import Verbosity
from ..metrics.options import MetricsOptions
from ..server.hardening import ProfileError, apply_profile
from .commandline import HELP, FlagOptions
from .flags import auditing, authentication, authorization, kubetwist, metrics
from .flagtable import FLAGS
from .flagtypes import BOOLEAN, Flag, FlagError, describe_flags


class Options(FlagOptions):
    """
    Options of an API server. Flags that a subclass does not accept have their defaults.

    @ivar verbosity: The log levels.
    @ivar metrics_options: The options of the metrics at C{/metrics}.
    """

    description = (
        "The Kubernetes API server. Without flags it creates ./kubetwist-data, listens on\n"
        "https://127.0.0.1:6443 and logs the path of the admin kubeconfig."
    )
    command = "kubeapi"
    flags: ClassVar[Sequence[Flag]] = FLAGS
    general: ClassVar[Sequence[Flag]] = (
        HELP,
        Flag(
            "version", BOOLEAN, False, "Print the Kubernetes release and the version of kubetwist, and exit.", "Global"
        ),
    )
    verbosity: Verbosity
    metrics_options: MetricsOptions

    def __init__(self) -> None:
        super().__init__()
        self.update({flag.name: flag.default for flag in (*FLAGS, *self.flags)})
        self.verbosity = Verbosity()
        self.metrics_options = MetricsOptions((1, int(self["kubernetes-version"].partition(".")[2])))

    def handle_query_flags(self, arguments: Sequence[str]) -> None:
        """See L{FlagOptions.handle_query_flags}."""
        if "--version" in arguments or "--version=true" in arguments:
            self.opt_version()

    def check(self) -> None:
        """Check combinations of flags."""
        self.verbosity = Verbosity(self["v"], self["vmodule"])
        if bool(self["tls-cert-file"]) != bool(self["tls-private-key-file"]):
            raise FlagError("--tls-cert-file and --tls-private-key-file must be set together")
        if bool(self["proxy-client-cert-file"]) != bool(self["proxy-client-key-file"]):
            raise FlagError("--proxy-client-cert-file and --proxy-client-key-file must be set together")
        if self["in-memory"]:
            if self["storage-backend"] != "memory" and "storage-backend" in self.changed:
                raise FlagError(f"--in-memory and --storage-backend={self['storage-backend']} are mutually exclusive")
            if self["etcd-servers"]:
                raise FlagError("--in-memory and --etcd-servers are mutually exclusive")
            self["storage-backend"] = "memory"
        if self["etcd-servers"] and "storage-backend" not in self.changed:
            self["storage-backend"] = "etcd3"
        if self["storage-media-type"] != "application/json" and self["storage-backend"] != "etcd3":
            raise FlagError(
                f"--storage-media-type={self['storage-media-type']} needs --etcd-servers: the storage backend"
                f" {self['storage-backend']} keeps objects as application/json"
            )
        if self["request-timeout"] <= 0:
            raise FlagError("--request-timeout must be greater than 0")
        advertised = self["advertise-address"]
        if advertised and "bind-address" not in self.changed and not ip_address(advertised).is_loopback:
            # The address is advertised to clients, so the server must listen on it.
            self["bind-address"] = "::" if ":" in advertised else "0.0.0.0"
        if not self["etcd-prefix"].strip("/"):
            raise FlagError("--etcd-prefix must not be empty")
        self["etcd-prefix"] = "/" + self["etcd-prefix"].strip("/")
        if self["encryption-provider-config-automatic-reload"] and not self["encryption-provider-config"]:
            raise FlagError(
                "--encryption-provider-config-automatic-reload must be set with --encryption-provider-config"
            )
        try:
            self.update(apply_profile(self))
        except ProfileError as error:
            raise FlagError(str(error)) from None
        if self["runtime-config"]:
            self._check_runtime_config()
        from ..server.version import check_kubernetes_version

        try:
            self["kubernetes-version"] = check_kubernetes_version(self["kubernetes-version"])
            features = FeatureGates.from_options(self)
            _check_emulation(self, features)
            authentication.check_flags(self)
            kubetwist.check_flags(self)
            authorization.check_flags(self, features)
            auditing.check_flags(self)
            self.metrics_options = metrics.make_metrics_options(self)
        except ValueError as error:
            raise FlagError(str(error)) from None

    def _check_runtime_config(self) -> None:
        from ..registry.runtimeconfig import BadRuntimeConfig, check_runtime_config

        try:
            check_runtime_config(self["runtime-config"], fairness=self["enable-priority-and-fairness"])
        except BadRuntimeConfig as error:
            raise FlagError(f"--runtime-config: {error}") from None

    def getUsage(self, width: int | None = None) -> str:
        """Return the description of the command and its flags, with the feature gates of the release."""
        flags = [_with_gates(flag, self) if flag.name == "feature-gates" else flag for flag in self.flags]
        return f"{self.description}\n{describe_flags([*flags, *self.general])}"

    def opt_version(self) -> None:
        """Print the version, and exit."""
        from importlib.metadata import version

        from ..server.version import git_version
        from .flags.kubetwist import DEFAULT_KUBERNETES_VERSION

        print(f"Kubernetes {git_version(DEFAULT_KUBERNETES_VERSION)} (kubetwist {version('kubetwist')})")
        raise SystemExit(0)


def _check_emulation(options: Options, features: FeatureGates) -> None:
    for flag, name in (
        ("emulation-forward-compatible", "EmulationForwardCompatible"),
        ("runtime-config-emulation-forward-compatible", "RuntimeConfigEmulationForwardCompatible"),
    ):
        if options[flag] and features.emulated == features.release:
            raise ValueError(
                f"ServerRunOptions.{name} cannot be set to true if the emulation version is the same as the binary"
                " version"
            )


def _with_gates(flag: Flag, options: Options) -> Flag:
    """Return the flag with the gates of the release in its help."""
    try:
        gates = FeatureGates.from_options(options).described()
    except ValueError:
        gates = FeatureGates().described()
    return evolve(flag, help="\n".join([f"{flag.help} Options are:", *(f"kube:{gate}" for gate in gates)]))
