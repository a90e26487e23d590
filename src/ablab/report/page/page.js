"use strict";
const root = document.documentElement;
const charts = JSON.parse(document.getElementById("charts").textContent);
const remembered = (() => { try { return localStorage.getItem("theme"); } catch { return null; } })();
const preferred = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
root.dataset.theme = remembered || preferred;

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

const chosen = {};

function filled(chart) {
  if (!chart.slices) return chart.data;
  const wanted = chosen[chart.section];
  const z = (wanted in chart.slices ? chart.slices[wanted] : Object.values(chart.slices)[0]) || [];
  const text = z.map((row, i) => row.map((value, j) => `${chart.rows[i]}<br>${chart.columns[j]}<br>${value}`));
  const scale = ["--heat-low", "--heat-middle", "--heat-high"].map((name, i) => [i / 2, colour(name)]);
  const written = chart.cells ? { text: chart.cells, hovertext: text } : { text };
  return [{ ...chart.data[0], z, ...written, colorscale: scale }];
}

function draw() {
  for (const [key, chart] of Object.entries(charts)) {
    const place = document.getElementById(`chart-${key}`);
    Plotly.react(place, filled(chart), themed(chart.layout), { responsive: true, displaylogo: false, displayModeBar: false });
  }
  root.dataset.drawn = Object.keys(charts).length;
}

document.getElementById("theme").addEventListener("click", () => {
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch { /* opened where nothing can be kept */ }
  draw();
});

for (const select of document.querySelectorAll("select[data-section]")) {
  select.addEventListener("change", () => {
    chosen[select.dataset.section] = select.value;
    draw();
  });
}

// On paper nothing can be opened.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));

const figure = (text) => {
  const found = text.replaceAll(",", "").match(/[-+]?\d+(\.\d+)?/);
  return found ? Number(found[0]) : null;
};

for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  table.querySelectorAll("th button").forEach((button, column) => {
    button.addEventListener("click", () => {
      const head = button.parentElement;
      const rising = head.getAttribute("aria-sort") !== "ascending";
      table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", rising ? "ascending" : "descending");
      const words = head.classList.contains("word");
      const key = (row) => (words ? row.cells[column].textContent.trim() : figure(row.cells[column].textContent));
      const rows = [...body.rows].sort((one, other) => {
        const [a, b] = [key(one), key(other)];
        if (a === b) return 0;
        if (a === null) return 1;
        if (b === null) return -1;
        const order = words ? a.localeCompare(b, undefined, { numeric: true }) : a - b;
        return rising ? order : -order;
      });
      body.append(...rows);
    });
  });
}

for (const input of document.querySelectorAll("input.filter")) {
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of document.getElementById(input.dataset.table).tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !wanted.every((word) => text.includes(word));
    }
  });
}

draw();
