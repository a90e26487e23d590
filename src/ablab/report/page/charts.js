"use strict";
// The charts: Plotly is unpacked once the page has loaded. A chart is drawn when it comes into view, and the others one
// by one while nothing else happens, so that they are there on paper.
const places = [...document.querySelectorAll(".chart")];
const key_of = (place) => place.id.slice("chart-".length);
const charts = new Map();
const drawn = new Set();
const chosen = {};

const chart_of = (key) => {
  if (!charts.has(key)) charts.set(key, JSON.parse(document.getElementById(`data-${key}`).textContent));
  return charts.get(key);
};

let engine;
function plotly() {
  engine ??= (async () => {
    const packed = Uint8Array.from(atob(document.getElementById("plotly").textContent), (one) => one.charCodeAt(0));
    const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    const script = document.createElement("script");
    script.textContent = await new Response(unpacked).text();
    document.head.append(script);
  })();
  return engine;
}

const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();

function themed(layout) {
  const axis = { gridcolor: colour("--line"), zerolinecolor: colour("--soft"), linecolor: colour("--line") };
  const narrow = window.innerWidth < 640;
  return {
    ...layout,
    title: { ...layout.title, font: { size: 15 } },
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("--ink") },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 60, r: narrow ? 8 : 20, t: 48, b: 50, ...layout.margin },
    hoverlabel: { bgcolor: colour("--panel"), font: { color: colour("--ink") } },
    xaxis: { ...axis, automargin: true, ...layout.xaxis }, yaxis: { ...axis, automargin: true, ...layout.yaxis },
  };
}

function slice_of(chart) {
  const wanted = chosen[chart.section];
  return (wanted in chart.slices ? chart.slices[wanted] : Object.values(chart.slices)[0]) || [];
}

function filled(chart) {
  if (!chart.slices) return chart.data;
  const z = slice_of(chart);
  const text = z.map((row, i) => row.map((value, j) => `${chart.rows[i]}<br>${chart.columns[j]}<br>${value}`));
  const scale = ["--heat-low", "--heat-middle", "--heat-high"].map((name, i) => [i / 2, colour(name)]);
  const written = chart.cells ? { text: chart.cells, hovertext: text } : { text };
  return [{ ...chart.data[0], z, ...written, colorscale: scale }];
}

// Synchronous, so that printing can call it; only once Plotly is there.
function draw(place) {
  const chart = chart_of(key_of(place));
  Plotly.react(place, filled(chart), themed(chart.layout), { responsive: true, displaylogo: false, displayModeBar: false });
  place.style.minHeight = "";
  drawn.add(place);
  root.dataset.drawn = drawn.size;
}

const redraw = () => drawn.forEach(draw);

const seen = new IntersectionObserver(async (entries) => {
  const near = entries.filter((entry) => entry.isIntersecting).map((entry) => entry.target);
  if (!near.length) return;
  near.forEach((place) => seen.unobserve(place));
  await plotly();
  near.forEach(draw);
}, { rootMargin: "200px" });
places.forEach((place) => seen.observe(place));

// A chart within a section that is folded has no width yet.
const is_wanted = (place) => !drawn.has(place) && place.getClientRects().length > 0;
function draw_next() {
  const next = places.find(is_wanted);
  if (!next) return;
  draw(next);
  setTimeout(draw_next);
}
addEventListener("load", async () => {
  if (!places.some(is_wanted)) return;
  await plotly();
  draw_next();
});

root.addEventListener("theme", redraw);

for (const select of document.querySelectorAll("select[data-section]")) {
  select.addEventListener("change", () => {
    chosen[select.dataset.section] = select.value;
    redraw();
  });
}

// On paper nothing can be opened.
const open_all = () => document.querySelectorAll("details:not(.figures)").forEach((one) => { one.open = true; });
document.getElementById("print").addEventListener("click", async () => {
  if (places.length) await plotly();
  print();
});
let theme_before;
addEventListener("beforeprint", () => {
  open_all();
  theme_before = root.dataset.theme;
  root.dataset.theme = "light";  // paper is white
  if (globalThis.Plotly) places.forEach(draw);
});
addEventListener("afterprint", () => {
  if (theme_before) root.dataset.theme = theme_before;
  else delete root.dataset.theme;
  if (globalThis.Plotly) redraw();
});

// The figures of a chart as a table, made when somebody opens it.
const plain = (html) => html.replaceAll("<br>", ", ").replaceAll("&lt;", "<").replaceAll("&amp;", "&");
const short = (value) => (typeof value === "number" ? String(Number(value.toPrecision(5))) : value ?? "");

function figures(chart) {
  if (chart.slices) {
    const body = slice_of(chart).map((row, i) => [plain(chart.rows[i]), ...row.map(short)]);
    return [["", ...chart.columns.map(plain)], ...body];
  }
  const said = chart.data.filter((one) => one.customdata);
  if (said.length) return [["differences"], ...said.flatMap((one) => one.customdata.map((text) => [plain(text)])).reverse()];
  const lines = chart.data.filter((one) => one.name);
  const rows = Math.max(...lines.map((line) => line.x.length));
  const longest = lines.find((line) => line.x.length === rows);
  const names = chart.layout.xaxis.ticktext;
  const head = [chart.layout.xaxis.title?.text ?? "", ...lines.map((line) => line.name)];
  const at = (line, i) => (names ? i : line.x.indexOf(longest.x[i]));
  return [head, ...longest.x.map((x, i) => [names ? plain(names[i]) : x, ...lines.map((line) => short(line.y[at(line, i)]))])];
}

for (const place of document.querySelectorAll("details.figures")) {
  place.addEventListener("toggle", () => {
    if (!place.open) return;
    place.querySelector(".scroll")?.remove();
    const [head, ...rows] = figures(chart_of(place.dataset.chart));
    const table = document.createElement("table");
    const line = (kind, cells, into) => {
      const row = into.insertRow();
      cells.forEach((text, i) => {
        const cell = document.createElement(kind);
        cell.textContent = text;
        cell.dataset.label = head[i];
        row.append(cell);
      });
    };
    line("th", head, table.createTHead());
    const body = table.createTBody();
    rows.forEach((row) => line("td", row, body));
    const scroll = document.createElement("div");
    scroll.className = "scroll";
    scroll.tabIndex = 0;
    scroll.append(table);
    place.append(scroll);
  });
}
