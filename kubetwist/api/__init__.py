"""Pure functions on API objects: errors, selectors, patches, names, decoding. No I/O, no Twisted."""
