"""Write the site: collect what is shown of every experiment, then render the pages."""

import ast
import inspect
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, is_dataclass, replace
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import altair as alt
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from rollcall.benchmark.config.choice import KINDS
from rollcall.benchmark.config.described import parse
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import file_of
from rollcall.benchmark.config.text import command, counted, first_sentence, strict_json
from rollcall.benchmark.search.board import Board
from rollcall.leaderboard import render, standing
from rollcall.leaderboard.cells import Cell, planned_rounds
from rollcall.leaderboard.figures import board_chart, orders_chart, paper_curves, ranking_curves
from rollcall.leaderboard.names import label_name, label_text, labelled, method_name, paper_of
from rollcall.leaderboard.paper import findings, reproduction
from rollcall.leaderboard.paper.claims import LEVELS, MEANINGS, ORDER, PAPERS, VERDICTS, Told, claim_counts, of_papers
from rollcall.leaderboard.paper.experiment import PaperExperiment, Printed, printed, printed_for
from rollcall.leaderboard.paper.sentences import claims_list, numbers, tally_of
from rollcall.leaderboard.ranking import METHOD, axes, rank
from rollcall.leaderboard.render import Number, Table
from rollcall.leaderboard.runs import Run
from rollcall.leaderboard.tables import beside_printed, paper_table, ranking_table

TEMPLATES = Path(__file__).parent / "templates"


KNOWLEDGE = {
    "probability": "p, the probability that each client is active in the round",
    "stationary": "π, the long-run share of rounds in which each client is active",
    "correlation": "λ, the lag-1 autocorrelation of each client",
    "share": "c, the expected weight of each client in the mean over the active ones",
    "least_loss": "the least training loss of each client",
}
"""The oracle knowledge that a method's `requires` may name, in words."""

LIMITS = {
    "optimum": "converges to the optimum, whatever the probabilities",
    "optimum on average": "is at the optimum on average over rounds",
    "shares": (
        "converges to the optimum of an objective in which a client weighs by its expected share in the mean over the "
        "active clients"
    ),
    "probabilities": "converges to the optimum of an objective in which clients weigh by their probability",
    "elsewhere": "has no declared limit",
}
"""`Properties.limit` in words; `rollcall check` tests it."""


@dataclass(frozen=True)
class Part:
    """A method or a participation model: its docstring and its source.

    `states` are the docstrings of the dataclasses beside it, which say what it keeps between rounds, `knows` is the
    oracle knowledge that it may need, in words, and `limit` where it converges, as it declares.
    """

    name: str
    text: str
    code: str
    states: dict[str, str] = field(default_factory=dict)
    knows: list[str] = field(default_factory=list)
    limit: str = "elsewhere"

    @property
    def summary(self) -> str:
        return first_sentence(self.text)

    @property
    def sections(self) -> dict[str, str]:
        return parse(self.text).sections

    @property
    def body(self) -> Markup:
        """The text without the first paragraph and the sections, as HTML."""
        said = parse(self.text)
        return _html(said.body.split("\n\n")[1:], said.meanings)


def parts(kind: str) -> dict[str, Part]:
    """The suite's methods (`algorithm`) or participation models (`participation`) by name."""
    return {name: _part(name, kind, thing) for name, thing in KINDS[kind].known.items()}


def own_part(name: str) -> Part:
    """A method of the user's own, `file.py:Mine`; without text and code if its file is not here. It is not run."""
    file, _, wanted = name.rpartition(":")
    text = Path(file).read_text(encoding="utf-8") if file.endswith(".py") and Path(file).is_file() else ""
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef) and node.name == wanted:
            return Part(name, ast.get_docstring(node) or "", ast.get_source_segment(text, node) or "")
    return Part(name, "", "")


def prose(text: str) -> Markup:
    """The text of a docstring as HTML: paragraphs, indented blocks as they are, and a list of its parameters."""
    said = parse(text)
    return _html(re.split(r"\n{2,}", said.body), said.meanings)


def _html(paragraphs: Iterable[str], meanings: Mapping[str, str]) -> Markup:
    blocks = [
        f"<pre>{escape(block)}</pre>" if block.startswith("    ") else f"<p>{inline(block.removesuffix('::'))}</p>"
        for block in filter(None, paragraphs)
    ]
    listed = [f"<li><code>{escape(name)}</code>: {inline(meaning)}</li>" for name, meaning in meanings.items()]
    return Markup("\n".join([*blocks, *([f"<ul>{''.join(listed)}</ul>"] if listed else [])]))


def inline(text: str) -> Markup:
    """One paragraph with `code`, **bold words** and *Titles of papers*."""
    text = str(escape(text))
    for pattern, tag in ((r"`+([^`]+)`+", "code"), (r"\*\*([^*]+)\*\*", "b"), (r"\*([A-Z][^*]+)\*", "cite")):
        text = re.sub(pattern, rf"<{tag}>\1</{tag}>", text)
    return Markup(text)


def _part(name: str, kind: str, thing: Callable[..., Any]) -> Part:
    module, code = sys.modules[thing.__module__], inspect.getsource(thing).rstrip()
    if kind != "algorithm":
        return Part(name, inspect.cleandoc(thing.__doc__ or ""), code)
    beside = [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__]
    states = {
        one.__name__: inspect.getdoc(one) or "" for one in beside if is_dataclass(one) and one.__bases__ == (object,)
    }
    requires: Any = inspect.getattr_static(thing, "requires")  # names, or a property that returns names
    named = inspect.getsource(requires.fget) if getattr(requires, "fget", None) else str(requires)
    knows = [words for key, words in KNOWLEDGE.items() if re.search(rf"['\"]{key}['\"]", named)]
    return Part(name, inspect.cleandoc(module.__doc__ or ""), code, states, knows, thing().properties.limit)


@dataclass(frozen=True)
class Shown:
    """What the pages show of an experiment, which is named or the path of its file, and of its cells that were run.

    `printed` are the tables as the paper has them: a title, methods, and rows; see `as_printed`. `tables` have a
    title, the table (None if nothing of it was run), and the number of its cells that were not run. `variants` have a
    name, what they change, and their table.
    """

    experiment: PaperExperiment
    name: str
    cells: Sequence[Cell] = ()
    origin: str = ""
    printed: Sequence[tuple[str, list[str], list[tuple[str, list[dict[str, str]]]]]] = ()
    tables: Sequence[tuple[str, Table | None, int]] = ()
    told: Sequence[Told] = ()
    variants: Sequence[tuple[str, str, Table]] = ()
    figure: alt.ConcatChart | None = None

    @property
    def page(self) -> str:
        return f"experiments/{self.experiment.name}.html"

    @property
    def size(self) -> str:
        runs = len(set[str]().union(*(cell.trials for cell in self.cells)))  # one may be in several cells
        return self.origin if self.experiment.is_board and self.origin else counted(runs, "run") if runs else "not run"


def collect(
    experiment: PaperExperiment, name: str, runs: Sequence[Run], store: Path | None = None,
    whole: reproduction.Judged | None = None, kept: bool = True,
) -> Shown:  # fmt: skip
    """The results of an experiment: of a paper its table and claims; of a board its tables; else a ranking.

    A board has its `kept` entries, and those of the user's own in the store. `whole` has the claims if the tables are
    of a part of the experiment or have another report.
    """
    if experiment.is_board:
        return _board(experiment, name, store, kept)
    if experiment.source:
        return _of_paper(experiment, name, runs, whole)
    metrics, last_rounds = experiment.report.metrics, experiment.report.last_rounds
    complete = [run for run in runs if run.diverged or all(run.has(metric) for metric in metrics)]
    if not complete:
        return Shown(experiment, name)
    ranking = rank(complete, metrics, last_rounds, axes(experiment, runs), planned_rounds(experiment))
    shown = Shown(experiment, name, ranking.cells, reproduction.origin(complete))
    figure = _figure(ranking_curves, ranking, "", experiment.report)
    return replace(shown, tables=[("", ranking_table(ranking), 0)], figure=figure)


def _figure(draw: Callable[..., alt.ConcatChart], *of: Any) -> alt.ConcatChart | None:
    with suppress(SettingError):  # nothing was measured
        return draw(*of)
    return None


def _board(experiment: PaperExperiment, name: str, store: Path | None, kept: bool) -> Shown:
    try:
        board = standing.standing(Board.read(name), store, kept)
    except standing.NoEntries:
        return Shown(experiment, name)
    tables = standing.tables(board, next(iter(board.entries)))
    origin = f"{len(board.entries)} of {counted(len(board.board.methods), 'method')} entered."
    listed = [(heading[0].upper() + heading[1:], table, 0) for heading, table in tables.items()]
    return Shown(experiment, name, origin=origin, tables=listed, figure=board_chart(board))


def _of_paper(experiment: PaperExperiment, name: str, runs: Sequence[Run], whole: reproduction.Judged | None) -> Shown:
    one, known = reproduction.Judged(experiment, runs), printed(experiment)
    told = (whole or one).told
    tables: list[tuple[str, Table | None, int]] = []
    compared = []
    for panel, settings in experiment.panels.items():
        of_panel = [cell for cell in one.cells if cell.labels["panel"] == panel]
        here = [cell for cell in of_panel if cell.runs]
        title = settings.title or panel
        tables.append((title, paper_table(experiment, here, known) if here else None, len(of_panel) - len(here)))
        compared += as_printed(title, experiment, of_panel, known) if known else []
    ran = [run for cell in one.ran for run in cell.runs.values()]
    return Shown(
        experiment,
        name,
        one.ran,
        reproduction.origin(ran) if ran else "",
        sorted(compared, key=lambda one: not any(entry.get("measured") for _, row in one[2] for entry in row)),
        tables,
        told,
        [(variant, experiment.variants[variant].about, table) for variant, table in one.variant_tables.items()],
        _figure(paper_curves, experiment, one.ran),
    )


def as_printed(
    title: str, experiment: PaperExperiment, cells: Sequence[Cell], numbers: Sequence[Printed]
) -> list[tuple[str, list[str], list[tuple[str, list[dict[str, str]]]]]]:
    """Tables of a panel as the paper has them, one for each metric with printed numbers: conditions x methods.

    A row is the conditions, and for each method the measured number, the printed one, their difference and the size of
    the runs; empty texts for what is not known.
    """
    made, last_rounds = [], experiment.report.last_rounds
    methods = list(dict.fromkeys(cell.labels.get(METHOD, "") for cell in cells))
    for metric in experiment.report.metrics:
        rows: dict[str, dict[str, dict[str, str]]] = {}
        for cell in cells:
            others = {axis: label for axis, label in cell.labels.items() if axis not in (METHOD, "panel")}
            if printed_for(cell.labels, metric, numbers) is None:
                continue
            measured, paper, less = map(str, beside_printed(cell, cell.labels, metric, last_rounds, numbers))
            size = counted(len(cell.runs), "seed") if measured else ""
            if measured and cell.rounds_run < cell.rounds and "%)" not in less:
                size += f", {cell.share:.0%} of steps"
            entry = {"measured": measured, "printed": paper, "less": less, "size": size}
            rows.setdefault(_setting(experiment, others), {})[cell.labels.get(METHOD, "")] = entry
        if rows:
            lines = [(where, [row.get(method, {}) for method in methods]) for where, row in rows.items()]
            made.append((", ".join(filter(None, (title, metric.head))), methods, lines))
    return made


@cache
def vega() -> str:
    """The scripts that draw the figures, which take seconds to bundle."""
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def build(folder: Path, shown: Sequence[Shown], again: str) -> str:
    """Write the pages of experiments into a folder, replacing files of the same names.

    `again` is the command that writes them. Returns the number of pages, and the file to open.

    Raises SettingError: the folder cannot be written.
    """
    count = 0

    def write(path: str, template: str, **content: Any) -> None:
        """Render a page, with the way back to the folder as `root`."""
        nonlocal count
        root = "../" * path.count("/")
        text = PAGES.get_template(f"{template}.html").render(root=root, path=path, again=again, **content)
        _put(folder / path, text)
        count += 1

    methods, models = parts("algorithm"), parts("participation")
    claims = [claim for one in shown for claim in _claims(one)]
    records = [record for one in shown for record in _records(one)]
    methods |= {one["id"]: own_part(one["id"]) for one in records if one["id"] not in methods}
    told = [result for one in shown for result in one.told]
    found, whole = Counter(one.result.verdict for one in of_papers(told)), len(shown) > 1
    counts = {verdict: found[verdict] for verdict in VERDICTS if found[verdict]}
    messages = reproduction.messages(told) if whole else []
    ids = {method_name(name): name for name in reversed(methods)}  # of equal names the suite's, which come first
    write("index.html", "home", messages=messages, counts=counts, shown=shown, methods=methods, models=models, ids=ids)
    write("claims.html", "claims", claims=claims, verdicts=VERDICTS, rows=claim_counts(told) if whole else [])
    by_name = {one.experiment.name: one for one in shown}
    found_ours = findings.guided(findings.boards())
    orders = findings.orders() if whole else []
    picture = orders_chart([(order, gaps) for order, _, gaps in orders]) if whole else None
    write("findings.html", "findings", told=found_ours, by=by_name, orders=orders, picture=picture)
    stated = [(one, [of.experiment.name for of in own], verdict) for one, own, verdict in reproduction.stated(told)]
    write("statements.html", "statements", stated=stated, prefixes=PAPERS)
    write("verdicts.html", "verdicts", levels=LEVELS, meanings=MEANINGS, order=ORDER)
    for one in shown:
        write(one.page, "experiment", **_experiment(one, claims, ids))
    for name, part in methods.items():
        own = [record for record in records if record["id"] == name]
        by = {pattern: [one for one in own if one["model"] == pattern] for pattern in sorted({r["model"] for r in own})}
        limit, paper = LIMITS[part.limit], paper_of(METHOD, name)
        on_boards = [(one, row) for one in shown if one.experiment.is_board and (row := _row_of(one, name))]
        write(_place("methods", name), "method", part=part, by=by, limit=limit, paper=paper, boards=on_boards)
    for name, part in models.items():
        own = [record for record in records if record["model"] == name]
        write(_place("participation", name), "model", part=part, records=own)
    names = [(f"{one.experiment.title} ({one.experiment.name})", one.page) for one in shown]
    names += [(f"{method_name(name)} ({name})", _place("methods", name)) for name in methods]
    names += [(f"{label_name('participation', name)} ({name})", _place("participation", name)) for name in models]
    said = {one.result.claim.statement: one.result.claim.says for one in told if one.result.claim.statement}
    names += [(f"{statement}: {says}", f"claims.html#q={statement}") for statement, says in said.items()]
    _put(folder / "assets/pages.js", f"window.pages = {json.dumps(names)};\n")
    assets = {name: (TEMPLATES / name).read_text(encoding="utf-8") for name in ("site.css", "site.js", "LICENSES.txt")}
    for name, text in (assets | {"vega.js": vega()}).items():
        _put(folder / "assets" / name, text)
    return f"{counted(count, 'page')}: {folder / 'index.html'}"


def _row_of(board: Shown, method: str) -> Table | None:
    """The row of a method in the first table of a board; None if it has none."""
    table = next((table for _, table, _ in board.tables if table), None)
    rows = [row for row in table.rows if row[0] == method] if table else []
    return replace(table, rows=rows) if table and rows else None


def _place(kind: str, name: str) -> str:
    """The path of the page of a method or participation model; names of the user's own are made plain."""
    plain = re.sub(r"[^A-Za-z0-9_]+", "-", name)
    return f"{kind}/{plain if plain == name else f'{plain[-40:]}-{sha256(name.encode()).hexdigest()[:8]}'}.html"


def _put(file: Path, text: str) -> None:
    try:
        render.clear(file)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SettingError(f"{file}: the page cannot be written ({error.strerror}); choose another folder") from None


def _embedded(value: Any) -> Markup:
    """Plain values as JSON that may stand in a <script> element."""
    text = strict_json(value, indent=None)
    return Markup(text.replace("<", r"\u003c").replace("\u2028", r"\u2028").replace("\u2029", r"\u2029"))


def _claims(one: Shown) -> list[dict[str, Any]]:
    """What the list of claims and the page of the experiment show of each claim."""
    made = []
    for told in one.told:
        result, claim = told.result, told.result.claim
        named = [label for labels in (claim.of, claim.minus, claim.over) for label in (labels or {}).get(METHOD, ())]
        measured, as_printed = numbers(result)
        of = {"told": told, "claim": claim, "verdict": result.verdict, "kind": told.kind, "printed": as_printed}
        of |= {"id": f"{told.variant}-{told.number}" if told.variant else f"{told.number}"}
        of |= {"paper": told.paper or one.experiment.source, "cause": claim.cause.kind if claim.cause else ""}
        of |= {"methods": list(dict.fromkeys(map(method_name, named)))}
        of |= {"measured": measured or tally_of(place.verdict for place in result.places)}
        evidence = [line.strip().removeprefix("- ") for line in claims_list([result], why=True)[1:]]
        made.append(of | {"evidence": evidence})
    return made


def _records(one: Shown) -> list[dict[str, Any]]:
    """A row for each cell with a method, for the pages of methods and of models."""
    made: list[dict[str, Any]] = []
    report, numbers = one.experiment.report, printed(one.experiment)
    for cell in one.cells:
        stated = (metric for metric in report.metrics if printed_for(cell.labels, metric, numbers))
        metric = next(stated, report.metrics[0])
        settings, value = next(iter(cell.runs.values())).settings, cell.number(metric, report.last_rounds)
        if METHOD not in settings or value is None:
            continue
        labels = {axis: label for axis, label in cell.labels.items() if label and axis != METHOD}
        rates = {key: settings[key] for key in ("local.lr", "server.lr") if key in settings}
        made.append(
            {
                "experiment": one.experiment.name,
                "title": one.experiment.title,
                "setting": _setting(one.experiment, labels),
                "metric": metric.head,
                "id": settings[METHOD],
                "method": labelled(settings[METHOD], cell.labels.get(METHOD) or settings[METHOD]),
                "model": settings.get("participation", ""),
                "mean": value.mean,
                "text": str(value),
                "seeds": ",".join(sorted(cell.runs, key=int)),
                "rounds": cell.rounds_run,
                "planned": cell.rounds,
                "rates": ", ".join(f"{key} {text}" for key, text in rates.items()),
            }
        )
    return made


def _setting(experiment: PaperExperiment, labels: Mapping[str, str]) -> str:
    titles = {("panel", name): panel.title for name, panel in experiment.panels.items()}
    return ", ".join(titles.get((axis, label)) or label_text(axis, label) for axis, label in labels.items() if label)


def _experiment(one: Shown, claims: Sequence[dict[str, Any]], ids: Mapping[str, str]) -> dict[str, Any]:
    experiment, file = one.experiment, file_of(one.name)
    first = command("enter", "METHOD", "--board", one.name) if one.experiment.is_board else command("run", one.name)
    return {
        "one": one,
        "ids": ids,
        "claims": [claim for claim in claims if claim["told"].experiment.name == experiment.name],
        "commands": f"{first}\n{command('leaderboard', one.name)}",
        "yaml": file.read_text(encoding="utf-8") if file.is_file() else "",
        "choices": experiment.choices,
        "overrides": reproduction.overrides(experiment),
    }


PAGES = Environment(
    loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
PAGES.globals |= {"method_name": method_name, "label_name": label_name, "place": _place}
PAGES.globals |= {"is_number": lambda entry: isinstance(entry, Number), "version": version("rollcall-fl")}
PAGES.globals |= {"counted": counted, "papers": PAPERS}
PAGES.filters |= {"prose": prose, "words": inline, "embedded": _embedded}
