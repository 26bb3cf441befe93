"""The watch cache: the objects of one resource and their recent past, in memory."""
