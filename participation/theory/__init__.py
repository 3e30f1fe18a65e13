"""Laws of participation: exact.

`separation` has minimum separation, `weights` the active set and the bias of its weights. All
functions take plain arrays and numbers.
"""
