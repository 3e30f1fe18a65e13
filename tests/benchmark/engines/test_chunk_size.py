"""Round numbers and numbers of clients that fit in memory, against lists written out."""

from engine_rigs import STEPS, rigs

from rollcall.benchmark.engines.vectorised import next_round_number


def test_round_numbers():
    found = [next_round_number(n, 100) for n in range(1, 101)]
    numbers = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 100]
    assert found == [next(number for number in numbers if number >= n) for n in range(1, 101)]


def test_as_many_at_once_as_fit_and_need_no_padding():
    _, work, _ = rigs()
    engine = work.engine
    each = engine.chunk_size.bytes_per_client + 16 * (
        engine.chunk_size.bytes_per_sample + STEPS * engine.chunk_size.bytes_per_step_sample
    )
    numbers = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96]
    for fitting in range(1, 101):
        engine.chunk_size.memory = fitting * each
        assert engine.chunk_size.clients(16, STEPS) == max(number for number in numbers if number <= fitting)
