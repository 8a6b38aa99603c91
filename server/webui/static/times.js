// Times go on by themselves, by the store's clock, in the zone that was chosen. Words as in format.go.
const root = document.documentElement;
let offset = Number(root.dataset.now) - Date.now();
let still = false;

export const now = () => Date.now() + offset;
export function setClock(ms) { offset = ms - Date.now(); }
export function stop(on) { still = on; if (!on) tick(); }

const pad = (n, w = 2) => String(n).padStart(w, "0");
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
export const utc = () => root.dataset.zone === "utc";

function parts(ms, inUTC = utc()) {
  const d = new Date(ms);
  return inUTC
    ? { y: d.getUTCFullYear(), mo: d.getUTCMonth(), d: d.getUTCDate(), h: d.getUTCHours(), mi: d.getUTCMinutes(), s: d.getUTCSeconds(), ms: d.getUTCMilliseconds() }
    : { y: d.getFullYear(), mo: d.getMonth(), d: d.getDate(), h: d.getHours(), mi: d.getMinutes(), s: d.getSeconds(), ms: d.getMilliseconds() };
}
const day = (ms) => { const p = parts(ms); return Date.UTC(p.y, p.mo, p.d) / 864e5; };
export const minute = (ms) => { const p = parts(ms); return `${pad(p.h)}:${pad(p.mi)}`; };
export const second = (ms) => `${minute(ms)}:${pad(parts(ms).s)}`;
function dated(ms) {
  const p = parts(ms), y = parts(now()).y === p.y ? "" : ` ${p.y}`;
  return `${p.d} ${months[p.mo]}${y} ${minute(ms)}`;
}
export const short = (ms, span) => (span > 2 * 864e5 ? `${parts(ms).d} ${months[parts(ms).mo]}` : minute(ms));

export function age(ms) {
  const s = Math.abs(ms) / 1000;
  if (s < 10) return `${(Math.floor(s * 10) / 10).toFixed(1)} s`;
  if (s < 60) return `${Math.floor(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) {
    const h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60;
    return m === 0 || h >= 10 ? `${h} h` : `${h} h ${m} min`;
  }
  return `${Math.floor(s / 86400)} d`;
}

function relative(ms) {
  const d = ms - now(), H = 36e5;
  if ((d > 24 * H && day(ms) - day(now()) === 1) || (d > 12 * H && d <= 24 * H && day(ms) !== day(now()))) return `tomorrow ${minute(ms)}`;
  if (d > 24 * H || d < -720 * H) return dated(ms);
  if (d >= 100) return `in ${age(d)}`;
  if (d > -1000) return "now";
  if (d > -60000) return `${Math.floor(-d / 1000)} s ago`;
  return `${age(d)} ago`;
}

const how = {
  ago: relative,
  for: (ms) => age(now() - ms),
  due: (ms) => (ms > now() ? relative(ms) : "now"),
  left: (ms) => (ms - now() >= 1000 ? age(ms - now()) : "< 1 s"),
  at: (ms) => (day(ms) === day(now()) ? second(ms) : dated(ms)),
  ms: (ms) => `${second(ms)}.${pad(parts(ms).ms, 3)}`,
};

function write(el) {
  const ms = Date.parse(el.dateTime), words = how[el.dataset.t];
  if (!words || Number.isNaN(ms)) return;
  const text = words(ms);
  if (el.firstChild && el.firstChild.nodeType === 3) {
    if (el.firstChild.data !== text) el.firstChild.data = text;
  } else el.textContent = text;
}

function title(el) {
  const ms = Date.parse(el.dateTime);
  if (Number.isNaN(ms) || el.dataset.both) return;
  el.dataset.both = "1";
  const u = parts(ms, true), l = parts(ms, false);
  const full = (p) => `${p.y}-${pad(p.mo + 1)}-${pad(p.d)} ${pad(p.h)}:${pad(p.mi)}:${pad(p.s)}.${pad(p.ms, 3)}`;
  el.title = `${full(u)} UTC · ${full(l).slice(0, 19)} local`;
}

export function duration(s) {
  const two = (n, a, m, b) => (m ? `${n} ${a} ${m} ${b}` : `${n} ${a}`);
  if (s < 0.000995) return `${Math.max(0.1, s * 1000).toFixed(1)} ms`;
  if (s < 0.9995) return `${Math.round(s * 1000)} ms`;
  if (s < 9.95) return `${s.toFixed(1)} s`;
  if (s < 59.5) return `${Math.round(s)} s`;
  const n = Math.round(s), m = Math.round(s / 60), h = Math.round(s / 3600);
  if (n < 3600) return two(Math.floor(n / 60), "min", n % 60, "s");
  if (m < 1440) return two(Math.floor(m / 60), "h", m % 60, "min");
  return two(Math.floor(h / 24), "d", h % 24, "h");
}

export function tick() {
  for (const el of document.querySelectorAll("svg text[data-ms]")) {
    const words = short(Number(el.dataset.ms), Number(el.closest("[data-span]")?.dataset.span));
    if (el.textContent !== words) el.textContent = words;
  }
  if (still) return;
  for (const el of document.querySelectorAll("time[data-t]")) write(el);
}
addEventListener("pointerover", (e) => { const el = e.target.closest?.("time[data-t]"); if (el) title(el); });
addEventListener("focusin", (e) => { for (const el of e.target.querySelectorAll?.("time[data-t]") ?? []) title(el); });
addEventListener("htmx:sseMessage", tick);
addEventListener("htmx:afterSwap", tick);
setInterval(tick, 1000);
tick();

// What was chosen is kept in the cookie that the server reads.
export function choose(name, value) {
  const all = new URLSearchParams(decodeURIComponent((document.cookie.match(/(?:^|; )pawl_prefs=([^;]*)/) || [])[1] || ""));
  all.set(name, value);
  document.cookie = `pawl_prefs=${all.toString()}; path=${root.dataset.root}; max-age=31536000; samesite=lax`;
}
export function setZone(zone) {
  root.dataset.zone = zone;
  choose("zone", zone);
  for (const a of document.querySelectorAll("a[data-zone]")) a.toggleAttribute("aria-current", a.dataset.zone === zone);
  for (const a of document.querySelectorAll("a[data-zone][aria-current]")) a.setAttribute("aria-current", "true");
  const was = still; still = false; tick(); still = was;
  dispatchEvent(new Event("pawl:zone"));
}
export function setTheme(theme) {
  root.dataset.theme = theme;
  choose("theme", theme);
  dispatchEvent(new Event("pawl:theme"));
}
addEventListener("click", (e) => {
  const zone = e.target.closest?.("a[data-zone]");
  if (zone) { e.preventDefault(); setZone(zone.dataset.zone); }
  if (e.target.closest?.("[data-theme-toggle]")) { e.preventDefault(); toggleTheme(); }
});
export function toggleTheme() {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  setTheme(dark ? "light" : "dark");
}
