"""What a user writes becomes domains; draws follow from (seed, setting, number)."""

from zlib import crc32

import numpy as np
import pytest
from keys import keyed

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.search.space import Domain, domain, draw_points, read_space

RATE = {"local.lr": "loguniform(1e-3,1)"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("loguniform(1e-3, 1)", Domain((), 1e-3, 1, log=True)),
        ("uniform(-1,1)", Domain((), -1, 1)),
        ("randint(10,12)", Domain((10, 11, 12))),
        ("choice(sgd,adam)", Domain(("sgd", "adam"))),
        ([1, 2], Domain((1, 2))),
        ("1e-2", Domain((0.01,))),
        (0.5, Domain((0.5,))),
    ],
)
def test_domains(text, expected):
    assert domain("local.lr", text) == expected


WRONG = ["loguniform(0,1)", "uniform(1,1)", "randint(0.5,2)", "randint(0,100000)", "uniform(1)", "normal(0,1)", []]


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_domain_is_refused_with_the_setting(text):
    with pytest.raises(SettingError, match=r"^space: local\.lr: .* is not allowed; must be uniform\(a,b\)"):
        domain("local.lr", text)


@pytest.mark.parametrize("path", ["seed", "task.clients", "participation.p", "algorithm.name", "local"])
def test_only_settings_of_the_method_and_its_optimizers_are_searched(path):
    """A search over the task, the participation model or the seed would choose the easiest problem."""
    message = f"^space: {path} is not allowed; must be a setting of algorithm, local or server, such as local.lr$"
    for space in ({path: [1, 2]}, {"local.lr": [0.1], "fedau": {path: [1, 2]}}):
        with pytest.raises(SettingError, match=message):
            read_space(space)


def test_a_text_a_file_and_a_mapping_say_the_same(tmp_path):
    file = tmp_path / "space.yaml"
    lines = ["local.lr: loguniform(1e-3, 1)  # not choice(1, 2)", "fedau: {algorithm.a: randint(1,9), server.lr: 1}"]
    file.write_text("\n".join(lines))
    expected = {"local.lr": "loguniform(1e-3, 1)", "fedau:algorithm.a": "randint(1,9)", "fedau:server.lr": 1}
    assert read_space(file) == expected
    text = "local.lr=loguniform(1e-3, 1),fedau:algorithm.a=randint(1,9),fedau:server.lr=1"
    assert read_space(text) == expected | {"fedau:server.lr": "1"}
    with pytest.raises(SettingError, match=r"^space: '0\.1' is not allowed; must be SETTING=DOMAIN"):
        read_space("0.1")


@pytest.mark.ray
def test_domains_of_tune_are_read_and_made():
    tune, sample = pytest.importorskip("ray.tune"), pytest.importorskip("ray.tune.search.sample")
    space = {"local.lr": tune.loguniform(0.25, 1), "local.steps": tune.randint(1, 4), "server.lr": tune.choice([1, 3])}
    plain = read_space(space | {"m": {"algorithm.a": tune.uniform(0, 1), "algorithm.b": tune.grid_search([2])}})
    common = {"local.lr": "loguniform(0.25,1)", "local.steps": "randint(1,3)", "server.lr": [1, 3]}
    assert plain == common | {"m:algorithm.a": "uniform(0,1)", "m:algorithm.b": [2]}
    with pytest.raises(SettingError, match=r"^space: local\.lr: Quantized is not allowed"):
        read_space({"local.lr": tune.quniform(0, 1, 0.5)})
    for kind, sampler in (("loguniform", sample.LogUniform), ("uniform", sample.Uniform)):
        made = domain("local.lr", f"{kind}(0.25,1)").tune()
        assert (made.lower, made.upper, isinstance(made.get_sampler(), sampler)) == (0.25, 1, True)
    steps = domain("local.steps", [2, 4, 8])
    assert {steps.read(steps.tune().sample()) for _ in range(99)} == {2, 4, 8}
    assert domain("x", "uniform(0,1)").read(0.123456) == 0.1235


@pytest.mark.parametrize(
    ("text", "values", "edges"),
    [
        ("uniform(0,1)", (0.0, 0.04, 0.06, 0.94, 0.96), ["lower", "lower", "", "", "upper"]),
        ("loguniform(1e-2,1)", (0.011, 0.02, 0.75, 0.9), ["lower", "", "", "upper"]),
        ([3, 1, 2], (1, 2, 3), ["lower", "", "upper"]),
        ([1], (1,), [""]),
        (["a", "b"], ("a",), [""]),
        ([None, 1, 5], (None, 5), ["", "upper"]),
    ],
)
def test_the_edge_of_a_space(text, values, edges):
    assert [domain("x", text).edge(value) for value in values] == edges


def test_numbers_of_numpy_are_plain_ones():
    found = read_space({"local.steps": [*np.arange(1, 3)], "local.lr": {"grid_search": [np.float32(0.5)]}})
    assert found == {"local.steps": [1, 2], "local.lr": [0.5]}
    assert [type(one) for values in found.values() for one in values] == [int, int, float]


def test_a_draw_of_a_range_is_that_of_its_key():
    for number in range(3):
        u = keyed(7, "search", crc32(b"local.lr"), number).random()
        for kind, expected in (("uniform", 0.1 + 0.3 * u), ("loguniform", 0.1 * 4**u)):
            drawn = domain("local.lr", f"{kind}(0.1,0.4)").draw(7, "local.lr", number)
            assert drawn == float(f"{expected:.4g}"), kind


def test_points_agree_in_the_settings_that_methods_share_and_none_is_drawn_twice():
    steps = {"local.steps": [1, 2, 3], "algorithm.a": ["x", "y"]}
    points = draw_points(RATE | steps, 12, seed=7)
    assert [{"local.lr": one["local.lr"]} for one in points] == draw_points(RATE, 12, seed=7)
    assert draw_points(RATE | steps, 5, seed=7) == points[:5]
    assert draw_points(RATE, 12, seed=8) != draw_points(RATE, 12, seed=7)
    few = draw_points(steps, 99, seed=7)
    assert sorted((one["local.steps"], one["algorithm.a"]) for one in few) == [(a, b) for a in (1, 2, 3) for b in "xy"]
    assert sorted(one["local.steps"] for one in points) == sorted([1, 2, 3] * 4)
