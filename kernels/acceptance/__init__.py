"""From the target's distributions to accepted counts and next tokens: the two lossless rules."""
