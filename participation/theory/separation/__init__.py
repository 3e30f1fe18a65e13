"""Minimum separation [Sun et al. 2025]: how often each unit is drawn, and how soon its law becomes stationary.

**The model.** Units are numbered 0..M-1. A unit drawn in round t is available again from round t + R + 1 on (R_i if R
differs by unit). Each round draws B units from the available ones: for B = 1 one unit with probability proportional
to p; for B > 1 a set with probability proportional to the product of p over the set (the `product` law, Proposition
1(2)). At the start all units are available. pi_R is the share of rounds in which a unit is drawn, so it sums to B.
"""

from participation.theory.separation.chain import SeparationChain, chain_separation, separation_chain
from participation.theory.separation.mixing import Mixing, separation_mixing
from participation.theory.separation.simulation import separation_shares, simulated_separation
from participation.theory.separation.stationary import stationary_separation

__all__ = [
    "Mixing",
    "SeparationChain",
    "chain_separation",
    "separation_chain",
    "separation_mixing",
    "separation_shares",
    "simulated_separation",
    "stationary_separation",
]
