"""The smallest board, end to end: three methods, two patterns, two searches."""

import gzip
import json
import math
import os
import shlex
import signal
from unittest.mock import ANY

import numpy as np
import pytest
from command import rollcall
from filelock import FileLock

from rollcall.benchmark.config.digest import digest
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.config.text import dumped
from rollcall.benchmark.federation.run_folder import Damaged
from rollcall.benchmark.federation.simulation import simulate
from rollcall.benchmark.process import Interrupted
from rollcall.benchmark.search.board import Board, best, boards
from rollcall.benchmark.search.entry import Entry, EntryPlan, Method, Rerun, _content, enter, problems, rerun
from rollcall.benchmark.sweep import lockstep
from rollcall.benchmark.sweep.run import Execution, run_jobs
from rollcall.leaderboard.figures import board_chart
from rollcall.leaderboard.standing import Standing, caption, interval, standing

FILE = {
    "name": "small",
    "title": "The smallest board",
    "trial": {
        "task": {"name": "digits", "clients": 4, "model": "linear", "partition": {"name": "dirichlet", "alpha": 0.1}},
        "local": {"steps": 1, "batch_size": 16},
        "rounds": 8,
        "evaluation": {"every": 2, "splits": ["test"]},
    },
    "grid": {
        "seed": [0, 1, 2, 3],
        "pattern": {
            "equal": {"participation": {"name": "bernoulli", "probability": 0.5}},
            "cyclic": {"participation": {"name": "cyclic", "probability": 0.5, "length": 4}},
        },
        "algorithm": ["fedavg", "fedau", "ca_fed"],
    },
    "search": {
        "space": {"local.lr": "loguniform(0.01,3)", "server.lr": "loguniform(0.3,3)"},
        "samples": 2,
        "seeds": [1000, 1001],
        "finals": 2,
    },
    "report": {"metrics": {"test/accuracy": "max"}, "last_rounds": 4},
}

OWN = """
from dataclasses import dataclass
from rollcall.algorithms import Memoryless

@dataclass(frozen=True)
class Half(Memoryless):
    factor: float = 0.5
    search_space = "factor=uniform(0.1,1)"

    def round(self, state, x, call, work):
        A = call.active
        return (None if len(A) == 0 else self.factor * (work.sgd(A, x.expand(len(A), -1)).mean(dim=0) - x)), state
"""


@pytest.fixture(scope="module")
def entered(tmp_path_factory):
    """A board file, its store, and the entries of its methods and of one of the user's own."""
    folder = tmp_path_factory.mktemp("board")
    (folder / "small.yaml").write_text(dumped(FILE))
    (folder / "own.py").write_text(OWN)
    board = Board.read(str(folder / "small.yaml"))
    own = f"{folder / 'own.py'}:Half"
    methods = [Method(name, spec, board.space(name, spec)) for name, spec in board.methods.items()]
    methods.append(Method("Half", own, board.space("Half", own)))
    execution = Execution(folder / "runs", "inline", mlflow=False)
    entries = enter(board, methods, execution)
    for entry in entries:
        entry.write(folder / "runs" / "small")
    return board, folder, {entry.method: entry for entry in entries}


def test_an_entry_follows_the_rule(entered):
    board, _, entries = entered
    assert list(entries) == ["fedavg", "fedau", "ca_fed", "Half"]
    assert entries["ca_fed"].cells.keys() == {"equal"}
    assert "does not provide correlation" in entries["ca_fed"].impossible["cyclic"]
    rates = {}
    for name, entry in entries.items():
        assert problems(entry, board) == []
        for pattern, cells in entry.cells.items():
            assert [one.seed for one in cells] == [1000, 1001]
            assert [[run.seed for run in one.finals] for one in cells] == [[0, 1], [2, 3]]
            assert all(len(one.samples) == 2 for one in cells)
            rates[name, pattern] = [
                [(sample.settings["local.lr"], sample.settings["server.lr"]) for sample in one.samples] for one in cells
            ]
    assert len({str(drawn) for drawn in rates.values()}) == 1  # the same draws of shared settings for all
    assert {*entries["fedau"].cells["equal"][0].samples[0].settings} == {"local.lr", "server.lr", "algorithm.cutoff"}
    assert entries["Half"].space["algorithm.factor"] == "uniform(0.1,1)"


def test_scores_and_values_are_those_of_single_runs(entered):
    board, _, entries = entered
    searched = entries["fedau"].cells["cyclic"][1]
    spec = board.conditions("fedau")["cyclic"]
    for sample in searched.samples:
        history = simulate(board.sample(spec, sample.settings, 1)).history
        assert "test/accuracy" not in history  # a search reads no test data
        assert sample.score == pytest.approx(history["validation/accuracy"][history["round"].isin([6, 8])].mean())
    assert searched.best == int(np.argmax([sample.score for sample in searched.samples]))
    chosen = searched.samples[searched.best].settings
    for run in searched.finals:
        history = simulate(board.final(spec, chosen, run.seed)).history
        assert run.value == pytest.approx(history["test/accuracy"][history["round"].isin([6, 8])].mean())
        assert run.costs["gradients"] == history["cost/gradients"].iloc[-1]
        assert [t for t, _ in run.curve] == [0, 2, 4, 6, 8]


def test_the_standing_is_the_arithmetic_of_the_entries(entered):
    board, folder, entries = entered
    shown = standing(board, folder / "runs")
    assert {*shown.entries} == {*entries}
    views = board_chart(shown).to_dict()["concat"]
    assert [view["title"] for view in views] == board.patterns
    hand = {
        (name, pattern): [100 * (one.finals[0].value + one.finals[1].value) / 2 for one in cells]
        for name, entry in entries.items()
        for pattern, cells in entry.cells.items()
    }
    for (name, pattern), (a, b) in hand.items():
        mean, half = interval(shown.values[pattern][name])
        assert mean == pytest.approx((a + b) / 2)
        assert half == pytest.approx(
            12.7062 * abs(a - b) / 2, rel=1e-4
        )  # t of one degree of freedom; s = |a - b| / sqrt 2
    for search in (0, 1):
        for name in entries:
            ranks = []
            for pattern in entries[name].cells:
                mine = hand[name, pattern][search]
                others = [
                    hand[other, pattern][search] for other in entries if other != name and (other, pattern) in hand
                ]
                ranks.append(1 + sum(one > mine for one in others) + sum(one == mine for one in others) / 2)
            assert shown.ranks[name][search] == pytest.approx(np.mean(ranks))


def edited(entry, change):
    """A copy of an entry with a change of its plain data."""
    data = json.loads(entry.model_dump_json())
    change(data)
    return Entry.model_validate(data)


def _first(data):
    return data["cells"]["equal"][0]


def longer(run):
    """Results of a run that went on: the window is that of its own last rounds."""
    run["curve"] += [[10, 0.99], [12, 0.99]]
    window = [value for t, value in run["curve"] if t > 4]
    run["value"] = sum(window) / len(window)


def shorter(run):
    """Results without the evaluations of the window that lower its mean."""
    best = max(run["curve"][-2:], key=lambda row: row[1])
    run["curve"] = [*run["curve"][:-2], best]
    run["value"] = best[1]


def without(data, path):
    """The entry of a search that leaves out a setting: its runs have other digests."""
    del data["space"][path]
    entry, board = Entry.model_validate(data), BOARD
    for pattern, spec in board.conditions("fedau").items():
        for number, one in enumerate(data["cells"][pattern]):
            points = board.draws(entry.space, number)
            for sample, point in zip(one["samples"], points, strict=True):
                sample.update(settings=point, run=digest(board.sample(spec, point, number)))
            for run in one["finals"]:
                run["run"] = digest(board.final(spec, points[one["best"]], run["seed"]))


BOARD = Board(Experiment.model_validate(FILE), Experiment.model_validate(FILE).search)

TAMPERED = {
    "other seeds": (lambda data: _first(data).update(seed=1005), "equal, search 0: seed: 1005 is not what the rule gives, 1000"),
    "fewer rounds": (lambda data: _first(data)["finals"][0].update(rounds=6), "equal, search 0: final run 0: (0, 6, "),
    "a number": (lambda data: _first(data)["finals"][0].update(value=0.99), "equal, search 0: seed 0: 0.99 is not the mean of the last 4 rounds of its curve"),
    "another partition": (lambda data: _first(data)["finals"][0].update(run="0123456789"), "equal, search 0: final run 0: (0, 8, '0123456789') is not what the rule gives, (0, 8, "),
    "more samples": (lambda data: _first(data)["samples"].append(_first(data)["samples"][0]), "equal, search 0: sample 2: "),
    "another draw": (lambda data: _first(data)["samples"][0]["settings"].update({"local.lr": 0.1}), "equal, search 0: sample 0: "),
    "not the best": (lambda data: _first(data).update(best=1 - _first(data)["best"]), "equal, search 0: best: "),
    "other final seeds": (lambda data: _first(data)["finals"].reverse(), "equal, search 0: final run 0: (1, 8, "),
    "a pattern": (lambda data: data["cells"].pop("cyclic"), "cyclic: is missing; every possible pattern must be there"),
    "a larger space": (lambda data: data["space"].update({"local.lr": "loguniform(0.001,30)"}), "space: local.lr is not that of the board, loguniform(0.01,3)"),
    "a smaller space": (lambda data: without(data, "server.lr"), "space: server.lr is missing; must be that of the board"),
    "a method as an option": (lambda data: data["space"].update({"algorithm.name": "choice(fedavg,mifa)"}), "space: algorithm.cutoff, algorithm.name is not allowed; at most one option"),
    "a name of the board": (lambda data: data.update(method="fedavg"), "method: fedavg is a method of the board, with other settings"),
    "code that is not there": (lambda data: data.update(algorithm="/evil.py:Evil"), "algorithm: the code of /evil.py:Evil is not in the entry"),
    "more rounds of a curve": (lambda data: longer(_first(data)["finals"][0]), "equal, search 0: seed 0: its curve has other rounds"),
    "fewer evaluations": (lambda data: shorter(_first(data)["finals"][0]), "equal, search 0: seed 0: its curve has other rounds"),
    "another rule": (lambda data: data.update(rule="0123456789"), "rule: 0123456789 is not that of small"),
}  # fmt: skip


@pytest.mark.parametrize("what", TAMPERED)
def test_an_entry_that_was_tampered_with_is_refused(entered, what):
    board, _, entries = entered
    change, line = TAMPERED[what]
    found = problems(edited(entries["fedau"], change), board)
    assert found
    assert found[0].startswith(line)


def _no_cyclic(data):
    del data["cells"]["cyclic"]
    data["impossible"]["cyclic"] = ""


def test_marks_and_impossible_patterns_are_those_of_the_method(entered):
    """Whatever an entry declares, ca_fed must know pi and lambda, and the others can have both patterns."""
    board, _, entries = entered
    line = "cyclic: is declared impossible, but the method can have it; every possible pattern must be there"
    assert problems(edited(entries["fedau"], _no_cyclic), board) == [line]
    elsewhere = edited(entries["fedau"], lambda data: data["impossible"].update(night="no"))
    assert [found.partition(":")[0] for found in problems(elsewhere, board)] == ["night"]
    assert entries["ca_fed"].marks.knows == ["stationary", "correlation"]
    forged = {"knows": [], "stores": "server", "up": 7, "absent": True}
    lines = problems(edited(entries["ca_fed"], lambda data: data["marks"].update(forged)), board)
    assert lines == [
        "marks: knows: [] is not what the method has, ['stationary', 'correlation']",
        "marks: stores: 'server' is not what the method has, ''",
        "marks: up: 7 is not what the method has, 1",
        "marks: absent: True is not what the method has, False",
    ]
    own = edited(entries["Half"], _no_cyclic)  # whose code is not run without trust
    assert problems(own, board) == []
    assert problems(own, board, trust=True) == [line]
    assert problems(entries["Half"], board, trust=True) == []


def test_what_only_a_rerun_sees(entered):
    board, _, entries = entered

    def better(data):
        for one in data["cells"]["equal"]:
            for run in one["finals"]:
                run["value"] = 0.99
                run["curve"] = [[t, 0.99] for t, _ in run["curve"]]

    forged = edited(entries["fedau"], better)
    assert problems(forged, board) == []
    runs = list(rerun(forged, board, every=True))
    assert len(runs) == 16
    assert {one.where for one in runs if not one.equal} == {
        f"equal, search {s}, seed {2 * s + i}" for s in (0, 1) for i in (0, 1)
    }
    honest = list(rerun(entries["Half"], board, every=False, seed=0))  # its own code comes from the entry
    assert len(honest) == 2
    assert all(one.equal for one in honest)


def test_a_sample_that_was_not_chosen_may_differ_where_it_could_not_be_chosen():
    """Training at a large rate amplifies rounding."""
    cases = [(0.243, 0.254, True), (0.243, 0.81, False), (0.792, 0.796, True), (None, 0.3, True), (None, 0.81, False)]
    cases += [(0.799, 0.78, False)]
    assert [Rerun("", one, other, chosen=0.8).equal for one, other, _ in cases] == [equal for *_, equal in cases]
    of_chosen = [(0.8, 0.804, True), (0.8, 0.79, False), (None, 0.3, False), (None, None, True)]
    assert [Rerun("", one, other).equal for one, other, _ in of_chosen] == [equal for *_, equal in of_chosen]


def test_a_file_that_was_changed_is_refused(entered, tmp_path):
    _, _, entries = entered
    file = entries["Half"].write(tmp_path)
    assert Entry.read(file) == entries["Half"]
    data = json.loads(gzip.decompress(file.read_bytes()))
    data["cells"]["equal"][0]["finals"][0]["value"] = 0.99
    file.write_bytes(gzip.compress(json.dumps(data).encode()))
    with pytest.raises(SettingError, match=r"Half\.entry: was changed after rollcall enter wrote it"):
        Entry.read(file)
    whole = entries["Half"].write(tmp_path).read_bytes()
    for content in (b"{}", whole[:300] + bytes([whole[300] ^ 1]) + whole[301:], gzip.compress(b"[" * 100_000)):
        file.write_bytes(content)
        with pytest.raises(SettingError, match=r"Half\.entry: cannot be read"):
            Entry.read(file)


def test_an_entry_has_the_name_of_its_method(entered, tmp_path):
    """Else the numbers of one method would stand in the row of another."""
    board, _, entries = entered
    (tmp_path / board.name).mkdir(parents=True)
    entries["fedau"].write(tmp_path / board.name).rename(tmp_path / board.name / "mifa.entry")
    with pytest.raises(
        SettingError, match=r"mifa\.entry: is not allowed as the name of this entry; must be fedau\.entry"
    ):
        standing(board, tmp_path, kept=False)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda data: _first(data)["finals"][0].update(value=math.nan), "finite number"),
        (lambda data: _first(data)["finals"][0].update(costs={}), "without gradients, floats_up"),
        (lambda data: _first(data).update(best=99), "best: 99 is not the number of a sample"),
        (lambda data: data.update(source={"../evil.py": ""}), "'../evil.py' is not the name of a file"),
        (lambda data: data.update(source={"a\0.py": ""}), "is not the name of a file"),
        (lambda data: data.update(source={"a.py": "\ud800"}), "surrogates not allowed"),
    ],
)
def test_an_entry_that_no_board_could_show_is_refused(entered, change, told, tmp_path):
    """Its digest is right."""
    file = entries_file(entered[2]["fedau"], tmp_path, change)
    with pytest.raises(SettingError, match=told):
        Entry.read(file)


def test_an_entry_with_fewer_searches_is_refused(entered, tmp_path):
    board, _, entries = entered
    entries_file(entries["fedau"], tmp_path / board.name, lambda data: data["cells"]["equal"].pop())
    with pytest.raises(SettingError, match=r"fedau\.entry: has another number of searches than small"):
        standing(board, tmp_path, kept=False)


def entries_file(entry, folder, change):
    """The file of an entry that was changed, with the digest of what it has now."""
    data = json.loads(json.dumps(entry.model_dump(mode="json")))
    change(data)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{entry.method}.entry"
    file.write_bytes(gzip.compress(json.dumps(data | {"content": _content(data)}).encode()))
    return file


def test_the_command_line_takes_an_own_board(entered, capsys):
    """What `enter` says can be given as it stands: finished runs are told again, checked and shown."""
    _, folder, _ = entered
    file = str(folder / "small.yaml")
    code, out, _ = rollcall(
        capsys, "enter", "fedavg", "--board", file, "--store", str(folder / "runs"), "--executor", "inline"
    )
    assert code == 0
    verify, show = (line.partition(": rollcall ")[2] for line in out.splitlines() if ": rollcall " in line)
    assert rollcall(capsys, *shlex.split(verify))[:2] == (0, ANY)
    assert verify.endswith(f"--board {file}")
    code, out, _ = rollcall(capsys, *shlex.split(show))
    assert (code, "FedAvg" in out or "fedavg" in out) == (0, True)
    code, out, _ = rollcall(capsys, *shlex.split(verify.partition(" --board")[0]))
    assert code == 1
    assert "board: 'small' is not allowed" in out


def test_another_panel_or_override_is_another_rule(tmp_path):
    def rule(**changes):
        (tmp_path / "mine.yaml").write_text(dumped(FILE | changes))
        return Board.read(str(tmp_path / "mine.yaml")).rule

    def override(lr):
        return [{"when": {"algorithm": "fedavg"}, "set": {"local.lr": lr}}]

    panels = [{"": {"trial": {"local": {"steps": steps}}}} for steps in (3, 4)]
    changes = [{}, *({"panels": panel} for panel in panels), *({"overrides": override(lr)} for lr in (0.1, 0.2))]
    assert len({rule(**change) for change in changes}) == 5


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"report": {"metrics": {"test/loss": "min"}}}, "report.metrics"),
        ({"search": FILE["search"] | {"rounds": 2}}, "search.rounds"),
        ({"search": FILE["search"] | {"metric": "validation/loss"}}, "search.metric"),
        ({"search": FILE["search"] | {"scheduler": "asha"}}, "search.scheduler"),
        ({"search": FILE["search"] | {"space": {"fedavg": {"local.lr": "1,2"}}}}, "search.space.fedavg"),
    ],
)
def test_what_the_rule_of_all_boards_decides_cannot_be_set(changes, wrong, tmp_path):
    (tmp_path / "mine.yaml").write_text(dumped(FILE | changes))
    with pytest.raises(SettingError, match=f"{wrong}: is not allowed on a board"):
        Board.read(str(tmp_path / "mine.yaml"))


def test_a_method_that_is_listed_twice_has_settings_of_its_own(tmp_path):
    twice = FILE["grid"] | {"algorithm": ["fedau", {"name": "fedau", "cutoff": 5}]}
    (tmp_path / "mine.yaml").write_text(dumped(FILE | {"grid": twice}))
    board = Board.read(str(tmp_path / "mine.yaml"))
    cutoffs = [spec["algorithm"] for name in board.methods for spec in board.conditions(name).values()]
    assert cutoffs == [*["fedau"] * 2, *[{"name": "fedau", "cutoff": 5}] * 2]
    other = board.conditions("fedau", {"name": "fedau", "cutoff": 9})
    assert [spec["algorithm"]["cutoff"] for spec in other.values()] == [9, 9]


def test_a_caption_has_the_rounds_of_the_panel(tmp_path):
    trial = {key: value for key, value in FILE["trial"].items() if key != "rounds"}
    (tmp_path / "mine.yaml").write_text(dumped(FILE | {"trial": trial, "panels": {"": {"trial": {"rounds": 6}}}}))
    assert " of 6 rounds; " in caption(Standing(Board.read(str(tmp_path / "mine.yaml")), {}), "fedavg")


def test_two_methods_of_one_name_are_refused(entered, tmp_path, capsys, monkeypatch):
    """The entry of the second would take the place of the first."""
    monkeypatch.setattr("rollcall.cli.check._conform", lambda label, algorithm: None)
    _, folder, _ = entered
    (tmp_path / "other.py").write_text(OWN)
    methods = [f"{one / name}:Half" for one, name in ((folder, "own.py"), (tmp_path, "other.py"))]
    code, _, err = rollcall(capsys, "enter", *methods, "--board", str(folder / "small.yaml"))
    assert (code, err.startswith("error: method: Half is not allowed twice; ")) == (2, True)


def test_boards_of_the_suite():
    assert boards() == ["standard/digits", "standard/fashion"]
    digits, fashion = map(Board.read, boards())
    assert digits.patterns == fashion.patterns == ["equal", "coupled", "absences", "varying", "cyclic", "together"]
    assert list(digits.conditions("ca_fed")) == ["equal", "coupled", "absences", "varying", "together"]
    for name, spec in digits.conditions("fedavg").items():  # written once
        assert fashion.conditions("fedavg")[name]["participation"] == spec["participation"]
    assert [digits.finals(search) for search in range(5)] == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    spaces = {label: digits.space(label, digits.methods[label]) for label in ("fedau", "fedawe", "fedawe_clip")}
    assert spaces["fedau"] == digits.search.space | {"algorithm.cutoff": "randint(10,200)"}
    # FedAWE has no server rate; with the limit its own factor has the others' range.
    rate = {"local.lr": digits.search.space["local.lr"]}
    assert spaces["fedawe"] == rate | {"algorithm.eta_g": "loguniform(0.01,3)"}
    assert spaces["fedawe_clip"] == rate | {"algorithm.eta_g": digits.search.space["server.lr"]}
    with pytest.raises(
        SettingError, match="board: 'quickstart' is not allowed; must be one of standard/digits, standard/fashion"
    ):
        Board.read("quickstart")


@pytest.mark.parametrize(
    ("part", "change", "complaint"),
    [
        ("search", {"samples": "grid"}, "search.samples: grid is not allowed on a board; must be a number"),
        ("grid", {"algorithm": None}, "grid.algorithm: is missing; must have the methods of the board"),
        ("grid", {"seed": [0, 1, 2]}, "grid.seed: too few seeds, 3; must be at least 4, 2 for each search"),
        ("grid", {"seed": None}, "grid.seed: too few seeds, 0; must be at least 4, 2 for each search"),
        ("trial", {"rounds": None}, "trial.rounds: is missing; it must be given"),
    ],
)
def test_a_board_that_lacks_what_its_rule_needs_is_refused(part, change, complaint, tmp_path):
    content = {key: value for key, value in (FILE[part] | change).items() if value is not None}
    trial = FILE["trial"] | ({"algorithm": "fedavg"} if "algorithm" in change else {})
    (tmp_path / "mine.yaml").write_text(dumped(FILE | {"trial": trial, part: content}))
    with pytest.raises(SettingError) as refused:
        Board.read(str(tmp_path / "mine.yaml"))
    assert str(refused.value) == f"{tmp_path / 'mine.yaml'}: {complaint}"


def test_a_trial_that_another_process_runs_interrupts_the_searches(entered, tmp_path):
    """It does not fail them: the other trials run, and the same command goes on later."""
    board, _, _ = entered
    own = Method("fedavg", "fedavg", board.space("fedavg", "fedavg"))
    plan = EntryPlan(board, own, tmp_path / "runs")
    jobs = [job for made in plan.samples.values() for job in made]
    busy = jobs[0].folder
    busy.path.mkdir(parents=True)
    with FileLock(busy.path / "lock"), pytest.raises(Interrupted):
        enter(board, [own], Execution(tmp_path / "runs", "inline", mlflow=False))
    assert [job.finished for job in jobs] == [False] + [True] * (len(jobs) - 1)


def test_the_best_sample():
    assert best([0.2, None, 0.5, 0.5]) == 2
    assert best([None, None]) is None


def test_a_value_a_little_above_its_curve_is_seen(entered):
    board, _, entries = entered

    def change(data):
        _first(data)["finals"][0]["value"] += 0.0005

    (line,) = problems(edited(entries["fedau"], change), board)
    assert line.endswith("is not the mean of the last 4 rounds of its curve")


def small_entry(folder, **changes):
    """What `enter` runs for FedAvg with one pattern and one search, with its board and its execution."""
    grid = FILE["grid"] | {"pattern": {"equal": FILE["grid"]["pattern"]["equal"]}, "algorithm": ["fedavg"]}
    search = FILE["search"] | {"seeds": [1000]}
    content = FILE | {"grid": grid, "search": search, "trial": FILE["trial"] | changes}
    (folder / "small.yaml").write_text(dumped(content))
    board = Board.read(str(folder / "small.yaml"))
    own = Method("fedavg", "fedavg", board.space("fedavg", "fedavg"))
    execution = Execution(folder / "runs", "inline", mlflow=False)
    return board, own, EntryPlan(board, own, folder / "runs"), execution


def test_damaged_results_are_not_entered(tmp_path):
    board, own, plan, execution = small_entry(tmp_path)
    (honest,) = enter(board, [own], execution)
    file = next(job for jobs in plan.finals.values() for job in jobs).folder.metrics
    whole = file.read_text()
    for altered in (whole.replace("0.", "0.9", 1), whole[: whole.rindex("{")]):
        file.write_text(altered)
        with pytest.raises(Damaged, match=r"metrics\.jsonl is damaged"):
            enter(board, [own], execution)
    file.write_text(whole)
    settings = file.with_name("trial.yaml")
    settings.write_text(f"{settings.read_text()}# mine\n")
    assert enter(board, [own], execution) == [honest]
    assert "# mine" not in settings.read_text()


def test_final_runs_that_were_shorter_before_have_the_curve_of_one_run(tmp_path):
    """The last rounds of the shorter one are evaluated, too. Trials with momentum run alone and go on."""
    changes = {"local": FILE["trial"]["local"] | {"momentum": 0.5}, "evaluation": {"every": 4, "splits": ["test"]}}
    board, own, plan, execution = small_entry(tmp_path, **changes)
    run_jobs([job for jobs in plan.samples.values() for job in jobs], execution)
    for job in (job for jobs in plan.finals.values() for job in jobs):
        simulate(job.trial.model_copy(update={"rounds": 6}), folder=job.folder.path)
    (entry,) = enter(board, [own], execution)
    assert problems(entry, board) == []


def test_a_signal_at_the_end_of_the_samples_stops_before_the_final_runs(tmp_path, monkeypatch):
    board, own, plan, execution = small_entry(tmp_path)
    run_group = lockstep.run_group

    def signalled(part, requested):
        errors, _ = run_group(part, requested)
        os.kill(os.getpid(), signal.SIGINT)
        return errors, requested()

    monkeypatch.setattr(lockstep, "run_group", signalled)
    with pytest.raises(Interrupted):
        enter(board, [own], execution)
    assert not [job for jobs in plan.samples.values() for job in jobs if job.folder.state == "running"]
    assert len([*(tmp_path / "runs").rglob("status.json")]) <= sum(map(len, plan.samples.values()))
