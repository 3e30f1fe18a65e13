"""Laws of participation: exact where possible, otherwise by simulation with standard errors.

`chains` has Markov chains, `separation` minimum separation, `weights` the active set and the bias of its weights. All
functions take plain arrays and numbers.
"""
