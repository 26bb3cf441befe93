"""The HTTP client for webhooks of every sort. The server makes no other outgoing HTTP calls."""
