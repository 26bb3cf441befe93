"""By what other API servers know this one, when it hands requests on to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..config import ServerConfig
from ..errors import StartError
from .certificates import Pair


def show_front_proxy(config: ServerConfig) -> None:
    """
    Have servers behind APIServices shown the certificate of C{--proxy-client-cert-file}, as it is at the time, or that
    of the data directory.

    @raise StartError: The files can not be used.
    """
    aggregation: Any = config.aggregation
    if aggregation is None:
        return
    options = config.options
    if not options["proxy-client-cert-file"]:
        pair = config.credentials.front_proxy
        aggregation.use_identity(pair.certificate, pair.key)
        return
    paths = [options["proxy-client-cert-file"], options["proxy-client-key-file"]]

    def load(contents: Sequence[bytes]) -> Pair:
        pair = Pair(*contents)
        pair.parsed()
        return pair

    def use(pair: Pair) -> None:
        aggregation.use_identity(pair.certificate, pair.key)

    try:
        use(config.files.watch(paths, load, use, "--proxy-client-cert-file and --proxy-client-key-file"))
    except OSError as error:
        raise StartError(f"can not read {error.filename}: {error.strerror}") from error
    except ValueError as error:
        raise StartError(f"can not use the certificate for other API servers: {error}") from error
