"""Questions, each asked once, with buttons that say what they do."""
