"""Names and styles: complete, fixed, and distinguishable with each kind of colour blindness."""

from itertools import combinations

import numpy as np
import pytest

from rollcall.algorithms import ALGORITHMS
from rollcall.benchmark.config.digest import flatten, serialised
from rollcall.benchmark.config.experiment import names
from rollcall.benchmark.config.grid import grid_points
from rollcall.leaderboard.names import OWN, _names, label_name, method_name, paper_of, style
from rollcall.leaderboard.paper.experiment import PaperExperiment
from rollcall.participation import MODELS
from rollcall.tasks import MODELS as NETWORKS
from rollcall.tasks import TASKS

BLIND = {  # Machado, Oliveira, Fernandes (2009), severity 1, on linear RGB
    "normal": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def lab(colour: str, blind: str) -> np.ndarray:
    """CIELAB, D65, of a colour as somebody sees it."""
    values = np.array([int(colour[start : start + 2], 16) for start in (1, 3, 5)]) / 255
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(BLIND[blind]) @ linear, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ seen
    f = [np.cbrt(x) if x > 0.008856 else 7.787 * x + 16 / 116 for x in xyz / [0.9505, 1, 1.089]]
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def differ(one: str, other: str) -> bool:
    """Whether two colours differ by six times what is just noticeable (2.3), with and without colour blindness."""
    return all(np.linalg.norm(lab(one, blind) - lab(other, blind)) > 6 * 2.3 for blind in BLIND)


@pytest.mark.parametrize(
    ("kind", "known"), [("algorithm", ALGORITHMS), ("participation", MODELS), ("task", TASKS), ("model", NETWORKS)]
)
def test_every_part_has_a_display_name_of_its_own(kind: str, known: dict[str, object]) -> None:
    assert set(known) <= set(_names()[kind])
    assert len({label_name(kind, name) for name in _names()[kind]}) == len(_names()[kind])


def test_every_method_has_a_paper_and_no_name_is_left_of_a_method_that_is_gone() -> None:
    assert all(paper_of("algorithm", name) for name in ALGORITHMS)
    assert {name for name, entry in _names()["algorithm"].items() if "style" in entry} == set(ALGORITHMS)


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("fedavg_known", "FedAvg, known p"),
        ("mifa", "MIFA"),
        ("fedavgm beta=0.5", "FedAvgM, beta=0.5"),
        ("some dir/file.py:Mine", "Mine"),
        ("0.5:1", "0.5:1"),
        ("package.module:Mine beta=2", "Mine, beta=2"),
        ("kappa2=0.1", "kappa2=0.1"),
        ("Mine", "Mine"),
        ("<script>", "<script>"),
    ],
)
def test_a_method_is_shown_by_its_name(label: str, name: str) -> None:
    assert method_name(label) == name


def methods(name: str) -> frozenset[str]:
    """The methods of an experiment."""
    points = grid_points(PaperExperiment.read(name).varied({"seed": [0]}))
    choices = [point.spec["algorithm"] for point in points if "algorithm" in point.spec]
    return frozenset(flatten(serialised({"algorithm": one}))["algorithm"] for one in choices)


def test_the_methods_of_every_experiment_look_different_to_everybody() -> None:
    together = {frozenset(ALGORITHMS)}
    together |= {methods(name) for name in names()}
    for one, other in {frozenset(pair) for known in together for pair in combinations(sorted(known), 2)}:
        a, b = style(one), style(other)
        assert a.dash != b.dash or differ(a.colour, b.colour), (one, other)
    for name in ("fedpbc/table1", "ca_fed/fig1", "focus/fig4", "sun/table1", "quickstart"):  # by colour alone
        for one, other in combinations(sorted(methods(name)), 2):
            assert differ(style(one).colour, style(other).colour), (one, other)


def test_a_method_of_ones_own_moves_no_other() -> None:
    ours = sorted(ALGORITHMS)
    before = {name: style(name, ours) for name in ours}
    shown = [*ours, "Mine", "A second one", "m.py:Third"]
    assert {name: style(name, shown) for name in ours} == before
    own = [style(name, shown) for name in shown[len(ours) :]]
    assert style("Mine", shown) == style("Mine", ["Mine"])
    assert len({(one.colour, one.dash) for one in own}) == 3
    assert {one.colour for one in own} <= set(OWN)
