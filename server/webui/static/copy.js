// Copies what data-copy has, or what the element named by data-copy-of holds. Plain HTTP has no clipboard: there the old way.
async function put(text) {
  if (navigator.clipboard && isSecureContext) {
    try { return await navigator.clipboard.writeText(text); } catch { /* the old way */ }
  }
  const area = Object.assign(document.createElement("textarea"), { value: text, className: "vh", readOnly: true });
  (document.querySelector("dialog[open]") || document.body).append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
export async function copy(button) {
  const of = button.dataset.copyOf && document.getElementById(button.dataset.copyOf);
  let text = button.dataset.copy ?? of?.textContent ?? "";
  if (button.dataset.copyFrom) text = await (await fetch(button.dataset.copyFrom)).text();
  await put(text);
  button.classList.add("ok");
  const was = button.getAttribute("aria-label");
  button.setAttribute("aria-label", "Copied");
  setTimeout(() => { button.classList.remove("ok"); button.setAttribute("aria-label", was); }, 1500);
}
addEventListener("click", (e) => {
  const button = e.target.closest?.("[data-copy], [data-copy-of], [data-copy-from]");
  if (button) copy(button);
});
