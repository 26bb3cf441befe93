"""
The format of the SQLite file, and the upgrade of older formats.

A new format gets the next number in L{FORMAT}, its tables in L{SCHEMA}, and in L{STEPS} the upgrade from the format
before. Steps are never changed: F{tests/storage/sqlite/formats/} has a file of every former format.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Sequence
from typing import Final

from ..embedded import FIRST_REVISION
from ..errors import StorageCorrupt

#: The application id in the file's header; it identifies kubetwist's stores.
APPLICATION_ID: Final = 0x6B747773
FORMAT: Final = 2

#: The bits of an id that number the rows of a transaction.
PLACE_BITS: Final = 16
PLACES: Final = 1 << PLACE_BITS

SCHEMA: Final = (
    f"CREATE TABLE log (id INTEGER PRIMARY KEY /* revision << {PLACE_BITS} | place in the transaction */, "
    "key TEXT NOT NULL, previous INTEGER NOT NULL /* revision */, expires REAL /* seconds since 1970 */, "
    "value BLOB /* NULL: deleted */, sum INTEGER /* the row's checksum; NULL: written in format 1 */)",
    "CREATE TABLE state (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    f"INSERT INTO state VALUES ('clock', {FIRST_REVISION}), ('compacted', 0), ('cleaned', 0), "
    "('history', random() & 0x3FFFFFFFFFFFFFFF | 1)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {FORMAT}",
)

#: By the number of a format, the statements that upgrade a file from the format before.
STEPS: Final[dict[int, tuple[str, ...]]] = {2: ("ALTER TABLE log ADD COLUMN sum INTEGER",)}

#: By the number of a format, the statements that convert a file to the format before.
DOWNGRADE_STEPS: Final[dict[int, tuple[str, ...]]] = {2: ("ALTER TABLE log DROP COLUMN sum",)}


def read_format(connection: sqlite3.Connection, path: str) -> int:
    """
    Return the format of a file; 0 if it is empty.

    @raise StorageCorrupt: It is no kubetwist store, or newer than this kubetwist.
    """
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if not tables:
        return 0
    if application != APPLICATION_ID:
        raise StorageCorrupt(f"{path} is another program's SQLite database, no kubetwist store")
    if version > FORMAT:
        raise StorageCorrupt(
            f"{path} has format {version}; this kubetwist reads formats up to {FORMAT}: use the newer one that wrote it"
        )
    return int(version)


def read_history(connection: sqlite3.Connection) -> int:
    """
    Return the number that identifies the history of a store: revisions of stores with different numbers are unrelated.

    A restore changes it. A copy has the number of its source.

    @return: The number; 0 if the store was last opened by a kubetwist without such numbers.
    """
    row = connection.execute("SELECT value FROM state WHERE name = 'history'").fetchone()
    return int(row[0]) if row else 0


def start_history(connection: sqlite3.Connection) -> None:
    """Give the store a new history number."""
    connection.execute("INSERT OR REPLACE INTO state VALUES ('history', ?)", (secrets.randbits(62) + 1,))


def migrate_schema(connection: sqlite3.Connection, version: int) -> None:
    """
    Convert a file to the present format; a failure, or a kill, leaves the file unchanged.

    @param version: The result of L{read_format}.
    """
    if version == FORMAT:
        return
    statements = list(SCHEMA)
    if version:
        statements = []
        for step in range(version + 1, FORMAT + 1):
            statements += STEPS[step]
        statements.append(f"PRAGMA user_version = {FORMAT}")
    _execute_all(connection, statements)


def downgrade_schema(connection: sqlite3.Connection, version: int) -> None:
    """
    Convert a file of the present format to a former one; a failure, or a kill, leaves the file unchanged.

    @param version: The format, from 1 on.
    """
    statements = [statement for step in range(FORMAT, version, -1) for statement in DOWNGRADE_STEPS[step]]
    _execute_all(connection, [*statements, f"PRAGMA user_version = {version}"])


def _execute_all(connection: sqlite3.Connection, statements: Sequence[str]) -> None:
    """Execute statements in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in statements:
            connection.execute(statement)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
