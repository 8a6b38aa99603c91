// The keyboard. Single keys do nothing in inputs, and can be switched off in the settings.
import { askAll, askVerb, clear, move, open, range, row, toggle } from "./select.js";
import { setZone, toggleTheme, utc } from "./times.js";

const root = document.documentElement;
let going = 0;

const click = (selector, within = document) => { const el = within?.querySelector(selector); el?.click(); return !!el; };
// act does what a key does to the selection, to the row at the cursor, or to the job of the page.
const act = (key, verb) => askVerb(verb) || click(`[data-act="${key}"]`, row()) || (!document.querySelector("table[data-rows]") && click(`[data-act="${key}"]`)) ||
  (row() && (toggle(row(), true), askVerb(verb)));

function find() {
  const input = document.querySelector("[data-filter]");
  if (!input) return click('[data-key="/"]');
  input.focus();
  input.select?.();
}

const keys = {
  "/": find,
  "?": () => document.getElementById("help").showModal(),
  j: () => move(1) || click('[data-step="next"]'),
  k: () => move(-1) || click('[data-step="previous"]'),
  Enter: open,
  x: () => toggle(),
  X: () => range(),
  "*": askAll,
  r: () => act("r", "retry"),
  c: () => act("c", "cancel"),
  "#": () => act("#", "delete"),
  p: () => click('[data-act="p"]', row() || document.querySelector("[data-current]")) || (!document.querySelector("table[data-rows]") && click('[data-act="p"]')),
  "[": () => click('[data-step="newer"]'),
  "]": () => click('[data-step="older"]'),
  ".": () => click("[data-newer]"),
  z: () => setZone(utc() ? "local" : "utc"),
  t: toggleTheme,
  f: () => click("[data-follow]"),
  y: () => click("[data-copy-id]"),
  Escape: () => {
    const menu = document.querySelector("details.pick[open], details.more[open]");
    if (menu) { menu.open = false; return; }
    const toast = document.querySelector("#toasts .toast");
    if (clear()) return;
    if (toast) toast.remove();
  },
};
for (let i = 1; i <= 6; i++) keys[i] = () => click(`[data-range="${i}"]`);

addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || e.isComposing) return;
  const el = e.target;
  const typing = el.matches?.("input:not([type=checkbox]), select, textarea, [contenteditable]");
  if (typing) { if (e.key === "Escape") el.blur(); return; }
  if (document.querySelector("dialog[open]")) return;
  if (root.dataset.keys === "off" && e.key.length === 1) return;
  if (Date.now() < going) {
    going = 0;
    if (/^[a-z]$/.test(e.key) && click(`[data-go="${e.key}"]`)) e.preventDefault();
    return;
  }
  if (e.key === "g") { going = Date.now() + 1500; return; }
  if (e.key === "Enter" && el.closest("a, button, summary, input")) return;
  const does = keys[e.key];
  if (does) { if (e.key !== "Enter" || row()) e.preventDefault(); does(); }
});
