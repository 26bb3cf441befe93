"""How the server calls others over HTTP: webhooks of every sort. There is no other way out of it."""
