"""The issuer of service account tokens and its keys, as configured on the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from twisted.logger import Logger

from ...registry.core.serviceaccount.tokenkeys import BadVerificationKey, TokenKey, load_token_keys
from ...registry.core.serviceaccount.tokens import EXTENDED_SECONDS, RENEWED_SECONDS, BadSigningKey, TokenIssuer
from ..errors import StartError

if TYPE_CHECKING:
    from ...api.flagvalues import FlagValues
    from ..watchedfiles import FileReloader
    from .keydirectory import KeyDirectory

_log = Logger()


def make_token_issuer(options: FlagValues, data: KeyDirectory, files: FileReloader) -> TokenIssuer:
    """
    Read the key of C{--service-account-signing-key-file}, or without it the data directory's, now and after changes.

    @param options: The parsed command line.
    @param data: Contains the key if the command line names none.
    @param files: Watches the file.
    @raise StartError: The key cannot be read or used.
    """
    configured = options["service-account-signing-key-file"]
    path = Path(configured) if configured else data.service_account_keys()[0]
    issuers = options["service-account-issuer"]
    audiences = options["api-audiences"] or issuers
    try:
        longest, extend = _expiration(options)

        def load(contents: Sequence[bytes]) -> TokenIssuer:
            return TokenIssuer.load(contents[0], issuers[0], audiences, longest, extend, own=not configured)

        def use(other: TokenIssuer) -> None:
            issuer.replace_key(other)

        source = "--service-account-signing-key-file" if configured else "service account signing key"
        issuer: TokenIssuer = files.watch([path], load, use, source)
        return issuer
    except OSError as error:
        raise StartError(f"cannot read {path}: {error.strerror}") from error
    except BadSigningKey as error:
        raise StartError(f"cannot use {path}: {error}") from error


def _expiration(options: FlagValues) -> tuple[int, bool]:
    longest = int(options["service-account-max-token-expiration"])
    extend = options["service-account-extend-token-expiration"]
    if longest and extend:
        if longest < RENEWED_SECONDS:
            _log.warn(
                "service-account-extend-token-expiration is true, in order to correctly trigger safe transition logic,"
                " service-account-max-token-expiration must be set longer than {needed} seconds (currently {longest})",
                needed=RENEWED_SECONDS,
                longest=longest,
            )
        if longest < EXTENDED_SECONDS:
            _log.warn(
                "service-account-extend-token-expiration is true, enabling tokens valid up to {extended} seconds, which"
                " is longer than service-account-max-token-expiration set to {longest} seconds",
                extended=EXTENDED_SECONDS,
                longest=longest,
            )
    return longest, extend


def read_token_keys(
    options: FlagValues,
    data: KeyDirectory,
    files: FileReloader,
    listeners: Sequence[Callable[[Sequence[TokenKey]], object]],
) -> list[TokenKey]:
    """
    Return the keys that verify service account tokens: from C{--service-account-key-file}, or the signing key.

    The files are reloaded when they change: the returned list is updated in place.

    @param options: The parsed command line.
    @param data: Contains the key if the command line names none.
    @param files: Watches the files.
    @param listeners: Called with the keys after the files have changed.
    @raise StartError: The keys cannot be read or used.
    """
    configured = options["service-account-key-file"]
    signing = options["service-account-signing-key-file"]
    paths = [Path(path) for path in configured] or [Path(signing) if signing else data.service_account_keys()[1]]

    def load(contents: Sequence[bytes]) -> list[TokenKey]:
        keys = []
        for path, content in zip(paths, contents, strict=True):
            try:
                keys += load_token_keys(content)
            except BadVerificationKey as error:
                raise ValueError(f"cannot use {path}: {error}") from error
        return keys

    def use(keys: list[TokenKey]) -> None:
        keys_in_use[:] = keys
        for listener in listeners:
            listener(keys)

    try:
        source = "--service-account-key-file" if configured else "service account keys"
        keys_in_use: list[TokenKey] = files.watch(paths, load, use, source)
    except OSError as error:
        raise StartError(f"cannot read {error.filename}: {error.strerror}") from error
    except ValueError as error:
        raise StartError(str(error)) from error
    return keys_in_use
