"""Columns and cells of Tables, as the printers of all groups use them."""
