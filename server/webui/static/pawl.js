// Pawl's own modules. Everything can be read without them.
import "./times.js";
import "./live.js";
import "./dialog.js";
import "./copy.js";
import "./select.js";
import "./keys.js";
import "./rows.js";

// Charts wait for the page, and may come later, by the stream.
const begin = () => document.querySelector("[data-chart]") && import("./charts.js");
if (document.readyState === "complete") begin();
else addEventListener("load", begin, { once: true });
addEventListener("htmx:sseMessage", () => { if (document.readyState === "complete") begin(); });
