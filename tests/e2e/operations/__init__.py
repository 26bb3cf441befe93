"""Tests of the commands and files for operators, as operators use them."""
