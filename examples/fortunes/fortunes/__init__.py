"""An extension API server: a group C{fun.example.com}, in memory."""
