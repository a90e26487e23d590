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

const packed = () => Uint8Array.from(atob(document.getElementById("plotly").textContent), (one) => one.charCodeAt(0));

function run(text) {
  if (globalThis.Plotly) return;
  const script = document.createElement("script");
  script.textContent = text;
  document.head.append(script);
}

let engine;
function plotly() {
  engine ??= (async () => {
    const unpacked = new Blob([packed()]).stream().pipeThrough(new DecompressionStream("deflate"));
    run(await new Response(unpacked).text());
  })();
  return engine;
}

// The same at once, for a page that is printed before it has been unpacked: the browser's own way cannot be waited for.
// RFC 1951 within RFC 1950.
function inflated(bytes) {
  let at = 2, left = 0, held = 0, out = new Uint8Array(8 * bytes.length), size = 0;
  const bits = (count) => {
    while (left < count) { held |= bytes[at++] << left; left += 8; }
    const value = held & ((1 << count) - 1);
    held >>>= count;
    left -= count;
    return value;
  };
  const room = (more) => {
    if (size + more <= out.length) return;
    const wider = new Uint8Array(2 * (out.length + more));
    wider.set(out);
    out = wider;
  };
  // Codes in the order of their lengths, and among equal ones of their symbols (section 3.2.2).
  const codes = (lengths) => {
    const counts = new Array(16).fill(0), symbols = [];
    lengths.forEach((length) => { counts[length] += 1; });
    counts[0] = 0;
    for (let length = 1; length < 16; length++) lengths.forEach((one, symbol) => { if (one === length) symbols.push(symbol); });
    return { counts, symbols };
  };
  const next = ({ counts, symbols }) => {
    for (let length = 1, code = 0, first = 0, index = 0; length < 16; length++) {
      code = (code << 1) | bits(1);
      first <<= 1;
      if (code - first < counts[length]) return symbols[index + code - first];
      index += counts[length];
      first += counts[length];
    }
    throw new Error("no code of deflate");
  };
  const ranges = (start, extras) => extras.map((extra) => { const from = start; start += 1 << extra; return [from, extra]; });
  const steps = (count, each, from = 0) => Array.from({ length: count }, (_, i) => Math.max(0, Math.floor(i / each) - from));
  const copies = [...ranges(3, steps(28, 4, 1)), [258, 0]], backs = ranges(1, steps(30, 2, 1));
  const fixed = [
    codes(Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8))), codes(new Array(30).fill(5)),
  ];
  const told = () => {
    const [literals, distances, count] = [bits(5) + 257, bits(5) + 1, bits(4) + 4];
    const order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15], lengths = new Array(19).fill(0);
    for (let i = 0; i < count; i++) lengths[order[i]] = bits(3);
    const of_lengths = codes(lengths), all = [];
    while (all.length < literals + distances) {
      const symbol = next(of_lengths);
      if (symbol < 16) all.push(symbol);
      else if (symbol === 16) all.push(...new Array(3 + bits(2)).fill(all.at(-1)));
      else all.push(...new Array(symbol === 17 ? 3 + bits(3) : 11 + bits(7)).fill(0));
    }
    return [codes(all.slice(0, literals)), codes(all.slice(literals))];
  };
  for (let is_last = 0; !is_last;) {
    is_last = bits(1);
    const kind = bits(2);
    if (kind === 0) {
      left = held = 0;
      const count = bytes[at] | (bytes[at + 1] << 8);
      room(count);
      out.set(bytes.subarray(at + 4, at + 4 + count), size);
      size += count;
      at += 4 + count;
      continue;
    }
    const [of_literals, of_distances] = kind === 1 ? fixed : told();
    for (let symbol = next(of_literals); symbol !== 256; symbol = next(of_literals)) {
      room(258);
      if (symbol < 256) { out[size++] = symbol; continue; }
      const [from, extra] = copies[symbol - 257], count = from + bits(extra);
      const [start, more] = backs[next(of_distances)], back = start + bits(more);
      for (let i = 0; i < count; i++, size++) out[size] = out[size - back];
    }
  }
  return out.subarray(0, size);
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

// Synchronous, so that printing can call it; only once Plotly is there. `paper`: as wide as a page or half of it, whatever the window.
function draw(place, paper = false) {
  const chart = chart_of(key_of(place)), layout = themed(chart.layout);
  if (paper) Object.assign(layout, { width: place.closest(".charts, .panels") ? 500 : 1000, autosize: false });
  Plotly.react(place, filled(chart), layout, { responsive: !paper, displaylogo: false, displayModeBar: false });
  place.style.minHeight = "";
  drawn.add(place);
  root.dataset.drawn = drawn.size;
}

const redraw = () => drawn.forEach((place) => draw(place));

const seen = new IntersectionObserver(async (entries) => {
  const near = entries.filter((entry) => entry.isIntersecting).map((entry) => entry.target);
  if (!near.length) return;
  near.forEach((place) => seen.unobserve(place));
  await plotly();
  near.forEach((place) => draw(place));
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
  if (places.length) run(globalThis.Plotly ? "" : new TextDecoder().decode(inflated(packed())));
  places.forEach((place) => draw(place, true));
});
addEventListener("afterprint", () => {
  if (theme_before) root.dataset.theme = theme_before;
  else delete root.dataset.theme;
  drawn.forEach((place) => Plotly.purge(place));  // it would stay as wide as on paper
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
