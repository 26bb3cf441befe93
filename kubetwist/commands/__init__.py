"""Tools beside the server, each a command of C{twist} that does its work and ends."""
