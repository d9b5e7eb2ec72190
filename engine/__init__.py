"""Everything that works without a window: contract, sampler, models, runner, selection, session."""
