"use strict";
// The charts: a chart is drawn when it comes into view, the others one by one while nothing else happens, and on paper
// all of them at once. Plotly is unpacked at the first.
const places = [...document.querySelectorAll(".chart")];
const key_of = (place) => place.id.slice("chart-".length);
const charts = new Map();
const drawn = new Set();
const chosen = {};

const chart_of = (key) => {
  if (!charts.has(key)) charts.set(key, JSON.parse(document.getElementById(`data-${key}`).textContent));
  return charts.get(key);
};

// Gzip (RFC 1951, 1952) as a string. The browser's own reader only answers later, but a page that is printed in the
// instant of loading needs its charts now.
function gunzipped(packed) {
  const size = new DataView(packed.buffer, packed.length - 4).getUint32(0, true);
  const out = new Uint8Array(size);
  let [at, to, held, left] = [10, 0, 0, 0];
  const bits = (number) => {
    for (; left < number; left += 8) held |= packed[at++] << left;
    const value = held & ((1 << number) - 1);
    held >>>= number;
    left -= number;
    return value;
  };
  const code = (lengths) => {  // canonical: the number of codes of each length, and the symbols in order
    const counts = new Uint16Array(16);
    lengths.forEach((length) => { counts[length] += length > 0; });
    return { counts, symbols: [...lengths.keys()].filter((one) => lengths[one]).sort((a, b) => lengths[a] - lengths[b] || a - b) };
  };
  const symbol = ({ counts, symbols }) => {
    for (let length = 1, value = 0, first = 0, index = 0; length < 16; length++) {
      value |= bits(1);
      const count = counts[length];
      if (value - first < count) return symbols[index + value - first];
      index += count;
      first = (first + count) << 1;
      value <<= 1;
    }
    throw new Error("Plotly cannot be unpacked: the page is damaged.");
  };
  const extra = (n, step) => Math.max(0, Math.floor(n / step) - 1);
  const based = (number, start, step) => {
    const found = [start];
    for (let n = 0; n < number - 1; n++) found.push(found[n] + (1 << extra(n, step)));
    return found;
  };
  const [lengths, distances] = [based(29, 3, 4), based(30, 1, 2)];
  lengths[28] = 258;
  const trees = () => {
    const [literals, far, read] = [bits(5) + 257, bits(5) + 1, bits(4) + 4];
    const first = new Array(19).fill(0);
    [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15].slice(0, read).forEach((n) => { first[n] = bits(3); });
    const [tree, all] = [code(first), []];
    while (all.length < literals + far) {
      const next = symbol(tree);
      if (next < 16) all.push(next);
      else if (next === 16) all.push(...new Array(3 + bits(2)).fill(all.at(-1)));
      else all.push(...new Array(next === 17 ? 3 + bits(3) : 11 + bits(7)).fill(0));
    }
    return [code(all.slice(0, literals)), code(all.slice(literals))];
  };
  const fixed = () => [code(Array.from({ length: 288 }, (_, n) => (n < 144 ? 8 : n < 256 ? 9 : n < 280 ? 7 : 8))), code(new Array(30).fill(5))];
  for (let last = 0; !last;) {
    last = bits(1);
    const kind = bits(2);
    if (kind === 0) {  // as it is, from the next whole byte on
      held = left = 0;
      const count = packed[at] | (packed[at + 1] << 8);
      out.set(packed.subarray(at + 4, at + 4 + count), to);
      at += 4 + count;
      to += count;
      continue;
    }
    const [literal, distance] = kind === 1 ? fixed() : trees();
    for (let next = symbol(literal); next !== 256; next = symbol(literal)) {
      if (next < 256) out[to++] = next;
      else {
        const n = next - 257;
        const length = lengths[n] + (n < 28 ? bits(extra(n, 4)) : 0);
        const m = symbol(distance);
        const back = distances[m] + bits(extra(m, 2));
        for (let i = 0; i < length; i++, to++) out[to] = out[to - back];
      }
    }
  }
  return new TextDecoder().decode(out);
}

function plotly() {
  if (globalThis.Plotly) return;
  const script = document.createElement("script");
  const packed = atob(document.getElementById("plotly").textContent);
  script.textContent = gunzipped(Uint8Array.from(packed, (one) => one.charCodeAt(0)));
  document.head.append(script);
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
  return chart.slices[wanted in chart.slices ? wanted : chart.first] || [];
}

function filled(chart) {
  if (!chart.slices) return chart.data;
  const z = slice_of(chart);
  const text = z.map((row, i) => row.map((value, j) => `${chart.rows[i]}<br>${chart.columns[j]}<br>${value}`));
  const scale = ["--heat-low", "--heat-middle", "--heat-high"].map((name, i) => [i / 2, colour(name)]);
  const written = chart.cells ? { text: chart.cells, hovertext: text } : { text };
  return [{ ...chart.data[0], z, ...written, colorscale: scale }];
}

// Synchronous, so that printing can call it.
function draw(place) {
  plotly();
  const chart = chart_of(key_of(place));
  const size = on_paper ? paper_size(place, chart.layout) : {};
  const options = { responsive: !on_paper, displaylogo: false, displayModeBar: false };
  Plotly.react(place, filled(chart), { ...themed(chart.layout), ...size }, options);
  place.style.minHeight = "";
  drawn.add(place);
  root.dataset.drawn = drawn.size;
}

// In pixels of CSS, on A4 across: two columns, or one.
let on_paper = false;
function paper_size(place, { height = 450 }) {
  const is_half = place.closest(".charts, .panels") && !place.closest(".wide");
  return { width: is_half ? 490 : 1000, height: is_half ? Math.min(height, 330) : height };
}

const redraw = () => drawn.forEach(draw);

const seen = new IntersectionObserver((entries) => {
  const near = entries.filter((entry) => entry.isIntersecting).map((entry) => entry.target);
  near.forEach((place) => seen.unobserve(place));
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
addEventListener("load", () => setTimeout(draw_next));

root.addEventListener("theme", redraw);

for (const select of document.querySelectorAll("select[data-section]")) {
  select.addEventListener("change", () => {
    chosen[select.dataset.section] = select.value;
    redraw();
  });
}

// On paper nothing can be opened.
const open_all = () => document.querySelectorAll("details:not(.figures)").forEach((one) => { one.open = true; });
document.getElementById("print").addEventListener("click", () => print());
let theme_before;
addEventListener("beforeprint", () => {
  open_all();
  theme_before = root.dataset.theme;
  root.dataset.theme = "light";  // paper is white
  on_paper = true;
  places.forEach(draw);
});
addEventListener("afterprint", () => {
  if (theme_before) root.dataset.theme = theme_before;
  else delete root.dataset.theme;
  on_paper = false;
  redraw();
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
  const names = chart.layout.xaxis.ticktext;
  const xs = names ?? [...new Set(lines.flatMap((line) => line.x))].sort((one, other) => one - other);
  const head = [chart.layout.xaxis.title?.text ?? "", ...lines.map((line) => line.name)].map(plain);
  const at = (line, i) => (names ? i : line.x.indexOf(xs[i]));
  return [head, ...xs.map((x, i) => [names ? plain(x) : x, ...lines.map((line) => short(line.y[at(line, i)]))])];
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
