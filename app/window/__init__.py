"""From the command to the window, and what holds its parts together."""
