"""The checks of a command line."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from ..backups import STORE
from ..credentials.certificates import serving_names
from ..hostaddress import advertised_address
from ..options import ServerOptions
from .certificates import CertificateFile, check_certificates
from .clock import ClockFacts, judge_clock, judge_skews, kernel_synchronized
from .datadir import DirectoryFacts, check_store, judge_directory, read_directory
from .disk import judge_disk, read_disk
from .etcd import judge_members, read_members, skews_of
from .findings import Finding, error
from .plugins import check_plugins
from .process import check_versions, judge_files, judge_memory, judge_processors, read_process
from .runner import Check
from .running import check_port, judge_server, read_server
from .settings import check_files, judge_deprecated, judge_limited, judge_settings


class Diagnosis:
    """The checks of one command line. Each reads what it needs when it runs."""

    def __init__(self, options: ServerOptions, limited: Mapping[str, str]) -> None:
        """
        @param options: The parsed command line.
        @param limited: The reasons, by flag, of flags without effect or with a part of it.
        """
        self._options = options
        self._limited = limited
        self._path = Path(options["data-dir"]).absolute()
        self._in_memory = bool(options["in-memory"]) and "data-dir" not in options.changed
        self._store = self._path / STORE if options["storage-backend"] == "sqlite" else None

    def checks(self) -> list[Check]:
        """Return the checks, in the order of the report."""
        checks = [Check("flags", self._check_flags), Check("versions", check_versions)]
        checks += [
            Check("plugins", lambda: check_plugins(self._options["storage-backend"])),
            Check("limits", self._check_limits),
            Check("clock", self._check_clock),
        ]
        if not self._in_memory:
            checks += [
                Check("data-directory", self._check_directory),
                Check("disk", self._check_disk),
                Check("certificates", self._check_certificates),
            ]
            if self._store is not None:
                checks.append(Check("store", self._check_store))
        if self._options["storage-backend"] == "etcd3":
            checks.append(Check("etcd", self._check_etcd))
        checks.append(Check("server", self._check_server))
        return checks

    def _directory(self) -> DirectoryFacts:
        return read_directory(self._path)

    def _check_flags(self) -> Iterator[Finding]:
        yield from judge_limited(self._options.changed, self._limited)
        yield from judge_deprecated(self._options.changed)
        yield from judge_settings(self._options)
        yield from check_files(self._options)

    def _check_limits(self) -> Iterator[Finding]:
        options = self._options
        facts = read_process(
            options["max-connections-per-address"], options["memory-limit"], self._store, options["workers"]
        )
        yield from judge_files(facts)
        yield from judge_memory(facts)
        yield from judge_processors(facts)

    def _check_clock(self) -> Iterator[Finding]:
        return judge_clock(ClockFacts(datetime.now(UTC), kernel_synchronized()))

    def _check_directory(self) -> Iterator[Finding]:
        try:
            yield from judge_directory(self._directory())
        except OSError as failure:
            yield error(
                "data-directory/access",
                f"{failure.filename or self._path} cannot be read: {failure.strerror}",
                "run the server and this command as the owner of the directory",
            )

    def _check_disk(self) -> Iterator[Finding]:
        # Before the first start, the file system is the one of the nearest directory above.
        path = next(one for one in (self._path, *self._path.parents) if one.is_dir())
        durable = self._store is not None and not self._options["unsafe-no-fsync"]
        yield from judge_disk(read_disk(path, measure=durable), durable=durable)

    def _check_store(self) -> Iterator[Finding]:
        assert self._store is not None, "the check is for the embedded store"
        yield from check_store(self._store, in_use=bool(self._directory().holder))

    def _check_certificates(self) -> Iterator[Finding]:
        yield from check_certificates(self.certificate_files())

    def certificate_files(self) -> list[CertificateFile]:
        """Return the certificates of the data directory, if it exists, and the certificates of flags."""
        options, pki = self._options, self._path / "pki"
        files: list[CertificateFile] = []
        if pki.is_dir():
            for name in ("ca", "front-proxy-ca"):
                files.append(CertificateFile(name, str(pki / f"{name}.crt"), str(pki / f"{name}.key"), authority=True))
            issued: list[tuple[str, str, tuple[str, ...]]] = [
                ("admin", "ca", ()),
                ("front-proxy-client", "front-proxy-ca", ()),
            ]
            if not options["tls-cert-file"] and not options["cert-dir"]:
                issued.append(("apiserver", "ca", self._names()))
            for name, issuer, names in issued:
                if (pki / f"{name}.crt").exists():
                    certificate, key = (str(pki / f"{name}.{suffix}") for suffix in ("crt", "key"))
                    authority = str(pki / f"{issuer}.crt")
                    files.append(CertificateFile(name, certificate, key, authority, names, renewed=True))
        if options["tls-cert-file"]:
            files.append(
                CertificateFile("serving", options["tls-cert-file"], options["tls-private-key-file"], "", self._hosts())
            )
        pairs = (
            ("proxy-client", "proxy-client-cert-file", "proxy-client-key-file"),
            ("kubelet-client", "kubelet-client-certificate", "kubelet-client-key"),
            ("etcd-client", "etcd-certfile", "etcd-keyfile"),
        )
        for name, certificate, key in pairs:
            if options[certificate]:
                files.append(CertificateFile(name, options[certificate], options[key]))
        bundles = ("client-ca-file", "requestheader-client-ca-file", "kubelet-certificate-authority", "etcd-cafile")
        files += [CertificateFile(flag, options[flag], authority=True) for flag in bundles if options[flag]]
        return files

    def _names(self) -> tuple[str, ...]:
        options = self._options
        return serving_names(
            socket.gethostname(),
            options["service-cluster-ip-range"],
            (options["bind-address"], advertised_address(options["bind-address"], options["advertise-address"])),
            options["external-hostname"],
        )

    def _hosts(self) -> tuple[str, ...]:
        """Return the names that clients use for a server with a certificate of another authority."""
        options = self._options
        advertised = advertised_address(options["bind-address"], options["advertise-address"])
        return tuple(one for one in (advertised, options["external-hostname"]) if one)

    def _check_etcd(self) -> Iterator[Finding]:
        members = read_members(self._options)
        yield from judge_members(members)
        yield from judge_skews(skews_of(members))

    def _check_server(self) -> Iterator[Finding]:
        options = self._options
        if not self._in_memory and self._directory().holder:
            facts = read_server(self._path / "admin.kubeconfig")
            yield from judge_server(facts)
            if facts.skew is not None:
                yield from judge_skews({facts.url: facts.skew})
        else:
            yield from check_port(
                options["bind-address"], options["secure-port"], shared=options["permit-port-sharing"]
            )
