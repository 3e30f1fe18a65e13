"""`rollcall check FILE.json.xz`: a kept file passes; each alteration of it is answered in one line."""

import json
import lzma
import math

import pandas as pd
import pytest
from command import TINY, rollcall

from rollcall import Trial
from rollcall.leaderboard.kept import compared, problems, verdict_on
from rollcall.leaderboard.paper.experiment import PaperExperiment
from rollcall.leaderboard.runs import PACKAGE, SETTINGS, TABLE
from tests.support.results import diverging, run_of

TRIAL, OTHER = "1fc64f36ae", "577c74a8e1"  # MIFA, 1,800 rounds, seed 0; and FedAvg


@pytest.fixture
def kept(tmp_path):
    """Two trials of the kept results of Table I."""
    folder, kept = tmp_path / "fedpbc", (TRIAL, OTHER)
    folder.mkdir()
    file = folder / f"table1{SETTINGS}"
    data = json.loads(text_of(PACKAGE / "fedpbc" / file.name))
    data["trials"] = {digest: data["trials"][digest] for digest in kept}
    write(file, json.dumps(data, indent=1))
    lines = text_of(table_of(PACKAGE / "fedpbc" / file.name)).splitlines(keepends=True)
    write(table_of(file), "".join([lines[0], *(line for line in lines if line.startswith(kept))]))
    return file


def text_of(file):
    return lzma.decompress(file.read_bytes()).decode()


def write(file, text):
    file.write_bytes(lzma.compress(text.encode()))


def table_of(file):
    return file.with_name(file.name.replace(SETTINGS, TABLE))


def change(file, part, name, value, trial=TRIAL):
    data = json.loads(text_of(file))
    own = data["trials"][trial][part] if trial else data["common"][part]
    own[name] = value
    if value is None:
        del own[name]
    write(file, json.dumps(data))


def edit(old, new, of=lambda file: file):
    return lambda file: write(of(file), text_of(of(file)).replace(old, new, 1))


ALTERATIONS = {
    "commit": (lambda file: change(file, "tags", "commit", "none"), "the tag commit is none; must be that of the run"),
    "version": (lambda file: change(file, "tags", "version", None, ""), f"2 trials ({TRIAL}): the tag version is missing"),
    "setting": (lambda file: change(file, "settings", "local.lr", "0.06"), "local.lr is 0.06; 0.05 gives this digest"),
    "seed": (lambda file: change(file, "settings", "seed", "1"), "the seed is not that of the digest, 0"),
    "rounds": (lambda file: change(file, "settings", "rounds", "20000"), "20000 rounds; the experiment plans 10000"),
    "digest": (edit(f'"{TRIAL}": {{', '"0123456789": {'), "the experiment has no trial of this digest"),
    "row": (edit(f"{TRIAL},150,", f"{TRIAL},0,", table_of), "the CSV file must have the rounds"),
    "text": (edit(f"{TRIAL},150,0.3702", f"{TRIAL},150,much", table_of), "cannot be read (ValueError"),
    "orphan": (edit(f"{TRIAL},150,", "0123456789,150,", table_of), "1 trial (0123456789): is in the CSV file alone"),
    "json": (edit("{", ""), "cannot be read (JSONDecodeError"),
    "compression": (lambda file: file.write_bytes(b"{}"), "cannot be read (LZMAError"),
    "empty": (lambda file: table_of(file).write_bytes(b""), "cannot be read (EOFError"),
    "no rounds": (lambda file: change(file, "settings", "rounds", None), "rounds is missing"),
    "rounds without a number": (lambda file: change(file, "settings", "rounds", "much"), "cannot be read with table1.json.xz"),
    "very many rounds": (lambda file: change(file, "settings", "rounds", "1000000000000"), "1000000000000 rounds; the"),
    "no identity": (lambda file: change(file, "tags", "rollcall.trial", None), "cannot be read with table1.json.xz"),
    "a list": (lambda file: write(file, "[]"), "cannot be read (TypeError"),
    "no header": (edit("trial,round", "a,b", table_of), "cannot be read (KeyError"),
}  # fmt: skip


def test_kept_results_pass_and_each_alteration_is_answered(kept, monkeypatch):
    released = PaperExperiment.read("fedpbc/table2").as_("as_released")  # which shares its runs: 63 of 2,079 places
    monkeypatch.setattr("rollcall.leaderboard.kept.papers", lambda: [released])
    assert problems(kept) == []
    copies = {file: file.read_bytes() for file in (kept, table_of(kept))}
    for name, (alter, answer) in ALTERATIONS.items():
        alter(kept)
        lines = problems(kept)
        assert any(answer in line for line in lines), (name, lines)
        assert all("\n" not in line for line in lines), name
        for file, content in copies.items():
            file.write_bytes(content)


def test_the_command_ends_with_code_1(kept, capsys, monkeypatch):
    assert rollcall(capsys, "check", str(kept)) == (0, f"{kept}: passes\n", "")
    monkeypatch.setattr("rollcall.leaderboard.kept.papers", list)  # none, for speed: its own experiment is read
    change(kept, "tags", "commit", "none")
    line = f"{kept}: 1 trial ({TRIAL}): the tag commit is none; must be that of the run\n"
    assert rollcall(capsys, "check", str(kept)) == (1, line, "")


@pytest.mark.parametrize(
    ("new", "verdict"),
    [
        (0.123456789, "equal at the stored digits (2 numbers)"),
        (0.1234, "equal within tolerance (engine changed)"),
        (0.2, "differs: test/accuracy after round 2 is 0.2; kept: 0.123457"),
        (math.nan, "differs: test/accuracy after round 2 is nan; kept: 0.123457"),
    ],
)
def test_a_rerun_beside_kept_numbers(new, verdict):
    kept = pd.DataFrame({"test/accuracy": [0.1, 0.123457]}, index=[1, 2])
    now = pd.DataFrame({"test/accuracy": [0.1, new, 0.3], "train/loss": [1.0, 1.0, 1.0]}, index=[1, 2, 3])
    assert compared(kept, now) == verdict


@pytest.mark.parametrize("diverged", [False, True])
def test_a_rerun_that_ends_in_another_way_differs(diverged):
    """At the rate 30 the distance grows to infinity."""
    trial = Trial.read(TINY["trial"] | {"algorithm": "fedavg", "rounds": 900, "local": {"lr": 0.1 if diverged else 30}})
    index = pd.Index([900], name="round")
    kept = run_of("fedavg", 0, pd.DataFrame({"train/distance": [1.0]}, index=index))
    verdict = verdict_on(diverging(kept) if diverged else kept, trial)
    assert verdict == f"differs: {'the kept run diverged, this one did not' if diverged else 'it diverges now'}"


def test_a_rerun_that_measures_nothing_of_the_kept_differs():
    kept, now = (pd.DataFrame({name: [1.0]}, index=[10]) for name in ("old/metric", "train/loss"))
    assert compared(kept, now) == "differs: none of its metrics is measured now"


@pytest.mark.parametrize(
    ("name", "old", "new", "is_near"),
    [
        ("test/accuracy/server", 0.001, 0.0059, True),
        ("test/accuracy/server", 0.9, 0.9051, False),
        ("train/relative_error", 1e-9, 1e-3, False),
        ("train/relative_error", 1e-9, 9e-7, True),  # beside 1 it may be the rounding of another engine
        ("train/loss", 0.01, 0.01004, True),
        ("train/loss", 0.01, 0.0101, False),
        ("train/loss", 200.0, 200.9, True),
        ("train/loss", 200.0, 201.1, False),
        ("train/loss", math.inf, 5.0, False),
    ],
)
def test_the_tolerance_is_absolute_for_accuracies_and_relative_elsewhere(name, old, new, is_near):
    kept, now = (pd.DataFrame({name: [1.0, value]}, index=[0, 10]) for value in (old, new))
    verdict = compared(kept, now)
    assert verdict.startswith("equal within tolerance" if is_near else f"differs: {name} after round 10")


def test_what_rounding_left_of_0_is_equal():
    residual, other = (pd.DataFrame({"excess": [value]}, index=[0]) for value in (0.0, 3e-16))
    assert compared(residual, other) == "equal within tolerance (engine changed)"
