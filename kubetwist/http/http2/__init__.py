"""HTTP/2: the frames, the header blocks, the connection, and its streams. @see: RFC 9113 and RFC 7541."""
