"""One QObject per job: between the window's widgets and the engine, runner and disk."""
