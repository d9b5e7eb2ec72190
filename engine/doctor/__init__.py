"""What this machine has and lacks for Bassline, and what to do about each weakness. No torch, no Qt."""
