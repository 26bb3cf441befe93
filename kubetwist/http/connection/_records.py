"""
Encryption of short data with two calls of OpenSSL.

C{Connection.send} and C{Connection.bio_read} of pyOpenSSL check arguments and results that are known here, and allocate
a buffer for each read. This costs as much as the encryption of an event. L{RecordEncryptor} calls the same functions of
OpenSSL, with one buffer for all connections of a factory. They are internal names of pyOpenSSL: the public methods are
used for connections that do not have them.
"""

from __future__ import annotations

from typing import Any, Final

from OpenSSL import SSL

#: Maximum size of one TLS record.
RECORD: Final = 2**14
#: Bytes of encrypted data that are read in one call.
MAX_READ: Final = 2 * RECORD

#: The internal names of the module and of a connection.
_MODULE_NAMES: Final = ("_ffi", "_lib")
_CONNECTION_NAMES: Final = ("_ssl", "_from_ssl", "_raise_ssl_error")


class MethodEncryptor:
    """Encrypts data of connections by their public methods."""

    def prepare(self, connection: Any) -> Any:
        """Return what L{encrypt} uses of a connection."""
        return connection

    def encrypt(self, prepared: Any, data: bytes) -> tuple[int, bytes | memoryview]:
        """
        Encrypt data, and take the encrypted data from the connection.

        @param prepared: The result of L{prepare} for a connection that has completed its handshake.
        @param data: At most L{RECORD} bytes.
        @return: The number of bytes that were encrypted, and the encrypted data, which are valid until the next call.
        @raise SSL.WantReadError: OpenSSL needs data of the peer first.
        @raise SSL.Error: The connection cannot be used.
        """
        return prepared.send(data), prepared.bio_read(MAX_READ)


class RecordEncryptor(MethodEncryptor):
    """Encrypts data of the connections of one thread by the functions of OpenSSL."""

    def __init__(self) -> None:
        library, ffi = (vars(SSL)[name] for name in ("_lib", "_ffi"))
        self._write, self._read = library.SSL_write, library.BIO_read
        self._buffer = ffi.new("char[]", MAX_READ)
        self._view = memoryview(ffi.buffer(self._buffer))

    def prepare(self, connection: Any) -> Any:
        """See L{MethodEncryptor.prepare}."""
        return connection._ssl, connection._from_ssl, connection

    def encrypt(self, prepared: Any, data: bytes) -> tuple[int, bytes | memoryview]:
        """See L{MethodEncryptor.encrypt}."""
        handle, encrypted, connection = prepared
        written = self._write(handle, data, len(data))
        if written <= 0:
            connection._raise_ssl_error(handle, written)
        return written, self._view[: max(self._read(encrypted, self._buffer, MAX_READ), 0)]


def is_direct(connection: object) -> bool:
    """Return whether a connection has the internal names that L{RecordEncryptor} uses."""
    return (
        isinstance(connection, SSL.Connection)
        and all(hasattr(SSL, name) for name in _MODULE_NAMES)
        and all(hasattr(connection, name) for name in _CONNECTION_NAMES)
    )
