"""Recordings in every format, with rows as they come in real life."""

import numpy as np
import pytest

from rollcall.participation import MODELS, Population, Trace
from rollcall.participation.probabilities import coupling, halves, mixture, power_law, two_level
from rollcall.participation.recording import load, record, write


@pytest.mark.parametrize("ending", ["npy", "npz", "csv", "parquet"])
def test_what_is_written_is_replayed(tmp_path, ending):
    model = MODELS["markov"](Population(5, 3), probability=np.array([0.1, 0.2, 0.1, 0.3, 0.0]))
    mask = record(model, 60)
    mask[-2:] = False  # empty rounds at the end must not get lost
    write(mask, tmp_path / f"calls.{ending}")
    assert np.array_equal(
        record(Trace(Population(5), mask=str(tmp_path / f"calls.{ending}")), 120), np.tile(mask, (2, 1))
    )


def test_intervals_in_seconds(tmp_path):
    file = tmp_path / "calls.csv"
    # Round t starts at 0.1 t. Client 1: [0.05, 0.2) and, overlapping it and written later, [0, 0.15): rounds 0 and 1.
    file.write_text("client,start,end\n1,0.05,0.2\n0,1.1,1.15\n1,0,0.15\n2,-3,0.05\n2,0.31,0.39\n0,0.3,0.3\n")
    mask = record(Trace(Population(3), mask=str(file), round_length=0.1), 12)
    on = {(int(t), int(i)) for t, i in np.argwhere(mask)}
    assert on == {(0, 1), (1, 1), (11, 0), (0, 2)}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("round,client\n0,1\n1,x\n", "client 'x' .line 3 "),
        ("round,client\n0,1\n\n2,1\n", "round '' .line 3 "),
        ("round,client\n0,1\n-1,1\n", "round '-1' .line 3 "),
        ("round,client\n0,1.5\n", "client '1.5' .line 2 "),
        ("round,client\n0,0\n0,3\n", "client 3 .line 3 "),
        ("client,start,end\n0,1,2\n0,5,4\n", "end 4 .line 3 .*must not be before its start, 5"),
        ("client,start,end\n0,1,inf\n", "end 'inf' .line 2 "),
        ("client,start,end\n0,1,2\n", "round_length: None"),
        ("who,when\n0,1\n", "columns who,when"),
        ("round,client\n", "without any round"),
    ],
)
def test_bad_rows_are_named_by_their_line(tmp_path, text, complaint):
    (tmp_path / "calls.csv").write_text(text)
    with pytest.raises(ValueError, match=complaint):
        Trace(Population(3), mask=str(tmp_path / "calls.csv"))


def test_sources():
    five = Population(5, 1)
    assert power_law(five, s=1.5, largest=0.8)[[0, 3]] == pytest.approx([0.8, 0.1])
    assert two_level(five).tolist() == halves(five, p0=0.9, p1=0.5 - 0.4).tolist()
    assert (two_level(five) > 0.5).tolist() == [True, True, True, False, False]
    p = mixture(Population(10_000, 2))
    assert p.min() > 0.1
    assert p[:9000].max() < 0.3 < p[9000:].max() < 0.9
    assert p[:9000].mean() == pytest.approx(0.2, abs=0.004)
    assert p[9000:].mean() == pytest.approx(0.5, abs=0.03)
    # A tenth of 36 clients are 4, not 3. Of 30 draws from U(0.1, 0.9), one is above 0.3 but for a chance of 1e-18.
    largest = np.max([mixture(Population(36, seed)) for seed in range(30)], axis=0)
    assert (largest > 0.3).tolist() == [False] * 32 + [True] * 4


@pytest.mark.parametrize("mean", [0.1, 0.5, 0.9])
def test_coupling_keeps_the_mean(mean):
    nu = np.random.default_rng(0).dirichlet(np.full(4, 0.5), size=30)
    population = Population(30, 1, classes=nu, histogram=np.ones((30, 4), dtype=int))
    none, half, full = (coupling(population, strength=k, mean=mean, sigma0=1.0) for k in (0.0, 0.5, 1.0))
    assert none == pytest.approx(np.full(30, mean))
    assert half == pytest.approx((none + full) / 2)
    assert full.mean() == pytest.approx(mean, abs=1e-12)
    assert full.min() == pytest.approx(0.02) or full.max() == pytest.approx(1)
    # p is an affine function of the class distributions and of nothing else.
    residual = full - nu @ np.linalg.lstsq(nu, full, rcond=None)[0]
    assert np.abs(residual).max() < 1e-12


@pytest.mark.parametrize("ending", ["npy", "npz"])
def test_a_file_that_is_no_array(tmp_path, ending):
    file = tmp_path / f"mask.{ending}"
    file.write_text("hello")
    with pytest.raises(ValueError, match=f"^'{file}' is not allowed; must be a .{ending} file of numbers$"):
        load(file)
