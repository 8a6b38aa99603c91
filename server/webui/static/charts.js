// The server has drawn the charts. uPlot lies over them: a crosshair that all share, values at it in the heads, a range that is drawn.
import { duration, minute } from "./times.js";

const root = document.documentElement;
const base = import.meta.url.replace(/charts\.js.*$/, "");
const load = () => new Promise((done, fail) => {
  const s = Object.assign(document.createElement("script"), { src: `${base}third-party/uplot/uPlot.iife.min.js`, onload: done, onerror: fail });
  document.head.append(s);
});
let plots = [];
let hovering = false;

const number = (n) => (n == null ? "–" : n >= 10 ? Math.round(n).toLocaleString("en") : String(Math.round(n * 10) / 10));

function read(data, i) {
  const panel = data.box.closest(".panel");
  data.names.forEach((name, k) => {
    const b = panel.querySelector(`[data-read="${name}"]`);
    if (!b) return;
    b.dataset.latest ??= b.textContent;
    const v = i == null ? null : data.s[k][i];
    b.textContent = i == null ? b.dataset.latest : v == null ? "–" : data.unit === "s" ? duration(v) : number(v);
  });
  const at = panel.querySelector("[data-at]");
  if (at) at.textContent = i == null ? "" : minute(data.x[i]);
}

function draw() {
  for (const p of plots) p.destroy();
  plots = [];
  for (const svg of document.querySelectorAll("svg[data-chart]")) {
    const data = JSON.parse(svg.dataset.chart), n = data.x.length;
    data.box = svg;
    const style = getComputedStyle(root);
    const over = Object.assign(document.createElement("div"), { className: "over" });
    svg.parentElement.append(over);
    over.style.cssText = `left:${svg.getBoundingClientRect().left - svg.parentElement.getBoundingClientRect().left}px;top:${svg.getBoundingClientRect().top - svg.parentElement.getBoundingClientRect().top}px`;
    const half = data.bars ? 0.5 : 0;
    const p = new uPlot({
      width: svg.clientWidth, height: svg.clientHeight, padding: [0, 0, 0, 0], legend: { show: false },
      axes: [{ show: false }, { show: false }],
      scales: { x: { time: false, range: [-half, n - 1 + half] }, y: { distr: data.log ? 3 : 1, range: [data.low, data.high] } },
      series: [{}, ...data.names.map((name, k) => ({ stroke: style.getPropertyValue(`--c-${data.colors[k]}`), width: 0, points: { show: false }, paths: () => null }))],
      cursor: {
        sync: { key: "pawl", scales: ["x", null] }, y: false, drag: { x: true, y: false, setScale: false },
        points: data.bars ? { show: false } : { size: 8, width: 2, fill: style.getPropertyValue("--surface"), stroke: (u, k) => style.getPropertyValue(`--c-${data.colors[k - 1]}`) },
      },
      hooks: {
        setCursor: [(u) => { hovering = u.cursor.left >= 0; read(data, u.cursor.left >= 0 ? u.cursor.idx : null); }],
        setSelect: [(u) => {
          if (u.select.width < 8) return;
          const at = (px) => data.x[Math.max(0, Math.min(n - 1, Math.round(u.posToVal(px, "x"))))];
          zoom(at(u.select.left), at(u.select.left + u.select.width));
        }],
      },
    }, [data.x.map((_, i) => i), ...data.s], over);
    over.addEventListener("dblclick", () => zoom());
    plots.push(p);
  }
}

function zoom(from, to) {
  const url = new URL(location.href);
  url.searchParams.delete("range"); url.searchParams.delete("from"); url.searchParams.delete("to");
  if (from != null && to > from) { url.searchParams.set("from", from); url.searchParams.set("to", to); }
  location.href = url;
}

await load();
draw();
root.dataset.charts = "ready";
addEventListener("htmx:sseBeforeMessage", (e) => { if (hovering && e.target.querySelector("svg[data-chart]")) e.preventDefault(); });
addEventListener("htmx:sseMessage", (e) => { if (e.target.querySelector?.("svg[data-chart]")) draw(); });
let resizing;
addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(draw, 150); });
addEventListener("pawl:theme", draw);
