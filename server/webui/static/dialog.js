// Dialogs come from the server; toasts go by themselves.
const dialog = document.getElementById("dialog");
const toasts = document.getElementById("toasts");

addEventListener("htmx:afterSwap", (e) => {
  if (e.detail.target === dialog && dialog.firstElementChild && !dialog.open) {
    dialog.showModal();
    dialog.querySelector("[autofocus]")?.focus();
  }
  if (e.detail.target === toasts) trim();
});
addEventListener("pawl:done", () => { if (dialog.open) dialog.close(); });
dialog.addEventListener("close", () => dialog.replaceChildren());
addEventListener("click", (e) => {
  const closer = e.target.closest?.("[data-close]");
  if (closer) {
    const toast = closer.closest(".toast");
    if (toast) toast.remove();
    else if (dialog.open && dialog.contains(closer)) { e.preventDefault(); dialog.close(); }
  } else if (e.target === dialog && dialog.open) {
    const r = dialog.getBoundingClientRect();
    if (e.clientX < r.left || e.clientX > r.right || e.clientY < r.top || e.clientY > r.bottom) dialog.close();
  }
  for (const open of document.querySelectorAll("details.pick[open], details.more[open]")) if (!open.contains(e.target)) open.open = false;
});

function trim() {
  while (toasts.children.length > 3) toasts.firstElementChild.remove();
  for (const t of toasts.children) {
    if (t.dataset.timed || t.classList.contains("bad")) continue;
    t.dataset.timed = "1";
    setTimeout(() => t.remove(), 8000);
  }
}
trim();
