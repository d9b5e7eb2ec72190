"""The way to an address from here: through which proxy, and by which certificates. Read once more for every request."""
