"""Write the site: collect what is shown of every experiment, then render the pages."""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from rollcall.benchmark.config.choice import read
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment, file_of, is_number
from rollcall.benchmark.config.metric import OVER
from rollcall.benchmark.config.text import command, counted, strict_json
from rollcall.leaderboard import render
from rollcall.leaderboard.cells import Cell, cells
from rollcall.leaderboard.names import label_name, method_name, model_name, paper_of
from rollcall.leaderboard.paper.claims import VERDICTS, ClaimResult, check_claim
from rollcall.leaderboard.paper.findings import Findings
from rollcall.leaderboard.paper.quantities import estimate
from rollcall.leaderboard.paper.reported import printed, printed_for
from rollcall.leaderboard.paper.reproduction import (
    PAPERS,
    agreement,
    changes,
    judged,
    messages,
    origin,
    overrides,
)
from rollcall.leaderboard.paper.sentences import claims_list, interval, tally_of, unit_of
from rollcall.leaderboard.plots.curves import paper_figure, ranking_figure
from rollcall.leaderboard.plots.figure import Figure
from rollcall.leaderboard.ranking import METHOD, axes, rank
from rollcall.leaderboard.render import Number, Table
from rollcall.leaderboard.runs import Run
from rollcall.leaderboard.site import figures, parts
from rollcall.leaderboard.tables import long_rows, paper_table, ranking_table
from rollcall.participation import Population, recording
from rollcall.participation.streams import stream
from rollcall.participation.summary import summarise

FOLDERS = {"fedpbc": "PBC", "sun": "SUN", "focus": "FOC", "ca_fed": "CAF", "harrak": "HAR"}
"""The papers' folders of experiments."""

CLIENTS, ROUNDS, SHOWN = 30, 2000, 120
"""Clients of the example of a participation model, rounds that its statistics are of, and rounds that are drawn."""

COUPLED = {"name": "class_coupled", "sigma0": 10, "delta": 0.02}

EXAMPLES: dict[str, dict[str, Any]] = {
    "full": {},
    "bernoulli": {"probability": COUPLED, "variation": "sine"},
    "uniform": {"per_round": 6},
    "weighted": {"per_round": 6, "probability": np.linspace(0.1, 1, CLIENTS)},
    "active": {"probability": "mixture"},
    "markov": {"probability": COUPLED},
    "markov_varying": {"probability": COUPLED, "variation": "sine"},
    "markov_pi_lambda": {"probability": {"name": "two_level", "g": 0.4}, "nu": 0.9, "eps": 0.01},
    "cyclic": {"probability": COUPLED, "length": 40},
    "cyclic_reset": {"probability": COUPLED, "length": 40},
    "minimum_separation": {"groups": 10, "separation": 3, "probability": {"name": "power_law", "s": 1.5}},
    "clustered_markov": {"clusters": 3},
    "group_events": {"events": [0.7, 0.5, 0.1], "inside": 0.8, "sizes": [10, 10, 10]},
    "copula": {"probability": 0.3, "clusters": 3, "rho": 0.8},
}
"""Options of the examples. The other models need a file or a function of the user."""

ABOUT = (
    "A benchmark of federated learning when not every client answers: what five papers say, and what their experiments "
    "give when they are run again."
)


@dataclass(frozen=True)
class Shown:
    """What the pages show of an experiment.

    Attributes:
        experiment: of a paper or of the user's own.
        name: of the experiment, or the path of its file.
        cells: that were run.
        tables: a title, the table, and the cells of it that were not run; without a table if none of them was.
        claims: its claims and those of its variants, by the name of the variant.
        variants: for each that was run, its name, what it changes, and the table of differences.
        figures: with titles, and for each cost what replaces the rounds of the first data set on the x axis.
        rows: as `--json` has them.
        agreement: how many printed numbers agree, and those that differ.
    """

    experiment: Experiment
    name: str
    cells: Sequence[Cell]
    tables: Sequence[tuple[str, Table | None, int]] = ()
    claims: Sequence[tuple[str, ClaimResult]] = ()
    variants: Sequence[tuple[str, str, Table]] = ()
    figures: Sequence[tuple[str, Figure, dict[str, Any]]] = ()
    rows: Sequence[dict[str, Any]] = ()
    agreement: Sequence[str] = ()

    @property
    def runs(self) -> list[Run]:
        """The runs of its cells."""
        return [run for cell in self.cells for run in cell.runs.values()]


def collect(experiment: Experiment, name: str, own: Sequence[Run], *archives: Path) -> Shown:
    """The results of an experiment: of a paper, kept runs too; else a ranking of the user's own.

    Args:
        experiment: to show.
        name: of it, or the path of its file.
        own: the user's finished runs of it.
        archives: of kept results; none: the user's runs alone.
    """
    metrics, last_rounds = experiment.report.metrics, experiment.report.last_rounds
    if not experiment.source:
        complete = [run for run in own if run.diverged or all(run.has(metric) for metric in metrics)]
        if not complete:
            return Shown(experiment, name, [])
        ranking = rank(complete, metrics, last_rounds, axes(experiment))
        rows = long_rows(ranking.cells, metrics, last_rounds)
        drawn = _with_costs(partial(ranking_figure, ranking), True)
        return Shown(experiment, name, ranking.cells, [("", ranking_table(ranking), 0)], figures=drawn, rows=rows)
    one = judged(experiment, *archives, own=own, kept=bool(archives))
    ran, numbers = [cell for cell in one.cells if cell.runs], printed(experiment)
    tables = []
    for panel, settings in experiment.panels.items():
        inside = [cell for cell in one.cells if cell.labels["panel"] == panel]
        here = [cell for cell in inside if cell.runs]
        table = paper_table(experiment, here, numbers) if here else None
        tables.append((settings.title or panel, table, len(inside) - len(here)))
    drawn = _with_costs(partial(paper_figure, experiment, ran), experiment.report.x == "round") if ran else []
    for metric in metrics:
        rows_of = _printed_rows(ran, metric, last_rounds, numbers)
        if rows_of:
            drawn.append((f"Printed and measured: {metric.head}", figures.printed_numbers(rows_of, metric.head), {}))
    claims = [("", result) for result in one.claims]
    different = []
    for variant, settings_of in experiment.variants.items():
        changed = cells(experiment.as_(variant), one.runs)
        table = changes(variant, metrics[0], last_rounds, one.cells, changed)
        different += [(variant, settings_of.about, table)] if table.rows else []
        claims += [(variant, check_claim(claim, experiment, changed)) for claim in settings_of.claims]
    rows = long_rows(one.cells, metrics, last_rounds, numbers)
    agrees = agreement(experiment, ran, numbers) if ran else []
    return Shown(experiment, name, ran, tables, claims, different, drawn, rows, [line for line in agrees if line])


def build(folder: Path, shown: Sequence[Shown], again: str) -> int:
    """Write the pages.

    Args:
        folder: of the site; files of the same names are replaced.
        shown: the experiments.
        again: the command that writes the same pages.

    Returns:
        the number of pages.
    """
    import vl_convert

    here = Path(__file__).parent / "templates"
    pages = _Pages(folder, again)
    methods, models = parts.parts("algorithm"), parts.parts("participation")
    claims = [claim for one in shown for claim in _claims(one)]
    records = [record for one in shown for record in _records(one)]
    methods |= {one["id"]: parts.own_part(one["id"]) for one in records if one["id"] not in methods}
    of_paper = [
        result for one in shown for variant, result in one.claims if not variant and result.claim.tag == "paper"
    ]
    every = [result for one in shown for _, result in one.claims]
    told = messages(every) if len(shown) > 1 else []
    counts = Counter(result.verdict for result in of_paper)
    home = {"messages": told, "counts": {one: counts[one] for one in VERDICTS if counts[one]}, "about": ABOUT}
    pages.write("index.html", "home", home | {"shown": shown, "methods": methods, "models": models})
    pages.write("claims.html", "claims", {"claims": claims, "papers": PAPERS})
    compared = [{key: value for key, value in one.items() if key != "labels"} for one in records]
    pages.write("compare.html", "compare", {"records": compared})
    pages.write(
        "findings.html", "findings", {"told": Findings.read(), "by": {one.experiment.name: one for one in shown}}
    )
    pages.write("verdicts.html", "verdicts", {"verdicts": VERDICTS})
    for one in shown:
        pages.write(f"experiments/{one.experiment.name}.html", "experiment", _experiment(one, claims, methods))
    for name, part in methods.items():
        own = [record for record in records if record["id"] == name]
        about = {"part": part, "records": own, "limit": parts.LIMITS[part.limit], "bias": _bias(part, own)}
        pages.write(pages.place("methods", name), "method", about | {"paper": paper_of(METHOD, name)})
    for name, part in models.items():
        own = [record for record in records if record["model"] == name]
        pages.write(pages.place("participation", name), "model", {"part": part, "records": own} | _example(name))
    names = [
        (f"{one.experiment.title} ({one.experiment.name})", f"experiments/{one.experiment.name}.html") for one in shown
    ]
    names += [(f"{method_name(name)} ({name})", pages.place("methods", name)) for name in methods]
    names += [(f"{model_name(name)} ({name})", pages.place("participation", name)) for name in models]
    told_by = {one["claim"].statement: one["claim"].says for one in claims if one["claim"].statement}
    names += [(f"{statement}: {says}", f"claims.html#q={statement}") for statement, says in told_by.items()]
    _put(folder / "assets/pages.js", f"window.pages = {json.dumps(names)};\n")
    assets = {name: (here / name).read_text(encoding="utf-8") for name in ("site.css", "site.js", "LICENSES.txt")}
    for name, text in (assets | {"vega.js": vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")}).items():
        _put(folder / "assets" / name, text)
    return pages.count


class _Pages:
    """The templates, and the pages that they were rendered to."""

    def __init__(self, folder: Path, again: str) -> None:
        self.folder, self.count = folder, 0
        self.environment = Environment(
            loader=FileSystemLoader(Path(__file__).parent / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.environment.globals |= {
            "method_name": method_name,
            "model_name": model_name,
            "label_name": label_name,
            "place": self.place,
            "is_number": lambda entry: isinstance(entry, Number),
            "version": version("rollcall-fl"),
            "again": again,
            "counted": counted,
        }
        self.environment.filters |= {
            "prose": parts.prose,
            "words": parts.words,
            "embedded": _embedded,
            "packed": _packed,
            "sortable": _sortable,
        }

    @staticmethod
    def place(kind: str, name: str) -> str:
        """The path of the page of a method or participation model; names of the user's own are made plain."""
        plain = re.sub(r"[^A-Za-z0-9_]+", "-", name)
        return f"{kind}/{plain if plain == name else f'{plain[-40:]}-{sha256(name.encode()).hexdigest()[:8]}'}.html"

    def write(self, path: str, template: str, content: dict[str, Any]) -> None:
        """Render a page, with the way back to the folder as `root`."""
        root = "../" * path.count("/")
        text = self.environment.get_template(f"{template}.html").render(root=root, path=path, **content)
        _put(self.folder / path, text)
        self.count += 1


def _put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.is_symlink():  # it may lead out of the folder
        file.unlink()
    file.write_text(text, encoding="utf-8")


def _embedded(value: Any) -> Markup:
    """Plain values as JSON that may stand in a <script> element."""
    text = strict_json(value, indent=None, separators=(",", ":"))
    return Markup(text.replace("<", r"\u003c").replace("\u2028", r"\u2028").replace("\u2029", r"\u2029"))


def _packed(figure: Figure, over: Mapping[str, Sequence[Any]]) -> Markup:
    """A figure for the page's script: its specification, and its data by columns, which are smaller than rows."""
    spec = dict(figure.spec)
    data = spec.pop("datasets")
    tables = {}
    for name, rows in data.items():
        columns = {key: [row.get(key) for row in rows] for key in dict.fromkeys(key for row in rows for key in row)}
        words = {
            key: list(dict.fromkeys(column))
            for key, column in columns.items()
            if any(isinstance(one, str) for one in column)
        }
        at = {key: {one: index for index, one in enumerate(listed)} for key, listed in words.items()}
        columns |= {key: [at[key][one] for one in columns[key]] for key in words}
        tables[name] = {"columns": columns, "words": words}
    return _embedded({"spec": spec, "data": tables, "over": over})


def _sortable(entry: Any) -> str:
    """The value by which a column is sorted: a number, or the text."""
    return repr(entry.mean) if isinstance(entry, Number) else str(entry)


def _with_costs(draw: Callable[..., Figure], by_round: bool) -> list[tuple[str, Figure, dict[str, Any]]]:
    """The figure of curves, and what its points are at over gradients, floats and seconds, where these are known."""
    try:
        figure = draw()
    except SettingError:  # nothing was measured
        return []
    over: dict[str, Any] = {}
    for name in OVER if by_round else ():
        with suppress(SettingError):
            rows = draw(over=name).spec["datasets"]["long"]
            if name != "round" and len(rows) == len(figure.spec["datasets"]["long"]):
                over[name] = [row["x"] for row in rows]
    return [("Curves", figure, over)]


def _printed_rows(ran: Sequence[Cell], metric: Any, last_rounds: int, numbers: Sequence[Any]) -> list[dict[str, Any]]:
    """The means and printed numbers of the cells that have both, in the unit in which the table prints them."""
    scale, rows = 100 if metric.percent else 1, []
    for cell in ran:
        known, values = printed_for(cell.labels, metric, numbers), cell.finals(metric, last_rounds)
        if known is None or known.value is None or not np.isfinite(known.value) or cell.diverged or values.empty:
            continue
        low, high = estimate(values.to_numpy(), cell.exact).interval()
        ends = {"low": low * scale, "high": high * scale} if np.isfinite(high - low) else {}
        name = ", ".join(label_name(axis, label) for axis, label in cell.labels.items() if label)
        rows.append({"name": name, "measured": float(values.mean()) * scale, "printed": known.value * scale} | ends)
    return rows


def _claims(one: Shown) -> list[dict[str, Any]]:
    """What the list of claims and the page of the experiment show of each claim."""
    made, number = [], Counter[str]()
    for variant, result in one.claims:
        claim, unit = result.claim, unit_of(result)
        number[variant] += 1
        prefix = FOLDERS.get(one.experiment.name.partition("/")[0], "")
        paper = PAPERS.get((claim.statement or prefix)[:3], one.experiment.source)
        named = [*claim.of.get(METHOD, ()), *(claim.minus or {}).get(METHOD, ()), *(claim.over or {}).get(METHOD, ())]
        single = result.places[0] if len(result.places) == 1 else None
        percent = unit.percent * " %"
        measured = tally_of(place.verdict for place in result.places)
        if single is not None:
            measured = f"{interval(single.quantity, unit, result.level)}{percent}" if single.quantity else "no result"
        _, *evidence = claims_list([result], why=True)
        made.append(
            {
                "id": f"{f'{variant}-' if variant else ''}{number[variant]}",
                "experiment": one.experiment,
                "variant": variant,
                "claim": claim,
                "verdict": result.verdict,
                "paper": paper if claim.tag == "paper" else claim.tag,
                "methods": list(dict.fromkeys(method_name(label) for label in named)),
                "cause": claim.cause.kind if claim.cause else "",
                "printed": f"{unit.text(single.printed)}{percent}" if single and single.printed is not None else "",
                "measured": measured,
                "strip": figures.strip(result),
                "places": len(result.places),
                "evidence": [line.strip().removeprefix("- ") for line in evidence],
            }
        )  # fmt: skip
    return made


def _records(one: Shown) -> list[dict[str, Any]]:
    """A row for each cell with a method and each metric of the report: what is compared, and what its pages list."""
    made = []
    for cell in one.cells:
        settings = next(iter(cell.runs.values())).settings
        if METHOD not in settings:
            continue
        label, method = cell.labels.get(METHOD, ""), method_name(settings[METHOD])
        if label:  # one that the file gives, such as `kappa2=1`, names no method
            named = method_name(label)
            method = named if named.startswith(method) else f"{method}, {named}"
        labels = {axis: label for axis, label in cell.labels.items() if label and axis != METHOD}
        rates = {key: settings[key] for key in ("local.lr", "server.lr") if key in settings}
        others = sorted((k, v) for k, v in settings.items() if not k.startswith((METHOD, "seed", "rounds", *rates)))
        for metric in one.experiment.report.metrics:
            value = cell.number(metric, one.experiment.report.last_rounds)
            if value is None:
                continue
            made.append(
                {
                    "experiment": one.experiment.name,
                    "labels": labels,
                    "setting": _setting(labels),
                    "metric": metric.head,
                    "best": metric.direction,
                    "id": settings[METHOD],
                    "method": method,
                    "model": settings.get("participation", ""),
                    "mean": value.mean,
                    "text": str(value),
                    "seeds": ",".join(sorted(cell.runs, key=int)),
                    "rounds": cell.rounds_run,
                    "planned": cell.rounds,
                    "rates": ", ".join(f"{key} {text}" for key, text in rates.items()),
                    "same": sha256(repr(others).encode()).hexdigest()[:12],
                }
            )  # fmt: skip
    return made


def _setting(labels: Mapping[str, str]) -> str:
    """Labels in one line, a number with the name of its axis."""
    named = {axis: f"{axis.rpartition('.')[2]} {label}" for axis, label in labels.items() if is_number(label)}
    return ", ".join(named.get(axis) or label_name(axis, label) for axis, label in labels.items())


def _experiment(one: Shown, claims: Sequence[dict[str, Any]], methods: Mapping[str, parts.Part]) -> dict[str, Any]:
    """The content of the page of an experiment."""
    experiment = one.experiment
    file = file_of(one.name)
    own = [claim for claim in claims if claim["experiment"] is experiment]
    prefix = FOLDERS.get(experiment.name.partition("/")[0])
    source = {"PBC": "fedpbc", "SUN": "fedavg_debiased", "FOC": "focus", "CAF": "ca_fed", "HAR": "fedsgd_iw"}
    tex = "\n".join(render.latex(table) for _, table, _ in one.tables if table is not None)
    title = "Rollcall: federated learning with partial client participation"
    suite = f"@software{{rollcall,\n  title = {{{title}}},\n  version = {{{version('rollcall-fl')}}},\n}}"
    bibtex = "\n\n".join([*([methods[source[prefix]].bibtex] if prefix else []), suite])
    copies = {
        "Command": f"{command('run', one.name)}\n{command('leaderboard', one.name)}",
        "YAML": file.read_text(encoding="utf-8") if file.is_file() else "",
        "CSV": render.comma_separated(one.rows) if one.rows else "",
        "LaTeX": tex,
        "BibTeX": bibtex,
    }
    return {
        "one": one,
        "ids": {method_name(name): name for name in methods},
        "claims": own,
        "copies": {title: text for title, text in copies.items() if text},
        "origin": origin(one.runs) if one.runs else "",
        "choices": experiment.choices,
        "overrides": overrides(experiment),
    }


def _bias(part: parts.Part, records: Sequence[Mapping[str, Any]]) -> Figure:
    """Where a method ends on two clients, with the biases of its runs of [PBC] Fig. 2."""
    own = [one for one in records if one["experiment"] == "fedpbc/fig2" and "p2" in one["labels"]]
    return figures.bias(part.limit, [(float(one["labels"]["p2"]), one["mean"]) for one in own])


def _example(name: str) -> dict[str, Any]:
    """Statistics and figures of a participation model with 30 clients; nothing if it needs a file or a function."""
    if name not in EXAMPLES:
        return {"summary": None, "drawn": {}, "options": ""}
    nu = stream(0, "partition").dirichlet(np.full(10, 0.1), size=CLIENTS)
    model = read("participation", {"name": name} | EXAMPLES[name]).build(Population(CLIENTS, 0, nu))
    mask = recording.record(model, ROUNDS)
    drawn = {
        "Roll call": figures.roll_call(mask[:SHOWN]),
        "Autocorrelation": figures.autocorrelation(mask, model),
        "Coupling of clients": figures.coupling(mask),
    }
    written = {key: value for key, value in EXAMPLES[name].items() if not isinstance(value, np.ndarray)}
    return {"summary": summarise(model, mask), "drawn": drawn, "options": strict_json(written, indent=None)}
