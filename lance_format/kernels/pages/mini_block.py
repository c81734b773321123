"""Taking mini-block chunks apart and putting them together; `structural/mini_block.py` has the byte diagram."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel
from lance_format.kernels.words import copy_bytes

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]

ALIGNMENT = 8
"""Unit of the sizes of chunks."""

LOG_BITS = 4
"""Bits of a chunk's word that have the logarithm of the number of its values."""

TOO_LARGE = -1
"""Result of `plan_chunks` if a chunk has more bytes than allowed."""

PADDING = np.uint8(0xFE)
"""What is between the parts of chunks."""

_MAX_CHUNK_VALUES = 2**31


@kernel
def read_integer(data: U8, position: int, size: int) -> int:
    """Return the little-endian integer of `size` bytes at byte `position` of `data`; see `write_integers`."""
    value = 0
    for byte in range(size):
        value |= np.int64(data[position + byte]) << (8 * byte)
    return value


@kernel
def measure_chunks(
    words: I64, word_bytes: int, table_bytes: I64, chunk_bytes: I64, num_items: I64, sizes: I64, counts: I64
) -> int:
    """Take the words of the chunk tables of pages apart.

    Parameters
    ----------
    words : int64[table_bytes.sum() // word_bytes]
    word_bytes : int
        Bytes that a word has in the file.
    table_bytes, chunk_bytes, num_items : int64[num_pages]
        For each page, the size of its words and of its chunks, and the number of its values.
    sizes, counts : int64[table_bytes.sum() // word_bytes]
        Set to the bytes and the number of values of each chunk.

    Returns
    -------
    int
        The number of chunks; -1 - the index of the first page that has no whole words, or whose chunks have more bytes
        or other numbers of values.
    """
    first = 0
    for page in range(table_bytes.size):
        last = first + table_bytes[page] // word_bytes - 1
        if last < first or table_bytes[page] % word_bytes != 0:
            return -1 - page
        stored = 0
        values = 0
        for chunk in range(first, last + 1):
            sizes[chunk] = ((words[chunk] >> LOG_BITS) + 1) * ALIGNMENT
            stored += sizes[chunk]
            counts[chunk] = 1 << (words[chunk] & ((1 << LOG_BITS) - 1))
            values += counts[chunk]
        left = num_items[page] - (values - counts[last])
        is_wrong = (
            stored > chunk_bytes[page] or not 0 <= left <= _MAX_CHUNK_VALUES or (left == 0 and num_items[page] > 0)
        )
        if is_wrong or (counts[last] > 1 and left != counts[last]):
            return -1 - page
        counts[last] = left
        first = last + 1
    return first


@kernel
def find_rows(rows: I64, first_rows: I64, chunks: I64, numbers: I64, within: I64) -> int:
    """Find the chunks that hold rows, where every value is a row.

    Parameters
    ----------
    rows : int64[num_rows]
        Ascending, may repeat; from the first row of the first chunk to the last one of the last.
    first_rows : int64[num_chunks + 1]
        The first row of each chunk, and the row after the last.
    chunks : int64[num_rows]
        Set to the chunks that hold them, each once; entries after these are left alone.
    numbers, within : int64[num_rows]
        Set to the index in `chunks` and the position in the chunk of each row.

    Returns
    -------
    int
        The number of chunks that hold rows.
    """
    count = 0
    chunk = 0
    for index in range(rows.size):
        row = rows[index]
        high = first_rows.size - 1
        if chunk + 1 < high and first_rows[chunk + 1] <= row:
            chunk += 1
            while high - chunk > 1:
                middle = (chunk + high) // 2
                if first_rows[middle] <= row:
                    chunk = middle
                else:
                    high = middle
        if count == 0 or chunks[count - 1] != chunk:
            chunks[count] = chunk
            count += 1
        numbers[index] = count - 1
        within[index] = row - first_rows[chunk]
    return count


@kernel
def merge_extents(begins: I64, ends: I64, gap: int, offsets: I64, sizes: I64, positions: I64) -> int:
    """Merge ranges of bytes with small gaps between them.

    Parameters
    ----------
    begins, ends : int64[num_extents]
        Where neither decreases, ranges are merged.
    gap : int
        The most bytes between two ranges that become one.
    offsets, sizes : int64[num_extents]
        Set to the merged ranges; entries after these are left alone.
    positions : int64[num_extents]
        Set to the offset of each range in the merged ones, which follow each other.

    Returns
    -------
    int
        The number of merged ranges.
    """
    count = 0
    before = 0
    for index in range(begins.size):
        is_apart = count == 0 or begins[index] > offsets[count - 1] + sizes[count - 1] + gap
        if is_apart or begins[index] < offsets[count - 1]:
            before += sizes[count - 1] if count else 0
            offsets[count] = begins[index]
            count += 1
            sizes[count - 1] = 0
        sizes[count - 1] = max(sizes[count - 1], ends[index] - offsets[count - 1])
        positions[index] = before + begins[index] - offsets[count - 1]
    return count


@kernel
def parse_headers(
    data: U8, chunk_starts: I64, chunk_sizes: I64, size_width: int, num_levels: I64, starts: I64, sizes: I64
) -> int:
    """Find the buffers of every chunk.

    Parameters
    ----------
    data : uint8[…]
        The chunks.
    chunk_starts, chunk_sizes : int64[num_chunks]
        Byte ranges of the chunks within `data`.
    size_width : int
        Bytes of a value buffer's size, 2 or 4.
    num_levels : int64[num_chunks]
        Set to the number of levels of each chunk.
    starts, sizes : int64[2 + num_buffers, num_chunks]
        Set to the byte ranges of the repetition levels, the definition levels and each value buffer within `data`. The
        caller sets `sizes[0]` or `sizes[1]` to -1 if the page lacks these levels; they are left alone.

    Returns
    -------
    int
        The number of chunks, or -1 - the index of the first chunk whose buffers do not fit into it.
    """
    rows = sizes.shape[0]
    for chunk in range(chunk_starts.size):
        begin = chunk_starts[chunk]
        end = begin + chunk_sizes[chunk]
        header = 2
        for row in range(rows):
            if row >= 2:
                header += size_width
            elif sizes[row, chunk] >= 0:
                header += 2
        if begin + header > end:
            return -1 - chunk
        num_levels[chunk] = read_integer(data, begin, 2)
        position = begin + 2
        for row in range(rows):
            width = size_width if row >= 2 else 2
            if row >= 2 or sizes[row, chunk] >= 0:
                sizes[row, chunk] = read_integer(data, position, width)
                position += width
        position = begin + (header + 7) // 8 * 8
        for row in range(rows):
            if sizes[row, chunk] < 0:
                continue
            if position + sizes[row, chunk] > end:
                return -1 - chunk
            starts[row, chunk] = position
            position += (sizes[row, chunk] + 7) // 8 * 8
    return chunk_starts.size


@kernel
def copy_slices(data: U8, starts: I64, sizes: I64, out: U8) -> int:
    """Copy slices, one after the other.

    Parameters
    ----------
    data : uint8[…]
        The source.
    starts, sizes : int64[num_slices]
        Byte ranges of the slices within `data`.
    out : uint8[sizes.sum()]
        Set to the bytes of the slices.

    Returns
    -------
    int
        The number of bytes.
    """
    position = 0
    for chunk in range(starts.size):
        size = sizes[chunk]
        copy_bytes(data, starts[chunk], size, out, position)
        position += size
    return position


@kernel
def copy_bits(data: U8, starts: I64, num_bits: I64, out: U8) -> int:
    """Copy slices of bits, one after the other.

    Parameters
    ----------
    data : uint8[…]
        The source, the least significant bit of each byte first.
    starts : int64[num_slices]
        Byte offset of each slice within `data`.
    num_bits : int64[num_slices]
        Number of bits of each slice.
    out : uint8[(num_bits.sum() + 7) // 8]
        Holds zeros, set to the bits.

    Returns
    -------
    int
        The number of bits.
    """
    position = 0
    for chunk in range(starts.size):
        count = num_bits[chunk]
        start = starts[chunk]
        shift = position % 8
        target = position // 8
        whole = (count + 7) // 8
        first = 0
        if shift == 0:
            first = count // 8
            copy_bytes(data, start, first, out, target)
        for byte in range(first, whole):
            value = np.int64(data[start + byte])
            remaining = count - byte * 8
            if remaining < 8:
                value &= (1 << remaining) - 1
            out[target + byte] |= np.uint8((value << shift) & 0xFF)
            if shift > 0 and (value >> (8 - shift)) != 0:
                out[target + byte + 1] |= np.uint8(value >> (8 - shift))
        position += count
    return position


@kernel
def plan_chunks(sizes: I64, num_values: I64, header_bytes: int, most_bytes: int, positions: I64, words: I64) -> int:
    """Find where the parts of chunks are, and make their words.

    Parameters
    ----------
    sizes : int64[num_parts, num_chunks]
        Bytes of each part of each chunk.
    num_values : int64[num_chunks]
    header_bytes : int
        Bytes of a header, without padding.
    most_bytes : int
        Maximum number of bytes of a chunk.
    positions : int64[num_parts + 1, num_chunks]
        Set to the byte offset of the header and of each part.
    words : int64[num_chunks]
        Set to the word of each chunk.

    Returns
    -------
    int
        The bytes of all chunks, or `TOO_LARGE` if one has too many.
    """
    num_parts, num_chunks = sizes.shape
    position = 0
    for chunk in range(num_chunks):
        start = position
        positions[0, chunk] = start
        position += (header_bytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        for part in range(num_parts):
            positions[part + 1, chunk] = position
            position += (sizes[part, chunk] + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        if position - start > most_bytes:
            return TOO_LARGE
        logarithm = 0
        if chunk < num_chunks - 1:
            while (num_values[chunk] >> logarithm) > 1:
                logarithm += 1
        words[chunk] = (((position - start) // ALIGNMENT - 1) << LOG_BITS) | logarithm
    return position


@kernel
def scatter(source: U8, sizes: I64, positions: I64, out: U8) -> int:
    """Copy consecutive slices to given offsets.

    Parameters
    ----------
    source : uint8[sizes.sum()]
        The slices, one after the other.
    sizes : int64[num_slices]
        Bytes of each slice.
    positions : int64[num_slices]
        Byte offset of each slice within `out`.
    out : uint8[…]
        Set at these offsets.

    Returns
    -------
    int
        The number of bytes copied.
    """
    read = 0
    for chunk in range(sizes.size):
        size = sizes[chunk]
        copy_bytes(source, read, size, out, positions[chunk])
        read += size
    return read


@kernel
def write_headers(counts: I64, sizes: I64, num_levels: int, size_width: int, positions: I64, out: U8) -> int:
    """Write the headers of chunks and all padding. Headers are the number of levels and the sizes of parts.

    Parameters
    ----------
    counts : int64[num_chunks]
        Number of levels of each chunk.
    sizes : int64[num_parts, num_chunks]
        Bytes of each part of each chunk.
    num_levels : int
        So many parts are levels, the first ones; if there are none, 0 is stored for the number of levels.
    size_width : int
        Bytes of the sizes of the other parts; those of levels have two.
    positions : int64[num_parts + 1, num_chunks]
        Byte offset of each header and part within `out`.
    out : uint8[…]
        Set except for the parts.

    Returns
    -------
    int
        The number of chunks.
    """
    num_parts, num_chunks = sizes.shape
    for chunk in range(num_chunks):
        position = positions[0, chunk]
        count = counts[chunk] if num_levels > 0 else 0
        out[position] = np.uint8(count & 0xFF)
        out[position + 1] = np.uint8((count >> 8) & 0xFF)
        position += 2
        for part in range(num_parts):
            width = 2 if part < num_levels else size_width
            for byte in range(width):
                out[position + byte] = np.uint8((sizes[part, chunk] >> (8 * byte)) & 0xFF)
            position += width
        for part in range(num_parts):
            for index in range(position, positions[part + 1, chunk]):
                out[index] = PADDING
            position = positions[part + 1, chunk] + sizes[part, chunk]
        end = positions[0, chunk + 1] if chunk + 1 < num_chunks else out.size
        for index in range(position, end):
            out[index] = PADDING
    return num_chunks


@kernel
def write_integers(values: I64, width: int, positions: I64, out: U8) -> int:
    """Write little-endian integers to given offsets.

    Parameters
    ----------
    values : int64[num_values]
        The integers.
    width : int
        Bytes per integer, at most 8.
    positions : int64[num_values]
        Byte offset of each integer within `out`.
    out : uint8[…]
        Set at these offsets.

    Returns
    -------
    int
        The number of integers.
    """
    for index in range(values.size):
        value = values[index]
        for byte in range(width):
            out[positions[index] + byte] = np.uint8((value >> (8 * byte)) & 0xFF)
    return values.size
