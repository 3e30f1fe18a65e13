"""Which experiments are of papers."""

import pytest

from rollcall.benchmark.config.errors import SettingError
from rollcall.leaderboard.cli.shared import papers


def test_experiments_of_papers():
    names = [experiment.name for experiment in papers()]
    assert "fedpbc/table1" in names
    assert "quickstart" not in names
    assert [experiment.name for experiment in papers(["sun/fig1"])] == ["sun/fig1"]


def test_an_experiment_without_a_paper_is_refused():
    with pytest.raises(SettingError, match="experiment: 'quickstart' is not allowed; must have `source: "):
        papers(["quickstart"])
