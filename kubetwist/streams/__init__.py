"""The stream protocols of exec, attach and port-forward: SPDY/3.1 and WebSocket, and the translation between them."""
