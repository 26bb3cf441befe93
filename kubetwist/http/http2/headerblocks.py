"""
Decode header blocks with jh2's HPACK, which is written in Rust, and check the rules that it does not check. No I/O.

Where jh2 has no compiled module, its decoder in Python is used, which is fifteen times slower.

@see: RFC 7541.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .frames import COMPRESSION_ERROR, Http2ConnectionError

if TYPE_CHECKING:
    from collections.abc import Sequence

try:
    from jh2._hazmat import Decoder, HPACKError, OversizedHeaderListError
except ImportError:  # pragma: no cover
    from jh2.hpack import Decoder, HPACKError, OversizedHeaderListError

#: Maximum changes of the table's size at the start of a block.
_MAX_SIZE_UPDATES: Final = 2
#: Maximum octets of a number after its prefix; no valid number is larger.
_MAX_INTEGER_OCTETS: Final = 4
#: Lengths in bits of the Huffman codes of all octets.
# fmt: off
_CODE_LENGTHS: Final = bytes((
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28,
    28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15,
    6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20,
    20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23,
    24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22,
    22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27,
    24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26,
    26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
))
# fmt: on


class HeaderListTooLarge(Exception):
    """A header list exceeds the limit; the decoder's table is as the client expects it only if it is small."""


class HeaderDecoder:
    """
    The decoder of one connection.

    @ivar table_changed: Whether the last block changed the dynamic table: the same block may decode differently then.
    """

    __slots__ = ("_decoder", "_max_fields", "table_changed")

    def __init__(self, max_size: int, max_fields: int) -> None:
        """
        @param max_fields: Maximum number of fields.
        @param max_size: Maximum size of a header list in bytes, by the measure of SETTINGS_MAX_HEADER_LIST_SIZE.
        """
        self._decoder = Decoder(max_size)
        self._decoder.max_allowed_table_size = self._decoder.header_table_size = 4096
        self._max_fields = max_fields
        self.table_changed = False

    def decode(self, block: bytes) -> Sequence[tuple[bytes, bytes]]:
        """
        Return the names and values of a header block, in the first two elements of each tuple.

        @raise HeaderListTooLarge: The list exceeds the limit; the connection cannot decode further blocks.
        @raise Http2ConnectionError: The block is malformed.
        """
        try:
            count, self.table_changed, codes = _scan_block(block, self._max_fields)
        except IndexError:
            raise Http2ConnectionError(COMPRESSION_ERROR, "a header block is truncated") from None
        try:
            fields: Sequence[tuple[bytes, bytes]] = self._decoder.decode(block, True)
        except OversizedHeaderListError:
            raise HeaderListTooLarge from None
        except (HPACKError, UnicodeError, ValueError) as error:
            raise Http2ConnectionError(COMPRESSION_ERROR, f"a header block is malformed: {error}") from None
        if count != len(fields):
            raise Http2ConnectionError(COMPRESSION_ERROR, "a header block has an ambiguous length")
        for number, element, end, length in codes:
            padding = length * 8 - sum(fields[number][element].translate(_CODE_LENGTHS))
            if not 0 <= padding < 8 or (padding and ~block[end - 1] & (1 << padding) - 1):
                raise Http2ConnectionError(COMPRESSION_ERROR, "a Huffman code has invalid padding")
        return fields


def _scan_block(block: bytes, max_fields: int) -> tuple[int, bool, list[tuple[int, int, int, int]]]:
    """
    Check the lengths in a block, which the decoder relies on, and that table sizes change at its start.

    @return: The number of fields; whether the block changes the dynamic table; and the Huffman codes: the number of the
        field, 0 for its name or 1 for its value, the position behind the code, and its length.
    @raise IndexError: The block is shorter than its lengths.
    @raise HeaderListTooLarge: The block has too many fields.
    """
    position, end, count, updates, changed = 0, len(block), 0, 0, False
    codes: list[tuple[int, int, int, int]] = []
    while position < end:
        first = block[position]
        if first & 0x80:
            position = position + 1 if first != 0xFF else _integer(block, position, 0x7F)[1]
            count += 1
            if count > max_fields:
                raise HeaderListTooLarge
            continue
        if first & 0xE0 == 0x20:
            if count or updates == _MAX_SIZE_UPDATES:
                raise Http2ConnectionError(COMPRESSION_ERROR, "the size of the header table changes within a block")
            updates += 1
            changed = True
            position = _integer(block, position, 0x1F)[1]
            continue
        if first & 0x40:
            changed = True
            index, position = _integer(block, position, 0x3F)
        else:
            index, position = _integer(block, position, 0x0F)
        for element in (1,) if index else (0, 1):
            length, begin = _integer(block, position, 0x7F)
            is_code = block[position] & 0x80
            position = begin + length
            if is_code:
                codes.append((count, element, position, length))
            if position > end:
                raise IndexError
        count += 1
        if count > max_fields:
            raise HeaderListTooLarge
    return count, changed, codes


def _integer(block: bytes, position: int, mask: int) -> tuple[int, int]:
    """
    Return an integer with a prefix of some bits, and the position behind it.

    @raise IndexError: The block ends within it.
    """
    number = block[position] & mask
    position += 1
    if number != mask:
        return number, position
    for shift in range(0, 7 * _MAX_INTEGER_OCTETS, 7):
        octet = block[position]
        position += 1
        number += (octet & 0x7F) << shift
        if not octet & 0x80:
            return number, position
    raise Http2ConnectionError(COMPRESSION_ERROR, "a header block has a number that is too large")
