"use strict";
// The page without its charts: theme, tables, printing.
const root = document.documentElement;
root.classList.add("scripted");
const remembered = (() => { try { return localStorage.getItem("theme"); } catch { return null; } })();
if (remembered) root.dataset.theme = remembered;
const is_dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

document.getElementById("theme").addEventListener("click", () => {
  root.dataset.theme = is_dark() ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch { /* opened where nothing can be kept */ }
  root.dispatchEvent(new Event("theme"));
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => root.dispatchEvent(new Event("theme")));

for (const button of document.querySelectorAll(".show-all")) {
  button.addEventListener("click", () => {
    const before = button.previousElementSibling;
    (before.matches(".cut") ? before : before.querySelector(".cut")).classList.add("whole");
  });
}

// A link into something that is folded opens it, also the second time and where it led to the page.
const unfold = (hash) => {
  const target = document.getElementById(decodeURIComponent(hash.slice(1)));
  if (target?.matches("details")) target.open = true;
};
addEventListener("hashchange", () => unfold(location.hash));
document.addEventListener("click", (event) => unfold(event.target.closest("a")?.hash ?? ""));
unfold(location.hash);

const SECONDS = { s: 1, min: 60, h: 3600 };
const figure = (text) => {
  const typed = text.replaceAll(",", "").replaceAll("\u2212", "-").trim();
  if (/^(\d+ (h|min|s) ?)+$/.test(typed)) {
    return [...typed.matchAll(/(\d+) (h|min|s)/g)].reduce((sum, [, count, unit]) => sum + count * SECONDS[unit], 0);
  }
  const found = typed.match(/[-+]?\d+(\.\d+)?(e[-+]?\d+)?/i);
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
    const body = document.getElementById(input.dataset.table).tBodies[0];
    if (wanted.length) body.classList.add("whole");
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !wanted.every((word) => text.includes(word));
    }
  });
}
