"""The files of C{--hardened} in the data directory: the audit policy and log, and the key of Secrets at rest."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from twisted.logger import Logger

from ..api.storage import Write
from ..interfaces import IStaleFormatDetector
from ..storage.errors import CorruptObjectError, KeyNotFound, RevisionConflict
from .errors import StartError

if TYPE_CHECKING:
    from ..interfaces import IStorageBackend
    from .datadir import DataDirectory
    from .options import ServerOptions

FOLDER: Final = "hardened"
POLICY: Final = "audit-policy.yaml"
LOG: Final = "audit.log"
ENCRYPTION: Final = "encryption.yaml"
#: Values that are read at once when they are encrypted.
_PAGE: Final = 100
_log = Logger()

_POLICY_TEXT: Final = """\
# Written by --hardened once; changes are kept, and used without a restart.
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  nonResourceURLs: [/healthz, /livez, /readyz]
# This rule is before the last one, so that a higher level there does not log credentials.
- level: Metadata
  resources:
  - group: ""
    resources: [secrets, configmaps, serviceaccounts/token]
  - group: authentication.k8s.io
    resources: [tokenreviews]
- level: Metadata
"""
_ENCRYPTION_TEXT: Final = """\
# Written by --hardened once. Without this key the Secrets of the store cannot be read: keep a copy, not beside backups.
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - secretbox:
      keys:
      - name: key1
        secret: {key}
  - identity: {{}}
"""


def prepare_files(options: ServerOptions, data: DataDirectory) -> None:
    """
    Write the files of C{--hardened} that do not exist, and set the flags for them that were not given.

    @raise StartError: A file cannot be written.
    """
    if not options["hardened"]:
        return
    folder = data.path / FOLDER
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if not options["audit-policy-file"]:
            options["audit-policy-file"] = _ensure(data, folder / POLICY, lambda: _POLICY_TEXT)
        if not (options["audit-log-path"] or options["audit-webhook-config-file"]):
            options["audit-log-path"] = str(folder / LOG)
        # Nothing is at rest in memory.
        if not options["encryption-provider-config"] and options["storage-backend"] != "memory":
            options["encryption-provider-config"] = _ensure(data, folder / ENCRYPTION, _new_encryption)
            options["encryption-provider-config-automatic-reload"] = True
    except OSError as error:
        raise StartError(f"--hardened: cannot write {error.filename or folder}: {error.strerror or error}") from error


def _new_encryption() -> str:
    return _ENCRYPTION_TEXT.format(key=b64encode(os.urandom(32)).decode())


def _ensure(data: DataDirectory, path: Path, make: Callable[[], str]) -> str:
    if not path.exists():
        data.write(path, make().encode())
    return str(path)


async def encrypt_stored(backend: IStorageBackend, prefix: str) -> int:
    """
    Write the values again that are not stored in the form of the first provider of the encryption.

    A value that another client changes at the same time is written by that client.

    @param backend: The storage with encryption.
    @param prefix: The prefix of the keys, with a slash at its end.
    @return: The number of written values.
    """
    detector = IStaleFormatDetector(backend)
    written, start = 0, ""
    while True:
        page = await backend.read_page(prefix, start=start, limit=_PAGE)
        for item in page.items:
            try:
                if not item.problem and await detector.is_stale(item.key):
                    await backend.commit([Write(item.key, item.value, item.revision)])
                    written += 1
            except (KeyNotFound, RevisionConflict, CorruptObjectError):
                continue
        if not page.more:
            break
        # The first key after the last one.
        start = f"{page.items[-1].key}\0"
    if written:
        _log.info("encrypted stored objects count={count} prefix={prefix}", count=written, prefix=prefix)
    return written
