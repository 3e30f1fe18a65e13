"""Numbers with their nouns."""

from benchmark.config.counted import counted


def test_singular_and_plural():
    numbers = [counted(number, "finished trial") for number in (0, 1, 2, 10_000)]
    assert numbers == ["0 finished trials", "1 finished trial", "2 finished trials", "10,000 finished trials"]
