"""Validation of device classes, resource claims and resource slices."""
