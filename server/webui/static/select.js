// Rows: a cursor that j and k move, ticks, and the bar of what can be done to those that are ticked.
const table = document.querySelector("table[data-rows]");
const bulk = document.getElementById("bulk");
const ticked = new Set();
let at = null; // id of the row at the cursor
let from = null; // where a range begins

export const rows = () => (table ? [...table.tBodies[0].rows].filter((r) => r.id) : []);
export const row = () => at && document.getElementById(at);
export const selected = () => [...ticked];
const idOf = (r) => r.dataset.id;

export function move(by) {
  const all = rows();
  if (!all.length) return false;
  const i = all.findIndex((r) => r.id === at);
  const next = all[i < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(i + by, 0), all.length - 1)];
  at = next.id;
  paint();
  next.scrollIntoView({ block: "nearest" });
  return true;
}
export function open() {
  const a = row()?.querySelector("a[data-open]");
  if (a) a.click();
  return !!a;
}
export function toggle(r = row(), on) {
  if (!r || !bulk) return;
  const id = idOf(r);
  if (on ?? !ticked.has(id)) ticked.add(id); else ticked.delete(id);
  from = r.id;
  paint();
}
export function range(r = row()) {
  const all = rows(), a = all.findIndex((x) => x.id === from), b = all.indexOf(r);
  if (a < 0 || b < 0) return toggle(r, true);
  for (const x of all.slice(Math.min(a, b), Math.max(a, b) + 1)) ticked.add(idOf(x));
  paint();
}
export function clear() {
  const had = ticked.size > 0 || at !== null;
  ticked.clear();
  at = from = null;
  paint();
  return had;
}

function paint() {
  const states = new Set();
  for (const r of rows()) {
    const on = ticked.has(idOf(r));
    r.setAttribute("aria-selected", on);
    if (on) for (const s of (r.dataset.can || "").split(" ")) states.add(s);
    r.classList.toggle("cursor", r.id === at);
    const box = r.querySelector("input.cb");
    if (box) box.checked = on;
  }
  const all = document.getElementById("tick-all");
  if (all) {
    all.checked = ticked.size > 0 && ticked.size >= rows().length;
    all.indeterminate = ticked.size > 0 && !all.checked;
  }
  if (!bulk) return;
  bulk.hidden = ticked.size === 0;
  document.getElementById("main").classList.toggle("has-bulk", ticked.size > 0);
  const count = document.getElementById("bulk-count");
  const words = `${ticked.size} selected`;
  if (count.textContent !== words) count.textContent = words;
  // Only what fits at least one of the selected is offered.
  for (const b of bulk.querySelectorAll("[data-verb]")) b.hidden = !states.has(b.dataset.verb);
}

// A job knows its neighbours in the list that it was opened from.
const list = "pawl-list";
if (table?.matches(".c-jobs")) sessionStorage.setItem(list, JSON.stringify(rows().map((r) => r.querySelector("a[data-open]").getAttribute("href"))));
else {
  const all = JSON.parse(sessionStorage.getItem(list) || "[]"), i = all.indexOf(location.pathname);
  for (const [name, to] of [["previous", all[i - 1]], ["next", all[i + 1]]]) {
    const a = document.querySelector(`a[data-step="${name}"]`);
    if (a && i >= 0 && to) { a.href = to; a.hidden = false; }
  }
}
// The log is followed until somebody scrolls up or presses f.
const log = document.getElementById("log");
let follows = !!document.querySelector("[data-follow]");
const follow = () => { if (follows && log) log.scrollTop = log.scrollHeight; };
addEventListener("click", (e) => {
  const b = e.target.closest?.("[data-follow]");
  if (b) { follows = !follows; b.setAttribute("aria-pressed", follows); follow(); }
});
addEventListener("htmx:sseMessage", (e) => { if (e.target.id === "log") follow(); });
follow();

if (table) {
  table.addEventListener("click", (e) => {
    const box = e.target.closest("input.cb");
    if (!box) return;
    if (box.id === "tick-all") {
      for (const r of rows()) if (box.checked) ticked.add(idOf(r)); else ticked.delete(idOf(r));
      return paint();
    }
    const r = box.closest("tr");
    if (e.shiftKey) range(r); else toggle(r, box.checked);
  });
  // A click on a row opens it, unless something in it was meant.
  table.addEventListener("click", (e) => {
    if (e.defaultPrevented || e.target.closest("a, button, input, form, summary") || String(getSelection())) return;
    const r = e.target.closest("tr");
    if (!r?.id) return;
    if (document.querySelector("main.selecting")) return toggle(r);
    at = r.id;
    open();
  });
  // On phones ticks are shown when they are wanted.
  document.querySelector("[data-selecting]")?.addEventListener("click", (e) => {
    const on = document.getElementById("main").classList.toggle("selecting");
    e.target.setAttribute("aria-pressed", on);
    e.target.textContent = on ? "Done" : "Select";
    if (!on) clear();
  });
  addEventListener("pawl:done", clear);
  addEventListener("htmx:sseMessage", paint);
  addEventListener("pageshow", paint);
}
if (bulk) {
  bulk.addEventListener("click", (e) => {
    const b = e.target.closest("[data-verb], [data-all]");
    if (!b) return;
    e.preventDefault();
    ask(b.dataset.ask, b.hasAttribute("data-all"));
  });
  document.getElementById("bulk-clear")?.addEventListener("click", clear);
}
// ask opens the dialog of an action: for the ticked rows, or for all that match.
export function ask(url, all) {
  const body = new URLSearchParams();
  if (!all) for (const id of ticked) body.append("ids", id);
  const target = url + (url.includes("?") ? "&" : "?") + body;
  htmx.ajax("GET", target, { target: "#dialog", swap: "innerHTML" });
}
export function askVerb(verb) {
  const b = bulk?.querySelector(`[data-verb="${verb}"]`);
  if (b && ticked.size && !b.hidden) { ask(b.dataset.ask); return true; }
  return false;
}
export function askAll() {
  const b = document.querySelector("[data-all]");
  if (b) ask(b.dataset.ask, true);
  return !!b;
}
