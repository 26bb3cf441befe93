"""Controllers in the server process: each watches objects and reconciles them."""
