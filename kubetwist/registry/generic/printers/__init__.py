"""Columns and cells of Tables for the printers of all groups."""
