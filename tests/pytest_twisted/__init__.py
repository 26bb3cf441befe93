"""Tests on the reactor of pytest-twisted; pytest runs them, and trial finds no test cases in them."""
