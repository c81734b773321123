"""The best documents of posting lists: document at a time, without a look at blocks that cannot have one of them.

Lists are encoded as `posting_lists.py` says, and validated. Documents are visited in ranges in which no list has an end
of a block. A range is passed over if the largest contributions of its blocks do not make up the score of the worst of
the best documents so far ("Block-Max"). Lists whose largest contributions together do not are only looked up
("MaxScore": Turtle and Flood, 1995; Ding and Suel, 2011).

Bounds are sums in single precision in the order of the tokens, as scores are. Rounded sums of the same order grow with
their summands, so that no document has a score above its bound.
"""

from __future__ import annotations

import numpy as np

from lance_format.kernels.jit import allocating_kernel, kernel
from lance_format.kernels.texts.posting_lists import F32, I64, U32, decode_block, decode_positions, impact, match_phrase
from lance_format.kernels.texts.ranked_lists import NO_ROW, U64, Best, Cursors, Demands, RankedLists, SearchedRows

_NO_DOCUMENT = 1 << 32


@kernel
def bound_blocks(
    documents: U32, frequencies: U32, lengths: U32, mean: np.float32, lasts: I64, totals: I64, bounds: F32
) -> int:
    """Find the end and the bound of each block of a posting list.

    Parameters
    ----------
    documents, frequencies : uint32[num_postings]
        Documents are below `lengths.size`, and ascend.
    lengths : uint32[num_documents]
        Number of tokens of each document.
    mean : float32
        Of the lengths.
    lasts, totals : int64[num_blocks]
        Set to the last document of each block, and to the sum of its frequencies.
    bounds : float32[num_blocks]
        Set to the largest contribution of the token, if its weight is 1, to a score of the block.

    Returns
    -------
    int
        The number of blocks.
    """
    for block in range(lasts.size):
        most, total, last = np.float32(0), np.int64(0), np.int64(0)
        for index in range(block * 128, min(block * 128 + 128, documents.size)):
            last = np.int64(documents[index])
            total += np.int64(frequencies[index])
            most = max(most, impact(frequencies[index], lengths[documents[index]], mean))
        lasts[block], totals[block], bounds[block] = last, total, most
    return lasts.size


@kernel
def _holds(allowed: U64, address: np.uint64) -> bool:
    """Return whether ascending addresses have one."""
    low, high = 0, allowed.size
    while low < high:
        middle = (low + high) // 2
        if allowed[middle] < address:
            low = middle + 1
        else:
            high = middle
    return low < allowed.size and allowed[low] == address


@kernel
def _is_worse(score: np.float32, address: np.uint64, other_score: np.float32, other_address: np.uint64) -> bool:
    return score < other_score or (score == other_score and address > other_address)


@kernel
def _push(scores: F32, addresses: U64, size: int, score: np.float32, address: np.uint64) -> int:
    """Add a row to a heap with the worst first, in its place if the heap is full; return the size of the heap."""
    place = size
    if size < scores.size:
        while place and _is_worse(score, address, scores[(place - 1) // 2], addresses[(place - 1) // 2]):
            scores[place], addresses[place] = scores[(place - 1) // 2], addresses[(place - 1) // 2]
            place = (place - 1) // 2
        scores[place], addresses[place] = score, address
        return size + 1
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and _is_worse(scores[child + 1], addresses[child + 1], scores[child], addresses[child]):
            child += 1
        if not _is_worse(scores[child], addresses[child], score, address):
            break
        scores[place], addresses[place] = scores[child], addresses[child]
        place = child
    scores[place], addresses[place] = score, address
    return size


@allocating_kernel
def _open(lists: RankedLists, demands: Demands) -> Cursors:
    """Return cursors at the beginning of lists.

    The order is by ascending contribution, or by descending size if a document needs all tokens.
    """
    num_lists = lists.sizes.size
    maxima, keys = np.zeros(num_lists, np.float32), np.zeros(num_lists, np.float64)
    blocks = np.empty(num_lists, np.int64)
    for index in range(num_lists):
        blocks[index] = lists.starts[index]
        for block in range(lists.starts[index], lists.starts[index + 1]):
            maxima[index] = max(maxima[index], lists.weights[index] * lists.bounds[block])
        keys[index] = -np.float64(lists.sizes[index]) if demands.needs_all else np.float64(maxima[index])
    return Cursors(
        blocks,
        np.full(num_lists, -1, np.int64),
        np.zeros(num_lists, np.int64),
        np.zeros(num_lists, np.int64),
        np.empty((num_lists, 128), np.int64),
        np.empty((num_lists, 128), np.int64),
        np.empty((num_lists, 128), np.float32),
        maxima,
        np.zeros(num_lists, np.float32),
        np.argsort(keys),
        np.zeros(num_lists, np.float32),
        np.full(num_lists, -1, np.int64),
        np.empty(num_lists * demands.widest, np.uint32),
    )


@kernel
def _sum(shares: F32) -> np.float32:
    total = np.float32(0)
    for index in range(shares.size):
        if shares[index] >= 0:
            total += shares[index]
    return total


@kernel
def _skip_blocks(lists: RankedLists, cursors: Cursors, index: int, document: int) -> bool:
    """Go to the first block of a list that ends at a document or later; false if there is none."""
    block, end = cursors.blocks[index], lists.starts[index + 1]
    while block < end and lists.lasts[block] < document:
        block += 1
    cursors.blocks[index] = block
    return block < end


@kernel
def _load(lists: RankedLists, cursors: Cursors, index: int) -> bool:
    """Decode the block of a list; false if it is decoded already."""
    block = cursors.blocks[index]
    if cursors.decoded[index] == block:
        return False
    start, stop = lists.offsets[block], lists.offsets[block + 1]
    count = min(128, lists.sizes[index] - 128 * (block - lists.starts[index]))
    decode_block(lists.data, start, stop, count, lists.varints, cursors.documents[index], cursors.frequencies[index])
    cursors.decoded[index], cursors.counts[index], cursors.places[index] = block, count, 0
    return True


@kernel
def _contribute(
    documents: I64, frequencies: I64, count: int, lengths: U32, mean: np.float32, weight: np.float32, out: F32
) -> int:
    """Set what a token contributes to the scores of documents, and return their number."""
    for place in range(count):
        out[place] = weight * impact(frequencies[place], lengths[documents[place]], mean)
    return count


@allocating_kernel
def _has_phrase(lists: RankedLists, demands: Demands, cursors: Cursors) -> bool:
    """Return whether the current document of all lists has the phrase."""
    num_lists = lists.sizes.size
    starts, stops = np.empty((1, num_lists), np.int64), np.empty((1, num_lists), np.int64)
    for index in range(num_lists):
        block, base = cursors.blocks[index], index * demands.widest
        frequencies = cursors.frequencies[index]
        if cursors.placed[index] != block:
            bounds, out = demands.offsets[block : block + 2], cursors.token_positions[base : base + demands.widest]
            decode_positions(demands.data, bounds, frequencies[: cursors.counts[index]], out)
            cursors.placed[index] = block
        for place in range(cursors.places[index]):
            base += frequencies[place]
        starts[0, index], stops[0, index] = base, base + frequencies[cursors.places[index]]
    matches = np.zeros(1, np.bool_)
    match_phrase(starts, stops, cursors.token_positions, demands.steps, demands.slop, matches)
    return bool(matches[0])


@kernel
def _num_positions(lists: RankedLists, cursors: Cursors) -> int:
    """Count the positions of the query that the current document has a token of."""
    found, latest = 0, np.int64(-1)
    for index in range(lists.sizes.size):
        if cursors.shares[index] >= 0 and lists.positions[index] != latest:
            latest = lists.positions[index]
            found += 1
    return found


@kernel
def _may_enter(bound: np.float32, best: Best, size: int) -> bool:
    """Return whether documents further on, of a score up to a bound, can be among the best."""
    if size < best.scores.size:
        return bound >= best.floor
    return bound > best.scores[0] or (bound == best.scores[0] and not best.is_ascending)


@kernel
def _num_weak(cursors: Cursors, best: Best, size: int) -> int:
    """Return the number of the first lists in their order whose tokens alone do not make a document one of the best."""
    for index in range(cursors.shares.size):
        cursors.shares[index] = np.float32(-1)
    for place in range(cursors.shares.size):
        index = cursors.order[place]
        cursors.shares[index] = cursors.maxima[index]
        if _may_enter(_sum(cursors.shares), best, size):
            return place
    return cursors.shares.size


@kernel
def _evaluate(
    lists: RankedLists, demands: Demands, rows: SearchedRows, cursors: Cursors, best: Best, document: int, size: int
) -> int:
    """Add the document that all cursors are at to the best, if it is one of them and matches; return their number."""
    score, address = _sum(cursors.shares), rows.addresses[document]
    if size == best.scores.size:
        if not _is_worse(best.scores[0], best.addresses[0], score, address):
            return size
    elif score < best.floor:
        return size
    if address == NO_ROW or (rows.is_restricted and not _holds(rows.allowed, address)):
        return size
    if _num_positions(lists, cursors) < demands.num_positions:
        return size
    if demands.is_phrase and not _has_phrase(lists, demands, cursors):
        return size
    return _push(best.scores, best.addresses, size, score, address)


@kernel
def _search_range(
    lists: RankedLists, demands: Demands, rows: SearchedRows, cursors: Cursors, best: Best, num_looked_up: int,
    low: int, high: int, size: int,
) -> int:  # fmt: skip
    """Add the documents of a range, both ends included, to the best; return their number."""
    num_lists, order, shares, limits = lists.sizes.size, cursors.order, cursors.shares, cursors.limits
    documents, contributions, places, counts = cursors.documents, cursors.contributions, cursors.places, cursors.counts
    blocks, starts, lasts, frequencies = cursors.blocks, lists.starts, lists.lasts, cursors.frequencies
    weights, lengths, mean = lists.weights, rows.lengths, rows.mean
    for place in range(num_looked_up, num_lists):
        index = order[place]
        if limits[index] < 0:
            counts[index], cursors.decoded[index] = 0, -1
        elif _load(lists, cursors, index):
            _contribute(
                documents[index], frequencies[index], counts[index], lengths, mean, weights[index], contributions[index]
            )
    too_low, leader = np.float32(-1), order[num_lists - 1]
    while True:
        if num_looked_up == num_lists - 1:
            at = places[leader]
            while at < counts[leader] and documents[leader, at] <= high and contributions[leader, at] <= too_low:
                at += 1
            places[leader] = at
        document = _NO_DOCUMENT
        for place in range(num_looked_up, num_lists):
            index = order[place]
            at = places[index]
            while at < counts[index] and documents[index, at] < low:
                at += 1
            places[index] = at
            if at < counts[index]:
                document = min(document, documents[index, at])
        if document > high:
            return size
        low = document + 1
        for place in range(num_lists):
            index = order[place]
            at = places[index]
            if place < num_looked_up:
                shares[index] = limits[index]
            elif at < counts[index] and documents[index, at] == document:
                shares[index] = contributions[index, at]
            else:
                shares[index] = np.float32(-1)
        may_enter = _may_enter(_sum(shares), best, size)
        if not may_enter:
            too_low = max(too_low, shares[leader])
        for place in range(num_looked_up - 1, -1, -1):
            if not may_enter:
                break
            index = order[place]
            block = blocks[index]
            while block < starts[index + 1] and lasts[block] < document:
                block += 1
            blocks[index] = block
            shares[index] = np.float32(-1)
            if block < starts[index + 1]:
                if cursors.decoded[index] != block:
                    _load(lists, cursors, index)
                at = places[index]
                while documents[index, at] < document:
                    at += 1
                places[index] = at
                if documents[index, at] == document:
                    shares[index] = weights[index] * impact(frequencies[index, at], lengths[document], mean)
            may_enter = _may_enter(_sum(shares), best, size) and (shares[index] >= 0 or not demands.needs_all)
        if may_enter:
            size = _evaluate(lists, demands, rows, cursors, best, document, size)


@kernel
def _search(
    lists: RankedLists, demands: Demands, rows: SearchedRows, cursors: Cursors, best: Best, num_weak: int
) -> int:
    """Find the best documents, except those that have tokens of the first lists in their order only."""
    num_lists, size, low = lists.sizes.size, 0, 0
    for index in range(num_lists):
        cursors.blocks[index], cursors.decoded[index] = lists.starts[index], -1
    while num_weak < num_lists:
        high, num_left = _NO_DOCUMENT, 0
        for place in range(num_lists):
            index = cursors.order[place]
            limit = cursors.maxima[index]
            if place >= num_weak:
                limit = np.float32(-1)
                if _skip_blocks(lists, cursors, index, low):
                    block = cursors.blocks[index]
                    limit = lists.weights[index] * lists.bounds[block]
                    high = min(high, lists.lasts[block])
                    num_left += 1
            cursors.limits[index] = limit
        if not num_left or (demands.needs_all and num_left < num_lists):
            break
        if _may_enter(_sum(cursors.limits), best, size):
            num_looked_up = num_lists - 1 if demands.needs_all else num_weak
            size = _search_range(lists, demands, rows, cursors, best, num_looked_up, low, high, size)
            if not demands.needs_all:
                num_weak = max(num_weak, _num_weak(cursors, best, size))
        low = high + 1
    return size


@allocating_kernel
def find_best(lists: RankedLists, demands: Demands, rows: SearchedRows, scores: F32, addresses: U64) -> int:
    """Find the documents of the highest scores; of equal ones, those of the lowest addresses.

    Parameters
    ----------
    lists : RankedLists
        Validated; documents are below `rows.lengths.size`.
    demands : Demands
    rows : SearchedRows
    scores : float32[limit]
    addresses : uint64[limit]
        Set to the scores and the rows of the best documents, in any order. The limit is at least 1.

    Returns
    -------
    int
        Their number.
    """
    cursors = _open(lists, demands)
    last = lists.sizes.size - 1
    best = Best(scores, addresses, np.float32(-1), rows.is_ascending)
    if last > 0 and not demands.needs_all:
        # The documents of the strongest token come first, and their scores bound those of the others from below.
        size = _search(lists, demands, rows, cursors, best, last)
        if size == scores.size:
            best = Best(scores, addresses, scores[0], rows.is_ascending)
            if _num_weak(cursors, best, 0) >= last:
                return size
    return _search(lists, demands, rows, cursors, best, 0)
