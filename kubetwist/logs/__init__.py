"""What a server tells of itself in its log: how much of it, how it is written, and the lines about requests."""
