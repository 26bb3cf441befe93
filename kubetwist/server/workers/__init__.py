"""Several processes of one server: a storage process and its fronts (C{--workers})."""
