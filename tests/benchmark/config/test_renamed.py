"""Files with former names of keys are read as those with the current names."""

import yaml

from benchmark.config.experiment import Experiment
from benchmark.config.grid import trials
from benchmark.config.renamed import current

FORMER = """
title: shares
trial: {}
panels:
  law:
    study: {name: separation_mixing, units: 10, law: uniform, rounds: 5}
grid: {seed: [0, 1], study.separation: [0, 3, 5]}
each:
  - when: {study.separation: 3}
    set: {study.rounds: 4}
report: {metrics: {shares: min}, x: study.separation}
claims: [{says: they fall, tag: ours, along: study.separation, most: 0}]
variants:
  longer: {about: longer, each: [{when: {study.separation: 5}, set: {study.rounds: 9}}]}
"""


def test_an_experiment_file_with_former_names_gives_the_same_trials_and_claims(tmp_path):
    files = tmp_path / "former.yaml", tmp_path / "current.yaml"
    files[0].write_text(FORMER)
    files[1].write_text(FORMER.replace("study", "analysis").replace("each:", "overrides:"))
    former, now = (Experiment.read(str(file)).model_copy(update={"name": "one"}) for file in files)
    assert former == now
    assert former.report.x == former.claims[0].along == "analysis.separation"
    found = trials(former.as_("longer"))
    assert [one.analysis.options["rounds"] for one in found] == [5, 4, 9] * 2
    assert all(yaml.safe_dump(one.spec(list)).startswith("analysis:") for one in found)


def test_a_digest_does_not_change_with_the_name():
    found = trials(Experiment.read("fedpbc/fig4"))
    assert found[0].digest == "632fbc9ba7"  # of the kept run, made when the key was `study`


def test_settings_of_results():
    assert current({"study": "uplink", "study.client": "1", "seed": "0"}) == {
        "analysis": "uplink",
        "analysis.client": "1",
        "seed": "0",
    }
