// Pawl's own modules. Everything can be read without them.
import "./times.js";
import "./live.js";
import "./dialog.js";
import "./copy.js";
import "./select.js";
import "./keys.js";
import "./rows.js";

if (document.querySelector("[data-chart]")) {
  const begin = () => import("./charts.js");
  if (document.readyState === "complete") begin();
  else addEventListener("load", begin, { once: true });
}
