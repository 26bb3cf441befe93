"""The loops that live in the server: each follows objects through the watch caches and does what follows from them."""
