"""Counter-based random numbers: the same (seed, candidate, position, index, purpose) always gives the same bits.

Philox-4x32-10 (Salmon et al., SC 2011). The key is the seed, the counter is (candidate, position, index, purpose),
so a number depends on nothing that happens around it: not the batch, not the draft length, not the order of work.
Changing anything here changes the text behind every seed that was ever written down.
"""

TOKEN, DRAFT, ACCEPT, RESIDUAL = range(4)  # purposes: the last word of the counter
