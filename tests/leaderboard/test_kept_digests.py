"""Every kept result is found by its digest: from its experiment, and from the settings that are kept with it."""

import hashlib
import json
import lzma
from functools import cache

import pytest

from rollcall.benchmark.config.digest import digest
from rollcall.benchmark.config.experiment import names
from rollcall.benchmark.config.grid import grid_points
from rollcall.benchmark.config.text import parsed
from rollcall.leaderboard.paper.experiment import PaperExperiment
from rollcall.leaderboard.runs import PACKAGE, SETTINGS

FILES = {str(file.relative_to(PACKAGE)).removesuffix(SETTINGS): file for file in sorted(PACKAGE.rglob(f"*{SETTINGS}"))}

value = cache(parsed)


@pytest.fixture(scope="module")
def plans():
    """The digests of all points of all experiments and their variants, by the experiment that holds the runs."""
    found = {}
    for one in map(PaperExperiment.read, names()):
        for version in (one, *map(one.as_, one.variants)):
            found.setdefault(one.home, set()).update(digest(point.spec) for point in grid_points(version))
    return found


def by_hand(texts):
    """The digest of kept settings, by dotted name, from the words of `digest` alone."""
    tree = {}
    for path, text in sorted(texts.items()):  # a choice comes before its options
        *above, last = path.split(".")
        inner = tree
        for key in above:
            if not isinstance(inner.setdefault(key, {}), dict):
                inner[key] = {"name": inner[key]}
            inner = inner[key]
        inner[last] = value(text)
    numerics = {key: one for key, one in tree.get("numerics", {}).items() if key == "dtype"}
    written = [1, {"seed": 0} | tree | {"rounds": None, "numerics": numerics}]
    return hashlib.sha256(json.dumps(written, sort_keys=True).encode()).hexdigest()[:10]


def trials(name):
    """The digests of kept trials with their tags and settings."""
    kept = json.loads(lzma.decompress(FILES[name].read_bytes()))
    assert kept["trials"]
    return {
        trial: [kept["common"][part] | own[part] for part in ("tags", "settings")]
        for trial, own in kept["trials"].items()
    }


@pytest.mark.parametrize("name", FILES)
def test_a_kept_result_has_the_digest_of_its_settings(name):
    for trial, (tags, settings) in trials(name).items():
        assert tags["rollcall.trial"] == trial
        if not any(text.endswith((".npy", ".npz")) for text in settings.values()):  # else the files' content counts
            assert by_hand({"seed": tags["seed"]} | settings) == trial, settings


@pytest.mark.full
def test_every_kept_result_is_of_an_experiment(plans):
    for name in FILES:
        assert set(trials(name)) <= plans[name], name


def test_kept_results_are_found_by_the_digests_of_their_experiment():
    assert len(FILES) >= 40
    assert set(trials("quickstart")) == {
        digest(point.spec) for point in grid_points(PaperExperiment.read("quickstart"))
    }
