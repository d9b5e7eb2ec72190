"""How to reach an address: through which proxy, with which certificates. Looked up again for every request."""
