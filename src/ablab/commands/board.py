"""The `board` command: a page over the store on this machine, with its runs, live curves and studies.

Dash draws it and serves all of it, scripts included, from here: nothing is fetched from elsewhere, and nothing is sent.
"""

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from logging import WARNING, getLogger
from socket import create_server
from typing import Any
from urllib.parse import quote

import dash_ag_grid as grids
from dash import Dash, Input, Output, State, dcc, html, no_update
from flask import Response, send_from_directory
from werkzeug.serving import make_server

from ablab.api import open as open_store
from ablab.api.run import Run
from ablab.api.store import Store
from ablab.commands.diff import Pair, difference
from ablab.commands.ls import Listed, listing
from ablab.commands.options import BoardOptions
from ablab.errors import DONE, UserError
from ablab.files import COLOURS
from ablab.report.figures import escaped
from ablab.tasks.conditions import near_miss
from ablab.tasks.registry import known_scores
from ablab.tasks.score import Score
from ablab.tasks.verbs import read_words
from ablab.text import have, how_many
from ablab.tracking.console import Console

BEFORE, AFTER = ("id", "state", "study", "arm", "seed"), ("ended", "name")
"""Columns of the runs, around their scores."""

DRAWN = 8
"""Runs whose curves are drawn while none is chosen: those that go on, then the newest."""

PULSE = 3.0
"""Seconds between two looks at the store, at least; ten times as long as one takes where that is more."""


def board(arguments: Sequence[str]) -> int:
    """Serve the page until Ctrl-C."""
    options, console = read_words(BoardOptions, arguments), Console()
    app = page(open_store(options.outputs))
    try:
        at = create_server(("127.0.0.1", options.port))
    except OSError as error:
        raise UserError(
            f"port={options.port}: {os.strerror(error.errno or 0)}; allowed: a free one, 0 for any"
        ) from None
    server = make_server("127.0.0.1", options.port, app.server, threaded=True, fd=at.fileno())
    getLogger("werkzeug").setLevel(WARNING)  # a line for each look would hide what matters
    console.say(f"Board of {options.outputs}: http://127.0.0.1:{server.port} (Ctrl-C ends it)")
    try:
        server.serve_forever()  # until Ctrl-C, which ends it without an error
    finally:
        at.close()
    console.say("The board has ended; the runs are as they were")
    return DONE


def page(store: Store) -> Dash:
    """Return the page over a store."""
    app = Dash("ablab", title=f"ablab: {store.path}", update_title="")
    app.layout = layout(store)

    @app.callback(
        *(Output("runs", "rowData"), Output("runs", "columnDefs"), Output("said", "children")),
        *(Output("studies", "children"), Output("pulse", "interval")),
        *(Input("where", "value"), Input("pulse", "n_intervals"), State("runs", "columnDefs")),
    )
    def look(where: str | None, _: int | None, columns: list[Any] | None) -> tuple[Any, ...]:
        began = time.perf_counter()
        try:
            runs = store.runs(where or "")
            listed = listing(runs).runs
        except UserError as error:
            return no_update, no_update, str(error), no_update, no_update
        measured = {name: score for run in runs for name, score in run.measured.items()}
        wanted = columns_of(listed, {**known_scores(), **measured})
        wait = max(PULSE, 10 * (time.perf_counter() - began))
        seen = no_update if wanted == columns else wanted
        meant = "" if listed or not where else near_miss([run.values for run in store.runs()], where)
        return [one.cells for one in listed], seen, how_many(len(listed), "run") + meant, studies(store), 1000 * wait

    @app.callback(
        *(Output("metric", "options"), Output("metric", "value"), Output("curves", "figure")),
        *(Input("runs", "selectedRows"), Input("runs", "rowData"), Input("metric", "value")),
    )
    def draw(chosen: list[Any] | None, rows: list[Any] | None, metric: str | None) -> tuple[Any, ...]:
        shown = chosen or sorted(rows or (), key=lambda row: row["state"] != "running")[:DRAWN]
        curves = [(_name(row), _curve(store, row["id"])) for row in shown]
        known = metrics_of(rows for _, rows in curves)
        metric = metric if metric in known else next((each for each in known if each.startswith("valid_")), None)
        return known, metric, figure(curves, metric or next(iter(known), ""))

    @app.callback(Output("compared", "children"), Input("runs", "selectedRows"))
    def compare(chosen: list[Any] | None) -> Any:
        if len(chosen or ()) != 2 or chosen is None:
            return "Choose two runs in the table."
        try:
            found = difference(*(store.run(row["id"]) for row in chosen))
        except UserError as error:
            return str(error)
        pairs = [*found.scores, *found.recipe, *found.elsewhere]
        return [*(html.P(note) for note in found.notes), compared(found.first, found.second, pairs)]

    def report(name: str) -> Response:
        return send_from_directory((store.path / "reports").absolute(), name)

    def run(name: str) -> Response:
        return send_from_directory((store.path / "runs" / name).absolute(), "record.json")

    app.server.add_url_rule("/reports/<path:name>", view_func=report)
    app.server.add_url_rule("/runs/<name>", view_func=run)
    return app


def layout(store: Store) -> html.Main:
    """Return what stands on the page, without what callbacks fill in."""
    return html.Main(
        [
            html.H1(f"ablab: {store.path.absolute()}", style={"fontSize": "1.2rem"}),
            dcc.Input(id="where", placeholder="norm=scalenorm layerdrop>0", debounce=True, style={"width": "30rem"}),
            html.Span(id="said", role="status", style={"marginLeft": "1rem"}),
            grids.AgGrid(
                id="runs",
                getRowId="params.data.id",
                dashGridOptions={"rowSelection": {"mode": "multiRow"}, "animateRows": False, "rowHeight": 28},
                defaultColDef={"filter": True, "sortable": True, "resizable": True},
                columnSize="autoSize",
                style={"height": "22rem"},
            ),
            html.H2("Curves of the chosen runs", style={"fontSize": "1rem"}),
            dcc.Dropdown(id="metric", clearable=False, style={"width": "16rem"}),
            dcc.Graph(id="curves", style={"height": "24rem"}),
            html.H2("Two chosen runs compared", style={"fontSize": "1rem"}),
            html.Div(id="compared"),
            html.H2("Studies", style={"fontSize": "1rem"}),
            html.Div(id="studies"),
            dcc.Interval(id="pulse", interval=1000 * PULSE),
        ],
        style={"fontFamily": "system-ui, sans-serif", "margin": "1rem"},
    )


def columns_of(listed: Sequence[Listed], known: Mapping[str, Score]) -> list[dict[str, Any]]:
    """Return the columns of a table of runs: what each is, the scores that some have, when it ended, and its name."""
    digits = {name: score.digits for name, score in known.items()}
    scores = dict.fromkeys(name for one in listed for name in one.scores)
    written = "params.value == null ? '' : d3.format('.{}f')(params.value)"
    numbers = {
        name: {
            "valueFormatter": {"function": written.format(digits.get(name, 3))},
            "filter": "agNumberColumnFilter",
        }
        for name in scores
    }
    # Without a name of its own, the header would be capitalised.
    return [{"field": name, **numbers.get(name, {}), "headerName": name} for name in (*BEFORE, *scores, *AFTER)]


def _name(row: Mapping[str, Any]) -> str:
    return f"{row['arm']}, seed {row.get('seed')}" if row.get("arm") else f"{row['id']} {row.get('name') or ''}"


def _curve(store: Store, run_id: str) -> Sequence[Mapping[str, Any]]:
    """Return what a run has measured so far; nothing of one that was removed since, or is damaged."""
    try:
        return Run(store.folder(run_id)).training_curve()
    except (UserError, OSError, ValueError):
        return []


def metrics_of(curves: Iterable[Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return the names of what these curves measure, beside their steps."""
    named = dict.fromkeys(name for rows in curves for row in rows for name in row)
    return [name for name in named if name not in ("step", "seconds")]


def figure(curves: Sequence[tuple[str, Sequence[Mapping[str, Any]]]], metric: str) -> dict[str, Any]:
    """Return the curves of one metric over steps, each with its name, as Plotly draws them."""
    traces = []
    for number, (name, rows) in enumerate(curves):
        points = [(row["step"], row[metric]) for row in rows if row.get(metric) is not None]
        steps, values = zip(*points, strict=True) if points else ((), ())
        line = {"color": COLOURS[number % len(COLOURS)], "dash": ("solid", "dash", "dot")[number // len(COLOURS) % 3]}
        traces.append(
            {"type": "scatter", "mode": "lines+markers", "name": escaped(name), "x": steps, "y": values, "line": line}
        )
    axes = {"xaxis": {"title": {"text": "step"}}, "yaxis": {"title": {"text": escaped(metric)}}}
    # What a reader has zoomed into stays while curves grow.
    return {"data": traces, "layout": {**axes, "uirevision": metric, "showlegend": True, "margin": {"t": 36}}}


def compared(first: str, second: str, pairs: Sequence[Pair]) -> html.Table:
    """Return a table of what differs between two runs."""
    cell = {"padding": ".1rem 1rem .1rem 0", "textAlign": "left"}
    head = html.Tr([html.Th(text, style=cell) for text in ("", first, second, "difference")])
    rows = []
    for pair in pairs:
        more = "" if pair.difference is None else f"{pair.difference:+.6g}"
        told = (f"{each:.6g}" if isinstance(each, float) else str(each) for each in (pair.first, pair.second))
        rows.append(html.Tr([html.Td(text, style=cell) for text in (pair.key, *told, more)]))
    return html.Table([html.Thead(head), html.Tbody(rows)])


def studies(store: Store) -> list[Any]:
    """Return a line for each study: how many of its runs have ended, and its report, where it has one."""
    if not store.studies:
        return ["None was launched here."]
    return [html.P(_study(store, name)) for name in store.studies]


def _study(store: Store, name: str) -> list[Any]:
    planned = store.of_study(name)
    if not planned:  # none is launched with nothing planned
        return [f"{name}: its runs.json cannot be read, so that its runs are not known"]
    ended = sum(Run(store.folder(each)).has_ended for each in planned)
    of_it = [f"{name}: {ended} of {how_many(len(planned), 'run')} {have(len(planned))} ended"]
    if not (store.path / "reports" / name / "report.html").exists():
        return of_it
    return [*of_it, " · ", html.A("report", href=f"/reports/{quote(name)}/report.html")]
