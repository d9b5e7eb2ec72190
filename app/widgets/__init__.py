"""The parts of the window, one to a file. They know the theme and their own texts; the controller knows the rest."""
