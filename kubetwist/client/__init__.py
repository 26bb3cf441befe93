"""HTTP clients for webhooks and other servers. All outgoing HTTP calls of the server use them."""
