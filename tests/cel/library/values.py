"""Strategies of lists of arbitrary values."""

from __future__ import annotations

from hypothesis.strategies import floats, integers, lists, one_of, text

ANYTHING = lists(one_of(integers(-3, 3), floats(-3, 3), text("ab", max_size=1), lists(integers(0, 1), max_size=1)))


NUMBERS = lists(integers(-100, 100))
