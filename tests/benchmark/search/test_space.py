"""What a user writes becomes domains; samples follow from (seed, cell, index, setting)."""

import numpy as np
import pytest

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.search.space import (
    Options,
    Range,
    Space,
    assignments,
    domain,
    draw_points,
    grid,
    random_samples,
    sample,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("loguniform(1e-3, 1)", Range(1e-3, 1, log=True)),
        ("uniform(-1,1)", Range(-1, 1)),
        ("randint(10,100)", Range(10, 100, whole=True)),
        ("choice(0.3,1,3)", Options((0.3, 1, 3))),
        ("choice(sgd,adam)", Options(("sgd", "adam"))),
        ([1, 2], Options((1, 2))),
        ("1e-2", Options((0.01,))),
        ("0.3,1", Options((0.3, 1))),
        (0.5, Options((0.5,))),
    ],
)
def test_domains(text, expected):
    assert domain("local.lr", text) == expected


@pytest.mark.parametrize(
    "text",
    ["loguniform(0,1)", "uniform(1,1)", "uniform(2,1)", "randint(0.5,2)", "uniform(1)", "normal(0,1)", "choice()", []],
)
def test_what_is_no_domain_is_refused_with_the_setting(text):
    with pytest.raises(SettingError, match=r"^space: local\.lr: .* is not allowed; must be uniform\(a,b\)"):
        domain("local.lr", text)


@pytest.mark.parametrize(
    "path",
    ["seed", "rounds", "target", "task.clients", "participation.p", "evaluation.every", "algorithm.name", "local"],
)
def test_only_settings_of_the_method_and_its_optimizers_are_searched(path):
    """A search over the task, the participation model or the seed would choose the easiest problem."""
    message = f"^space: {path} is not allowed; must be a setting of algorithm, local or server, such as local.lr$"
    for space in ({path: [1, 2]}, {"local.lr": [0.1], "fedau": {path: [1, 2]}}):
        with pytest.raises(SettingError, match=message):
            Space.read(space)


def test_a_mapping_is_the_space_of_one_method_and_a_domain_in_braces_needs_no_quotes(tmp_path):
    file = tmp_path / "space.yaml"
    file.write_text(
        "local.lr: loguniform(1e-3, 1)  # not choice(1, 2)\nfedau: {algorithm.cutoff: randint(10,100), algorithm.a: choice(1,3)}"
    )
    space = Space.read(file)
    assert space.common == {"local.lr": Range(1e-3, 1, log=True)}
    assert space.methods == {"fedau": {"algorithm.cutoff": Range(10, 100, whole=True), "algorithm.a": Options((1, 3))}}
    assert space.settings == {"local.lr", "algorithm.cutoff", "algorithm.a"}


def test_a_text_names_the_method_before_a_colon_and_commas_in_parentheses_separate_nothing():
    space = Space.read("local.lr=loguniform(1e-3,1),fedau:algorithm.cutoff=randint(10,100),fedau:server.lr=1,3")
    assert space.common == {"local.lr": Range(1e-3, 1, log=True)}
    assert space.methods == {"fedau": {"algorithm.cutoff": Range(10, 100, whole=True), "server.lr": Options((1, 3))}}
    with pytest.raises(SettingError, match=r"^space: '0\.1' is not allowed; must be SETTING=DOMAIN"):
        assignments("0.1")
    with pytest.raises(SettingError, match=r"^space: fedau: is a setting and a method; must be one of them$"):
        assignments("fedau=1,fedau:server.lr=1")


def test_a_share_of_a_range():
    assert Range(1e-4, 1, log=True).at(0.5) == 0.01
    assert Range(-2, 2).at(0.75) == 1
    assert Range(1, 2).at(1 / 3) == 1.333
    assert Range(0.12344, 1).at(0) == 0.12344  # rounding does not leave the range
    assert (Range(-1, 0.87654).rounded(0.876539), Range(-1, 0.87656).rounded(0.87656)) == (0.8765, 0.87656)
    whole = Range(1, 3, whole=True)
    assert [whole.at(u) for u in (0, 0.32, 0.34, 0.66, 0.67, 0.999)] == [1, 1, 2, 2, 3, 3]
    assert [Options((5, 6)).at(u) for u in (0, 0.49, 0.5, 0.99)] == [5, 5, 6, 6]


def sides(domain, values) -> list:
    """For each value, the side of the space at whose edge it lies: below -1, above 1, else 0."""
    beyond = [domain.beyond(value) for value in values]
    return [(all(x > v for x in b) - all(x < v for x in b)) if b else 0 for v, b in zip(values, beyond, strict=True)]


def test_the_edge_of_a_space():
    assert sides(Range(0, 1), (0.0, 0.04, 0.06, 0.94, 0.96)) == [-1, -1, 0, 0, 1]
    assert sides(Range(1e-2, 1, log=True), (0.011, 0.02, 0.75, 0.9)) == [-1, 0, 0, 1]
    assert sides(Range(1, 9, whole=True), (1, 2, 9)) == [-1, 0, 1]
    assert sides(Options((3, 1, 2)), (1, 2, 3)) == [-1, 0, 1]
    assert sides(Options((0, -1)), (-1, 0)) == [-1, 1]
    assert sides(Options((1,)), (1,)) == [0]
    assert sides(Options(("a", "b")), ("a",)) == [0]


def test_samples_do_not_depend_on_the_other_settings_or_on_how_many_are_drawn():
    rate, steps = {"local.lr": Range(1e-3, 1, log=True)}, {"local.steps": Range(1, 10**6, whole=True)}
    few, many = random_samples(rate, 7, "fedavg", 3), random_samples(rate | steps, 7, "fedavg", 20)
    assert [one["local.lr"] for one in many[:3]] == [one["local.lr"] for one in few]
    assert many[5] == sample(rate | steps, 7, "fedavg", 5)
    assert len({one["local.lr"] for one in many}) == 20
    assert random_samples(rate, 8, "fedavg", 3) != few
    assert random_samples(rate, 7, "mifa", 3) != few


def test_all_cells_draw_the_shared_settings_alike():
    rate, server = {"local.lr": Range(1e-3, 1, log=True)}, {"server.lr": Options((1, 3, 10))}
    own = {"algorithm.cutoff": Range(0, 1)}
    shared = rate | server
    first = random_samples(shared, 7, "a", 9, shared)
    assert random_samples(shared, 7, "b", 9, shared) == first
    more = random_samples(shared | own, 7, "c", 9, shared)
    assert [{path: one[path] for path in shared} for one in more] == first
    other = random_samples(shared | own, 7, "d", 9, shared)
    assert not {one["algorithm.cutoff"] for one in other} & {one["algorithm.cutoff"] for one in more}
    assert [one["local.lr"] for one in random_samples(rate, 7, "e", 9, shared)] == [one["local.lr"] for one in first]


def test_shared_settings_of_few_values_are_drawn_alike_and_no_combination_twice():
    shared = {"a": Options((1, 2, 3)), "b": Options(("x", "y"))}
    own = {"c": Options((7, 8, 9, 10))}
    points = random_samples(shared, 0, "m", 99, shared)
    assert sorted(map(str, points)) == sorted(map(str, grid(shared)))
    both = random_samples(shared | own, 0, "n", 99, shared)
    assert [{"a": one["a"], "b": one["b"]} for one in both[:6]] == points
    assert sorted(map(str, both)) == sorted(map(str, grid(shared | own)))
    lacking = [one["a"] for one in random_samples({"a": shared["a"]}, 0, "o", 99, shared)]
    assert lacking == list(dict.fromkeys(one["a"] for one in points))


def test_samples_fill_the_range():
    drawn = [sample({"x": Range(1e-4, 1, log=True)}, 0, "c", i)["x"] for i in range(400)]
    shares = np.histogram(np.log10(drawn), bins=4, range=(-4, 0))[0]
    assert (abs(shares - 100) < 40).all()  # 4.6 standard deviations


def test_a_small_space_is_drawn_without_repetition():
    space = {"a": Options((1, 2, 3)), "b": Options(("x", "y"))}
    drawn = random_samples(space, 0, "c", 4)
    assert random_samples(space, 0, "c", 99)[:4] == drawn
    assert sorted(map(str, random_samples(space, 0, "c", 99))) == sorted(map(str, grid(space)))


def test_a_grid_lists_all_combinations():
    points = grid({"a": Options((1, 2)), "b": Range(5, 6, whole=True)})
    assert points == [{"a": 1, "b": 5}, {"a": 1, "b": 6}, {"a": 2, "b": 5}, {"a": 2, "b": 6}]
    with pytest.raises(SettingError, match=r"^space: a: a range is not allowed in a grid"):
        grid({"a": Range(0, 1)})


def test_points_agree_in_the_settings_that_methods_share_and_none_is_drawn_twice():
    rate, steps = {"local.lr": "loguniform(1e-3,1)"}, {"local.steps": [1, 2, 3], "algorithm.a": ["x", "y"]}
    points = draw_points(rate | steps, 12, seed=7)
    assert [{"local.lr": one["local.lr"]} for one in points] == draw_points(rate, 12, seed=7)
    assert draw_points(rate | steps, 5, seed=7) == points[:5]
    assert draw_points(rate, 12, seed=8) != draw_points(rate, 12, seed=7)
    few = draw_points(steps, 99, seed=7)
    assert sorted((one["local.steps"], one["algorithm.a"]) for one in few) == [(a, b) for a in (1, 2, 3) for b in "xy"]
    assert sorted(one["local.steps"] for one in points) == sorted([1, 2, 3] * 4)
