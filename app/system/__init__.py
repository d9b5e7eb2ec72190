"""The process around the window: threads, connections to engine and runner, crash log, shutdown."""
