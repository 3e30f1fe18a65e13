"""The board as a table: results by condition, ranks, differences and groups, from the entries of its methods."""

EXPECTATIONS = {
    "nothing to correct": "Under `equal`, no method is more than 2 points above FedAvg. Decides: 2 points.",
    "knowledge pays": (
        "Under `coupled` on standard/fashion, fedavg_known is at least 2 points above FedAvg. Decides: 2 points."
    ),
    "memory pays with absences": (
        "The gain of mifa and fedvarp over FedAvg (mean of the two) is larger under `absences` than under `coupled`. "
        "Decides: the sign, 0 points."
    ),
    "no method for all": "No method is in the best group under all patterns. Decides: the groups.",
}
"""Written before the runs. The first three hold or fail where the 95 % interval of the difference leaves out the size
that decides; otherwise they are undecided."""
