// Rows that the stream replaces keep the focus that was in them; opening one keeps the page where it was.
import { chosenIn } from "./live.js";

const within = "a[href], button, input:not([type=hidden]), select, summary";
const later = new Map(); // what came for a place from which a request is under way: its answer must find it
let had = null;

const busy = (el) => el.querySelector(".htmx-request") || el.matches(".htmx-request");

function remember(el) { had = el.contains(document.activeElement) ? [el.id, [...el.querySelectorAll(within)].indexOf(document.activeElement)] : null; }
function restore() {
  if (had) document.getElementById(had[0])?.querySelectorAll(within)[had[1]]?.focus({ preventScroll: true });
  had = null;
}

addEventListener("htmx:sseBeforeMessage", (e) => {
  const region = e.target, data = e.detail.data;
  if (!busy(region)) return;
  e.preventDefault();
  later.set(region.id, () => htmx.swap(region, data, { swapStyle: region.getAttribute("hx-swap"), swapDelay: 0, settleDelay: 0 }));
});
addEventListener("htmx:oobBeforeSwap", (e) => {
  const target = e.detail.target;
  if (busy(target)) {
    const text = e.detail.fragment.firstElementChild?.outerHTML;
    later.set(target.id, () => {
      const el = document.getElementById(target.id);
      if (!el || !text) return;
      remember(el);
      el.outerHTML = text;
      htmx.process(document.getElementById(target.id));
      restore();
    });
    return e.preventDefault();
  }
  if (target.querySelector("[data-editing]") || chosenIn(target)) return e.preventDefault();
  remember(target);
});
addEventListener("htmx:oobAfterSwap", restore);
addEventListener("htmx:afterRequest", () => setTimeout(() => {
  const all = [...later];
  later.clear();
  for (const [, put] of all) put();
  if (all.length) dispatchEvent(new Event("htmx:sseMessage")); // cursors and times are painted again
}));

const place = () => { try { sessionStorage.pawlStay = `${location.pathname} ${scrollY}`; } catch { /* then it begins at the top */ } };
addEventListener("click", (e) => { if (e.target.closest?.("a[data-stay]")) place(); });
addEventListener("submit", (e) => { if (e.target.closest?.("form[data-stay]")) place(); });
try {
  const [path, y] = (sessionStorage.pawlStay || "").split(" ");
  delete sessionStorage.pawlStay;
  if (path === location.pathname) scrollTo(0, Number(y));
} catch { /* as above */ }
