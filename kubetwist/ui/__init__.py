"""The web UI at C{/ui}: its files, sign-in and sign-out. The page itself is a client of the API."""
