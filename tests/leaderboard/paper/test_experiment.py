"""What is claimed, in a file beside what runs."""

import pytest
import yaml

from rollcall import SettingError
from rollcall.benchmark.config.base import validated
from rollcall.benchmark.config.experiment import Experiment
from rollcall.leaderboard.paper.experiment import PaperExperiment

BASE = {
    "title": "A table",
    "trial": {"task": {"name": "quadratic", "targets": [[0.0], [1.0]]}, "rounds": 5},
    "grid": {"seed": [0, 1], "algorithm": ["fedavg", "mifa"], "local.lr": [0.1, 0.2]},
    "variants": {
        "raw": {"about": "Raw updates.", "grid": {"algorithm": {"mifa": {"name": "mifa", "memory": "updates"}}}}
    },
}
CLAIM = {"says": "So.", "tag": "ours", "least": 0}


def written(folder, name="table", told=None, **content):
    """The path of an experiment file with a file of claims beside it."""
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(content or BASE))
    if told is not None:
        (folder / f"{name}.claims.yaml").write_text(yaml.safe_dump(told))
    return str(folder / f"{name}.yaml")


def test_claims_are_read_from_the_file_beside(tmp_path):
    told = {"claims": [CLAIM], "findings": ["Seen."], "variants": {"raw": {"claims": [CLAIM | {"least": 1}]}}}
    path = written(tmp_path, told=told)
    found = PaperExperiment.read(path)
    assert [claim.least for claim in found.judged] == [0]
    assert [claim.least for claim in found.as_("raw").judged] == [1]
    assert found.findings == ("Seen.",)
    plain = Experiment.read(path)  # what runs knows nothing of them
    assert not {"claims", "findings", "choices", "reported"} & {*type(plain).model_fields}
    assert plain.as_("raw").grid == found.as_("raw").grid


@pytest.mark.parametrize(
    ("told", "complaint"),
    [
        ({"claims": [CLAIM | {"along": "algorthm"}]}, "claims.0.along: 'algorthm' is not allowed; must be one of panel, algorithm, local.lr"),
        ({"claims": [CLAIM | {"slope": "algorithm"}]}, "claims.0.slope: 'algorithm' is not allowed; must be one of local.lr"),
        ({"claims": [CLAIM | {"of": {"algorithm": "fedav"}}]}, "claims.0.of.algorithm: 'fedav' is not allowed; must be one of fedavg, mifa"),
        ({"variants": {"raw": {"claims": [CLAIM | {"along": "algorthm"}]}}}, "variants.raw.claims.0.along: 'algorthm' is not allowed; must be one of panel, algorithm, local.lr"),
        ({"claims": [CLAIM | {"readings": {"a": {"says": "x", "variant": "row"}}}]}, "claims.0.readings.a.variant: 'row' is not allowed; must be one of raw"),
        ({"claims": [CLAIM | {"readings": {"a": {"says": "x", "where": {"panel": "b"}}}}]}, "claims.0.readings.a.where: 'panel' is not allowed; must be one of algorithm, local.lr"),
        ({"data_missing": [{"algorithm": "fedprox"}]}, "data_missing.0.algorithm: 'fedprox' is not allowed; must be one of fedavg, mifa"),
        ({"trial": {}}, "table.claims.yaml: trial is not allowed; must be one of choices, claims, data_missing, decides, findings, reported"),
    ],
)  # fmt: skip
def test_a_claim_about_what_is_not_there_is_refused(tmp_path, told, complaint):
    with pytest.raises(SettingError) as caught:
        PaperExperiment.read(written(tmp_path, told=told))
    assert str(caught.value).removeprefix("table.yaml: ").partition(". Did you mean ")[0] == complaint


def test_the_columns_that_are_read_are_those_of_the_table_the_figure_and_all_claims():
    reading = {"rather": {"says": "as a distance", "metric": "train/distance"}}
    claims = {"claims": [CLAIM | {"metric": "round_of:train/loss>=2", "readings": reading}]}
    more = {"about": "More.", "claims": [CLAIM | {"at": 3, "per": "cost/floats_up"}]}
    report = {"report": {"metrics": {"test/accuracy": "max"}, "drawn": ["test/loss"]}}
    experiment = validated(PaperExperiment, BASE | report | claims | {"name": "x", "variants": {"more": more}})
    columns = ["test/accuracy", "test/loss", "train/loss", "cost/floats_up", "train/distance"]
    assert experiment.metrics == experiment.as_("more").metrics == columns
