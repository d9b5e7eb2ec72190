"""One run from prompt to verdicts, and where its results go. The window and the command line share it."""
