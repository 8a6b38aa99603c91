// One stream for the page that is seen. The extension of htmx swaps; this keeps the connection, and says so when it is lost.
import { now, second, setClock, stop, tick } from "./times.js";

const quiet = 12_000; // without a byte: lost
const hiddenFor = 10_000; // then the stream is closed: browsers allow six
const bar = document.getElementById("conn");
const mark = document.getElementById("live");
const main = document.getElementById("main");

class Feed {
  constructor(url) {
    this.url = url;
    this.readyState = 0;
    this.names = new Map();
    this.failed = 0;
    this.lostAt = 0;
    this.heard = Date.now();
    this.missed = new Set();
    this.addEventListener("beat", (e) => setClock(JSON.parse(e.data).now));
    this.open();
    this.watch = setInterval(() => this.look(), 1000);
    document.addEventListener("visibilitychange", () => this.seen());
  }
  addEventListener(name, listener) {
    if (!this.names.has(name)) {
      this.names.set(name, new Set());
      this.source?.addEventListener(name, (e) => this.hear(name, e));
    }
    this.names.get(name).add(listener);
  }
  removeEventListener(name, listener) { this.names.get(name)?.delete(listener); }
  hear(name, e) {
    this.heard = Date.now();
    if (this.failed || this.lostAt) this.again();
    for (const listener of [...this.names.get(name)]) listener(e);
  }
  open() {
    this.source?.close();
    this.next = 0;
    this.heard = Date.now();
    const source = (this.source = new EventSource(this.url));
    for (const name of this.names.keys()) source.addEventListener(name, (e) => this.hear(name, e));
    source.onopen = () => { this.readyState = 1; this.heard = Date.now(); this.onopen?.(); if (!this.lostAt) say("on", "Live"); };
    source.onerror = () => { if (source === this.source) this.lose(); };
  }
  // A stream that ended comes back at once; only when that fails it is lost.
  lose() {
    this.source.close();
    this.failed++;
    if (this.failed > 1 && !this.lostAt) {
      this.lostAt = now();
      stop(true);
      main.classList.add("stale");
      say("off", `Not live since ${second(this.lostAt)}`);
    }
    this.next = Date.now() + (this.failed === 1 ? 500 : Math.min(15_000, 1000 * 2 ** Math.min(this.failed - 1, 4)));
    this.show();
  }
  again() {
    const was = this.lostAt;
    this.failed = this.lostAt = 0;
    say("on", "Live");
    if (!was) return;
    main.classList.remove("stale");
    stop(false);
    bar.classList.add("back");
    bar.replaceChildren("Live again.");
    setTimeout(() => { if (!this.lostAt) { bar.hidden = true; bar.classList.remove("back"); } }, 2000);
  }
  look() {
    if (this.closed) return;
    if (this.next) {
      if (Date.now() >= this.next) this.open();
      else this.show();
    } else if (Date.now() - this.heard > quiet) { this.failed++; this.lose(); } else this.catchUp();
  }
  // What a region missed while somebody used it comes with a new stream, which begins with all there is.
  catchUp() {
    const free = [...this.missed].filter((region) => !region.isConnected || !used(region));
    for (const region of free) this.missed.delete(region);
    if (free.some((region) => region.isConnected)) this.open();
  }
  show() {
    if (!this.lostAt) return;
    bar.classList.remove("back");
    if (!bar.querySelector("button")) {
      const button = Object.assign(document.createElement("button"), { className: "btn s", textContent: "Try now", type: "button" });
      button.onclick = () => this.open();
      bar.replaceChildren(document.createElement("span"), button);
    }
    const left = Math.max(1, Math.ceil((this.next - Date.now()) / 1000));
    bar.firstChild.textContent = `Connection lost at ${second(this.lostAt)}. You see what was true then; next try in ${left} s.`;
    bar.hidden = false;
  }
  seen() {
    clearTimeout(this.hiding);
    if (document.hidden) this.hiding = setTimeout(() => { this.closed = true; this.source.close(); }, hiddenFor);
    else if (this.closed) { this.closed = false; this.open(); }
  }
  close() { clearInterval(this.watch); this.closed = true; this.source.close(); this.readyState = 2; }
}

function say(how, words) {
  mark.className = `live ${how}`;
  if (mark.lastElementChild.textContent !== words) mark.lastElementChild.textContent = words;
}

htmx.createEventSource = (url) => (window.pawlFeed = new Feed(url));

// chosenIn tells whether text of a place is selected. The browser is asked when that changes, not for each row that is replaced: it lays
// the whole page out to answer.
let chosen = null;
document.addEventListener("selectionchange", () => {
  const selection = getSelection();
  chosen = selection && !selection.isCollapsed ? selection.anchorNode : null;
});
export const chosenIn = (place) => place.contains(chosen);

// Nothing that somebody uses is taken away: a form that is filled in, an open menu, a selection of text.
function used(region) {
  const at = document.activeElement;
  return region.querySelector("[data-editing], details[open] .menu, details[open] .sheet") ||
    chosenIn(region) ||
    (region.contains(at) && /^(INPUT|SELECT|TEXTAREA)$/.test(at.tagName) && at.type !== "checkbox");
}
addEventListener("htmx:sseBeforeMessage", (e) => {
  if (!used(e.target)) return;
  e.preventDefault();
  window.pawlFeed?.missed.add(e.target);
});
// The extension's own errors are not news: the bar tells.
addEventListener("pagehide", () => window.pawlFeed?.source?.close());
addEventListener("pageshow", (e) => { if (e.persisted) { window.pawlFeed?.open(); tick(); } });
