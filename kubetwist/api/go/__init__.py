"""Parsing and formatting of strings, numbers, URLs and addresses as in Go's standard library."""
