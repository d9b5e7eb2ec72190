"""What the window's lists and tabs show, apart from how it is painted."""
