# SPDX-License-Identifier: BSL-1.0
"""Medians and their bounds, as railpass/base/statistics.hpp has them, for the programs of bench."""
import math
import statistics


def bounds_of_median(values):
    """Two of the values, by the sign test, and the confidence that the median is between them."""
    values, n, tail, left_out = sorted(values), len(values), 0.5 ** len(values), 0
    while 2 * (left_out + 1) < n:
        more = tail + math.comb(n, left_out + 1) * 0.5 ** n
        if 1 - 2 * more < 0.95:
            break
        tail, left_out = more, left_out + 1
    return values[left_out], values[n - 1 - left_out], 1 - 2 * tail


def median_text(ratios):
    low, high, _ = bounds_of_median(ratios)
    return f"{statistics.median(ratios):.3f} ({low:.3f} .. {high:.3f})"
