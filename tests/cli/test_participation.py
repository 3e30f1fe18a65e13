"""`rollcall participation`: a roll call by itself."""

import json

import numpy as np
import pytest
import yaml
from command import rollcall

from rollcall.cli.participation import model_of
from rollcall.participation import Population, Trace, fits
from rollcall.participation.summary import summarise


def test_a_summary_of_rounds_counted_by_hand():
    mask = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 0], [1, 1, 0]] * 5, dtype=bool)
    summary = summarise(Trace(Population(3), mask=mask, stationary=np.array([0.5, 0.75, 0.0])), mask)
    assert (summary.clients, summary.rounds) == (3, 20)
    assert summary.empty == 0.25
    assert summary.active == (1.25, 0, 2)
    assert summary.availability == (0.0, 0.5, 0.75)
    assert summary.stationary == 0
    assert summary.together == pytest.approx((0.5 - 0.5 * 0.75) / np.sqrt(0.5 * 0.5 * 0.75 * 0.25))
    # Client 0 is on for two rounds, then off for two; client 1 misses one round in four.
    assert summary.interval == (1.0, 3.0)
    # c = (1/4 + ... ): client 0 has 2 rounds of 1/2 in 4, client 1 those and one of its own; client 2 is never heard.
    weights = np.array([1 / 3, 2 / 3, 0])
    assert summary.weights["l1"] == pytest.approx(np.abs(weights - 1 / 3).sum())
    assert summary.weights["total_variation"] == pytest.approx(np.abs(weights - 1 / 3).sum() / 2)
    assert summary.weights["chi_square"] == np.inf


def test_what_clients_without_a_change_and_seldom_ones_count_for():
    """Client 0 is always there, so that its correlation cannot be measured; client 2 is there once in 1,500 rounds."""
    mask = np.zeros((1500, 4), dtype=bool)
    mask[:, 0], mask[::2, 1], mask[7, 2] = True, True, True
    summary = summarise(Trace(Population(4), mask=mask, correlation=np.array([0.0, -0.9, 0.3, 0.8])), mask)
    assert summary.never == 1
    assert summary.memory[1] == pytest.approx((-0.9 + 0.3) / 2)


def test_a_recorded_roll_call_replays(tmp_path, capsys):
    def spec(**participation):
        path = tmp_path / f"{participation['name']}.yaml"
        path.write_text(yaml.safe_dump({"clients": 5, "seed": 3, "participation": participation}))
        return str(path)

    model, file = spec(name="markov", probability=0.3), tmp_path / "new" / "trace.csv"
    code, _, err = rollcall(capsys, "participation", model, "--rounds", "40", "--record", str(file))
    assert (code, err) == (0, f"40 rounds: {file}\n")
    (original, _), (replay, _) = model_of(model), model_of(spec(name="trace", mask=str(file)))
    assert all(np.array_equal(original.active(t), replay.active(t)) for t in range(40))


def test_a_recording_alone(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(fits, "COMPARED", 500)
    file = tmp_path / "calls.csv"
    # Rounds of 600 s: device 0 in 0 and 1, device 2 in 1 and 3; there is no device 1.
    file.write_text("client,start,end\n0,0,700\n2,500,1100\n0,100,200\n2,1800,1900\n")
    code, out, _ = rollcall(capsys, "participation", str(file))
    out = " ".join(out.split())
    assert code == 0
    for told in (
        "rounds of 600 s and 2 clients, the devices that occur",
        "1 of 4 intervals cover no start of a round of 600 s: lost",
        "1 intervals overlap an earlier one of their device: merged",
        "2 clients, 4 rounds",
        "active │ 1, 0, 2 │ mean, smallest",
        "never │ 0 │ number of clients",
        "keeps the feature within a quarter",
    ):
        assert told in out
    summary = json.loads(rollcall(capsys, "participation", str(file), "--json")[1])
    assert len(summary["notes"]) == 3
    assert list(summary["fits"])[:3] == ["trace", "uniform", "bernoulli"]
    code, _, err = rollcall(capsys, "participation", str(tmp_path / "none.csv"))
    assert (code, "With a name: phones" in " ".join(err.split())) == (2, True)


def test_the_facts_of_the_phones(phones, capsys):
    summary = json.loads(rollcall(capsys, "participation", "phones", "--json")[1])
    assert (summary["clients"], summary["rounds"], summary["never"]) == (300, 894, 4)
    assert summary["active"] == [pytest.approx(47.2, abs=0.05), 0, 78]
    assert summary["availability"][1] == pytest.approx(0.124, abs=5e-4)
    assert summary["memory"][0] == pytest.approx(0.888, abs=5e-4)
    fits = summary["fits"]
    assert fits["trace"]["day"] == pytest.approx(0.52, abs=0.005)
    assert fits["trace"]["week"] is None  # 6.2 days
    for name, features in fits.items():
        assert (features["lag 1"] == pytest.approx(0.888, abs=0.01)) == (name in ("trace", "markov_pi_lambda"))
        assert (features["shares"] > 0.98) == (name != "uniform")
    assert fits["copula"]["pairs"] == pytest.approx(fits["trace"]["pairs"], abs=0.002)
