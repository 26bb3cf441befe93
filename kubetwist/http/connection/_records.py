"""
Encryption and decryption of short data with two calls of OpenSSL each, and the boundaries of received records.

C{Connection.send} and C{Connection.bio_read} of pyOpenSSL check arguments and results that are known here, and allocate
a buffer for each read, and so do C{bio_write} and C{recv}. This costs as much as the encryption of an event.
L{RecordEncryptor} calls the same functions of OpenSSL, with one buffer for all connections of a factory. They are
internal names of pyOpenSSL: the public methods are used for connections that do not have them.
"""

from __future__ import annotations

from typing import Any, Final

from OpenSSL import SSL

#: Maximum size of one TLS record.
RECORD: Final = 2**14
#: Bytes of the head of a record, the types of records, and the type of those with data of the application.
_HEAD: Final = 5
_RECORD_TYPES: Final = range(20, 25)
_APPLICATION_DATA: Final = 23
#: Bytes of encrypted data that are read in one call.
MAX_READ: Final = 2 * RECORD

#: The internal names of the module and of a connection.
_MODULE_NAMES: Final = ("_ffi", "_lib")
_CONNECTION_NAMES: Final = ("_ssl", "_from_ssl", "_into_ssl", "_raise_ssl_error")


class MethodEncryptor:
    """Encrypts and decrypts data of connections by their public methods."""

    def prepare(self, connection: Any) -> Any:
        """Return what L{encrypt} and L{decrypt} use of a connection."""
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

    def decrypt(self, prepared: Any, record: bytes) -> bytes:
        """
        Decrypt a whole record.

        @param prepared: As for L{encrypt}.
        @param record: The received record; nothing that was received before waits to be read.
        @return: Its content.
        @raise SSL.WantReadError: It has no data of the application.
        @raise SSL.ZeroReturnError: It ends the connection.
        @raise SSL.Error: It is invalid.
        """
        prepared.bio_write(record)
        content: bytes = prepared.recv(MAX_READ)
        return content


class RecordEncryptor(MethodEncryptor):
    """Encrypts and decrypts data of the connections of one thread by the functions of OpenSSL."""

    def __init__(self) -> None:
        library, ffi = (vars(SSL)[name] for name in ("_lib", "_ffi"))
        self._write, self._read = library.SSL_write, library.BIO_read
        self._put, self._receive = library.BIO_write, library.SSL_read
        self._buffer = ffi.new("char[]", MAX_READ)
        self._view = memoryview(ffi.buffer(self._buffer))

    def prepare(self, connection: Any) -> Any:
        """See L{MethodEncryptor.prepare}."""
        return connection._ssl, connection._from_ssl, connection, connection._into_ssl

    def encrypt(self, prepared: Any, data: bytes) -> tuple[int, bytes | memoryview]:
        """See L{MethodEncryptor.encrypt}."""
        handle, encrypted, connection, _ = prepared
        written = self._write(handle, data, len(data))
        if written <= 0:
            connection._raise_ssl_error(handle, written)
        return written, self._view[: max(self._read(encrypted, self._buffer, MAX_READ), 0)]

    def decrypt(self, prepared: Any, record: bytes) -> bytes:
        """See L{MethodEncryptor.decrypt}."""
        handle, _, connection, received = prepared
        if self._put(received, record, len(record)) != len(record):
            raise SSL.Error("a record could not be stored")
        size = self._receive(handle, self._buffer, MAX_READ)
        if size <= 0:
            connection._raise_ssl_error(handle, size)
        return bytes(self._view[:size])


def is_direct(connection: object) -> bool:
    """Return whether a connection has the internal names that L{RecordEncryptor} uses."""
    return (
        isinstance(connection, SSL.Connection)
        and all(hasattr(SSL, name) for name in _MODULE_NAMES)
        and all(hasattr(connection, name) for name in _CONNECTION_NAMES)
    )


class RecordBoundaries:
    """Finds out whether received data are one record of TLS, from the lengths in the heads of records."""

    __slots__ = ("_head", "_missing")

    def __init__(self) -> None:
        #: The bytes of the current record that have not arrived; negative if the data are not TLS.
        self._missing = 0
        #: The beginning of a head that has not arrived completely.
        self._head = b""

    def received(self, data: bytes) -> bool:
        """Return whether C{data} are one whole record with data of the application."""
        missing, size = self._missing, len(data)
        if not missing and not self._head and size > _HEAD and data[0] == _APPLICATION_DATA:
            rest = size - _HEAD - (data[3] << 8 | data[4])
            if not rest:
                return True
        if missing >= 0:
            self._follow(data)
        return False

    def _follow(self, data: bytes) -> None:
        """Find the end of the last record in C{data}."""
        if self._head:
            data, self._head = self._head + data, b""
        position, size = self._missing, len(data)
        while position < size:
            if size - position < _HEAD:
                self._head, self._missing = data[position:], 0
                return
            if data[position] not in _RECORD_TYPES:
                self._missing = -1
                return
            position += _HEAD + (data[position + 3] << 8 | data[position + 4])
        self._missing = position - size
