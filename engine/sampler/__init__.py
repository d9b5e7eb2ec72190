"""The batched speculative sampler: n candidates of one prompt decoded as one ragged batch, losslessly."""
