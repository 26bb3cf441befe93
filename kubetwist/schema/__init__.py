"""Types of the API, compiled to closures: decoding, validation, merging and encoding. No I/O, no Twisted."""
