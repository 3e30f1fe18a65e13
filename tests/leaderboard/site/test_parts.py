"""What pages of methods say."""

import pytest

from rollcall.algorithms import ALGORITHMS
from rollcall.leaderboard.site.build import KNOWLEDGE, parts, prose


def test_every_method_says_its_cost_use_and_paper():
    for name, part in parts("algorithm").items():
        assert {"Cost", "When to use"} <= set(part.sections), name
        assert "<pre>" in part.body, name  # the paper's algorithm


@pytest.mark.parametrize("name", ["fedavg", "fedavg_known", "adafed", "ca_fed", "local_sgd", "fedprox", "mifa"])
def test_what_a_file_says_is_what_the_class_says(name):
    """`limit`, and in `knows` at least what the method with its defaults requires."""
    part, method = parts("algorithm")[name], ALGORITHMS[name]()
    assert part.limit == method.properties.limit
    assert {*method.requires} <= {key for key, words in KNOWLEDGE.items() if words in part.knows}


def test_text_is_escaped_and_code_is_marked():
    assert prose("a <b> `x<y`\n\n    1 < 2\n\nArgs:\n    p: in (0, 1],\n        or 2.") == (
        "<p>a &lt;b&gt; <code>x&lt;y</code></p>\n<pre>    1 &lt; 2</pre>\n"
        "<ul><li><code>p</code>: in (0, 1], or 2.</li></ul>"
    )
