"""The site in a real browser: a small site with a hostile name, opened from disk in one Chromium."""

import importlib.util
from pathlib import Path

import pytest

from rollcall.leaderboard.paper.experiment import PaperExperiment
from rollcall.leaderboard.runs import archive, finished
from rollcall.leaderboard.site.build import build, collect
from tests.support.command import TINY, write
from tests.support.results import runs

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = "--no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync --no-first-run"
HOSTILE = "<script>document.title='broken'</script>"
EXPERIMENT = "experiments/mine"
PAGES = ["index", "claims", "statements", "findings", EXPERIMENT, "methods/feddyn", "participation/markov"]
ENDS = {"fedavg": 2.0, "fedpbc": 1.0, HOSTILE: 3.0}

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not CHROMIUM.is_file(), reason=f"there is no {CHROMIUM}"),
    pytest.mark.skipif(importlib.util.find_spec("playwright") is None, reason="playwright is not installed"),
]


def curve(labels, seed):
    """Evaluations after 0, 10 and 20 rounds: of FedAvg the last one is 2.01 in the mean of seeds 0, 1 and 2."""
    return [4.0, ENDS[labels["algorithm"]] + 1, ENDS[labels["algorithm"]] + 0.01 * seed]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Pages of an experiment with three methods, one of them named by a script, like the title; a panel that was not run, two claims."""
    folder = tmp_path_factory.mktemp("site")
    claim = {"tag": "ours", "of": {"algorithm": "fedpbc"}, "minus": {"algorithm": "fedavg"}, "where": {"panel": "near"}}
    cause = {"kind": "unknown", "supposed": f"nobody {HOSTILE}"}
    grid = {"seed": [0, 1, 2], "algorithm": {"fedavg": "fedavg", "fedpbc": "fedpbc", HOSTILE: "mifa"}}
    changes = {
        "title": f"Mine {HOSTILE}",
        "source": "[X] Fig. 1",
        "about": f"Nearer & nearer {HOSTILE}",
        "trial": TINY["trial"] | {"evaluation": {"every": 10}},
        "grid": grid,
        "panels": {"near": {"title": "Near"}, "far": {"title": "Far", "trial": {"local": {"lr": 0.3}}}},
        "claims": [
            claim | {"says": "FedPBC ends nearer", "most": 0.0},
            claim | {"says": "FedAvg wins", "least": 0.0, "cause": cause},
        ],
    }
    file = write(folder, "mine", **changes)
    experiment = PaperExperiment.read(file)
    made = [run for run in runs(experiment, curve, metric="train/distance") if run.settings["local.lr"] == "0.1"]
    made = [run for run in made if (run.settings["algorithm"], run.tags["seed"]) != ("mifa", "2")]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        archive(made, "mine", ["train/distance"], folder / "leaderboard" / "results")
        build(folder / "pages", [collect(experiment, file, finished("mine", None))], "rollcall site pages mine.yaml")
    return folder / "pages"


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS.split())


@pytest.fixture
def visit(browser, site):
    """Open a page; in the end nothing has left the machine, no error stands on a console and no script of a name ran."""
    errors, contexts = [], []

    def opened(name, scheme="light", mark=""):
        contexts.append(browser.new_context(viewport={"width": 1400, "height": 900}, color_scheme=scheme))
        page = contexts[-1].new_page()
        page.on("request", lambda request: request.url.startswith(("file:", "data:")) or errors.append(request.url))
        page.on("console", lambda message: message.type == "error" and errors.append(message.text))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{(site / name).as_uri()}.html{mark}")
        return page

    yield opened
    assert errors == []
    assert [page.title() for context in contexts for page in context.pages if page.title() == "broken"] == []
    for context in contexts:
        context.close()


def drawn(page):
    """Wait until the first figure is drawn."""
    page.locator(".plot").first.scroll_into_view_if_needed()
    page.wait_for_selector(".plot .view svg, .plot .view canvas")


LOOK = """() => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const { backgroundColor } = getComputedStyle(node);
      if (!backgroundColor.startsWith("rgba(0, 0, 0, 0")) return backgroundColor;
    }
    return "rgb(255, 255, 255)";
  };
  const found = { small: [], pale: [], page: light(behind(document.body)) };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || node.closest("script, style") || !node.checkVisibility()) continue;
    const style = getComputedStyle(node);
    if (parseFloat(style.fontSize) < 11) found.small.push([style.fontSize, node.textContent.slice(0, 30)]);
    if (node.closest("svg, .view, option")) continue;
    const [a, b] = [light(style.color), light(behind(node))].sort();
    if ((b + 0.05) / (a + 0.05) < 4.5) found.pale.push([style.color, behind(node), node.textContent.slice(0, 30)]);
  }
  return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_kind_of_page_fits_and_can_be_read(visit, scheme):
    """No horizontal overflow at 360, 768 and 1400 px, text of at least 11 px, contrast of at least 4.5 (WCAG AA)."""
    for name in PAGES:
        page = visit(name, scheme)
        if page.locator(".plot").count():
            drawn(page)
        for width in (1400, 768, 360):
            page.set_viewport_size({"width": width, "height": 900})
            overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert (name, width, overflow <= 0) == (name, width, True)
        look = page.evaluate(LOOK)
        assert (look["small"], look["pale"]) == ([], []), name
        assert (look["page"] > 0.8) == (scheme == "light")
        page.close()


def test_claims_are_filtered_and_the_address_keeps_the_filter(visit, site):
    page = visit("claims")
    shown = page.locator("details.claim:visible .says")
    assert shown.count() == 2
    page.select_option("[name=cause]", "unknown")
    assert shown.all_inner_texts()[0].startswith("FedAvg wins")
    assert shown.count() == 1
    page.fill("[name=q]", "nearer")
    assert shown.count() == 0
    assert page.locator("#filters output").inner_text() == "0 of 2 claims"
    page.select_option("[name=cause]", "")
    assert shown.all_inner_texts()[0].startswith("FedPBC ends nearer")
    again = visit("claims", mark=page.evaluate("location.hash"))
    assert again.locator("[name=q]").input_value() == "nearer"
    assert again.locator("details.claim:visible").count() == 1


def test_the_tooltip_has_the_number_and_lines_can_be_left_out(visit):
    page = visit(EXPERIMENT)
    drawn(page)
    points = page.locator(".plot").first.locator(".mark-symbol.role-mark").first.locator("path")
    assert points.count() == 9  # three methods, three evaluations
    told = {}
    for index in range(9):
        points.nth(index).hover(force=True)
        page.wait_for_selector("#vg-tooltip-element.visible")
        cells = page.locator("#vg-tooltip-element td.value").all_inner_texts()
        told[cells[0], int(cells[1])] = float(cells[2])
    assert told["FedAvg", 20] == 2.01
    assert told["FedAvg", 10] == 3
    assert told["FedPBC", 20] == 1.01
    page.get_by_role("checkbox", name="FedPBC").uncheck()
    page.wait_for_function("document.querySelector('.plot .mark-symbol.role-mark').children.length === 6")
    page.get_by_label("up to round").fill("10")
    page.wait_for_function("document.querySelector('.plot .mark-symbol.role-mark').children.length === 4")
    page.get_by_label("over").select_option("seconds")
    page.wait_for_selector(".plot .view svg text:text-is('seconds')")
    page.get_by_role("checkbox", name="log").check()
    page.wait_for_timeout(300)
    assert "cannot be drawn" not in page.content()
    page.locator("details.data summary").first.click()
    numbers = page.locator("details.data").first.locator("tbody tr")
    numbers.nth(8).wait_for()
    assert {"FedAvg", "20", "2.01"} <= set(numbers.nth(2).inner_text().split("\t"))


def test_a_click_on_a_head_sorts_numbers_with_signs_intervals_and_commas(visit):
    page = visit("index")
    ordered = ["-2", "9 of 10", "+9.1 ± 0.3", "10 of 10", "10.4 ± 1.0", "1,234"]
    cells = ["", "inf", *sorted(ordered), "not reached"]
    rows = "".join(f"<tr><td data-value='{one}'>{one}</td><td class='text'>{one}</td></tr>" for one in cells)
    head = "<th><button>n</button></th><th class='text'><button>word</button></th>"
    table = f"<table class='sortable' id='own'><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    page.evaluate("table => document.querySelector('main').insertAdjacentHTML('beforeend', table)", table)
    column, heads = page.locator("#own td:first-child"), page.locator("#own button")
    heads.first.click()
    assert column.all_inner_texts() == [*ordered, "inf", "not reached", ""]
    heads.first.click()
    assert column.all_inner_texts() == [*ordered[::-1], "not reached", "inf", ""]
    heads.last.click()
    words = column.all_inner_texts()
    assert words.index("10 of 10") < words.index("9 of 10")


def test_the_search_finds_pages_by_all_words(visit):
    page = visit("methods/fedpbc")
    page.fill("#find", "broken")
    assert page.locator("#found a").all_inner_texts() == [f"Mine {HOSTILE} (mine)"]
    page.fill("#find", "FEDAVG known")
    assert page.locator("#found a").all_inner_texts() == ["FedAvg, known p (fedavg_known)"]
    page.click("#found a")
    assert page.url.endswith("/methods/fedavg_known.html")
    page.fill("#find", "no such thing")
    page.get_by_text("Nothing has this name.").wait_for()
