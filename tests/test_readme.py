"""What the README shows is what happens."""

import json
import re

import pytest
from command import rollcall
from pages import ROOT, blocks

from rollcall.leaderboard.paper.claims import PAPERS
from rollcall.participation import MODELS, PROBABILITIES, VARIATIONS

README = (ROOT / "README.md").read_text()
PAGES = [*ROOT.glob("*.md"), *(ROOT / "leaderboard").glob("*.md"), *(ROOT / "docs").rglob("*.md")]
PAGES = [page for page in PAGES if not {"_build", "generated"} & {*page.parts}]


@pytest.mark.full
def test_a_method_of_ones_own(store, tmp_path, capsys):
    (block,) = blocks("README.md", "my_method.py")
    assert len(block.splitlines()) <= 25
    file = tmp_path / "my_method.py"
    file.write_text(block)

    def losses(*options):
        """The last test loss of each method, with the user's own in the grid."""
        arguments = ("--executor", "inline", "--seeds", "0", "--rounds", "20", "--set", "local.lr=0.1", "--json")
        code, out, _ = rollcall(capsys, "run", "quickstart", *arguments, *options)
        assert code == 0
        return {report["algorithm"]: report["metrics"]["test/loss"] for report in json.loads(out)}

    all_losses = losses("--algorithm", f"{file}:SquareRoot")
    assert set(all_losses) == {"fedavg", "fedavg_all", "fedavg_known", "fedpbc", "mifa", "SquareRoot"}
    # With power 0 it is fedavg_all, with power 1 fedavg_known.
    for power, twin in ((0, "fedavg_all"), (1, "fedavg_known")):
        own = f"{{name: {file}:SquareRoot, power: {power}}}"
        (loss,) = losses("--algorithm", own, "--only", "algorithm=SquareRoot").values()
        assert abs(loss - all_losses[twin]) < 1e-4


@pytest.mark.full
def test_the_python_example():
    (block,) = blocks("README.md", "simulate(")
    names = {}
    exec(block, names)
    history = names["result"].history
    costs = ["cost/gradients", "cost/floats_up", "cost/floats_down", "cost/memory"]
    assert list(history.columns) == ["round", "train/loss", "train/distance", "train/bias", *costs]
    assert abs(names["result"].model[0] - 50) > 15


def test_the_model_of_the_participation_page(tmp_path, capsys):
    (block,) = blocks("docs/participation.md", language="yaml")
    (tmp_path / "model.yaml").write_text(block)
    code, out, _ = rollcall(capsys, "participation", str(tmp_path / "model.yaml"), "--rounds", "4000", "--json")
    assert code == 0
    summary = json.loads(out)
    assert summary["clients"] == 100
    assert summary["stationary"] < 6  # standard errors, the largest of 100: the sine's mean is what it should be


def test_the_page_names_every_model():
    page = (ROOT / "docs" / "participation.md").read_text()
    assert {*MODELS, *PROBABILITIES, *VARIATIONS} <= set(re.findall(r"`([a-z0-9_]+)`", page))


def test_the_counts_of_claims_are_those_of_the_kept_results():
    report = (ROOT / "leaderboard" / "REPRODUCTION.md").read_text()
    start = report.index("| claims | holds")
    table = report[start : report.index("\n\n", start)]
    assert len(table.splitlines()) == 2 + len(PAPERS) + 3 + 3  # of all, apart for runs and the rest, other kinds
    assert f"{table}\n" in README


def test_the_files_that_pages_link_to_exist():
    """Pages that `make docs` generates are not there before."""
    for page in PAGES:
        text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL)
        files = re.findall(r"\]\((?:path:)?([^)#\s]+)", text)
        files = [link for link in files if "://" not in link and "reference/generated" not in link]
        assert [link for link in files if not (page.parent / link).exists()] == [], page
        assert files or page.name not in ("README.md", "REPRODUCTION.md", "FINDINGS.md")
