"""Tables of results from elsewhere, and what a report says of them."""

import json

from tests.report.conftest import typed

ROWS = [f"{arm},{seed},score,{mean + seed / 10}" for arm, mean in (("a", 1.0), ("b", 2.0)) for seed in (1, 2, 3)]
WIDE = ["pre,1,71.2", "pre,2,71.9", "pre,3,71.4", "post,1,73.2", "post,2,73.0", "post,3,73.9"]


def table(folder, rows, columns="arm,seed,metric,value", about=None):
    path = folder / "results.csv"
    path.write_text("\n".join([columns, *rows, ""]))
    if about is not None:
        (folder / "results.yaml").write_text(about)
    return path


def reported_from(path, *words):
    code, out, err = typed(f"table={path}", f"outputs={path.parent / 'outputs'}", "resamples=1000", *words)
    assert (code, err) == (0, ""), err
    (folder,) = (path.parent / "outputs" / "reports").iterdir()
    return json.loads((folder / "report.json").read_text()), out, folder
