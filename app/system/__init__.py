"""The process around the window: threads, the engine's and the runner's ends, crash log, leaving."""
