"""What every widget may need: actions and when they can be done, theme, highlighting, words."""
