"""The statistics of BM25 scores, in single precision as pylance computes them.

S. Robertson and H. Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def mean_length(num_tokens: int, num_documents: int) -> np.float32:
    """Return the mean number of tokens of documents."""
    return np.float32(num_tokens) / np.float32(max(num_documents, 1))


def token_weights(num_containing: npt.NDArray[np.int64], num_documents: int) -> npt.NDArray[np.float32]:
    """Return the weights of tokens: the rarer one is, the more it weighs.

    Parameters
    ----------
    num_containing : int64[num_tokens]
        Number of documents that have each token, at least 1.
    num_documents : int
        Of all.

    Returns
    -------
    float32[num_tokens]
    """
    containing, total = num_containing.astype(np.float32), np.float32(num_documents)
    half, one = np.float32(0.5), np.float32(1)
    ratios = (total - containing + half) / (containing + half) + one
    return np.log(ratios.astype(np.float64)).astype(np.float32)
