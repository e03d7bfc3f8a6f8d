import { askJson, make } from "/static/shell.js";

/* Search over everything: "/" or Ctrl-K opens, arrows choose, Enter opens, Escape closes. */
const WAIT_MS = 90;
const dialog = document.querySelector("[data-seeker]");
const input = dialog.querySelector("input");
const list = dialog.querySelector("ul");
const words = dialog.querySelector("[data-seek-words]");
const button = document.querySelector("[data-seek]");

let chosen = -1;
let asked = 0;
let waiting = 0;

function choose(at) {
  const options = [...list.children];
  chosen = options.length ? (at + options.length) % options.length : -1;
  options.forEach((option, index) => option.setAttribute("aria-selected", String(index === chosen)));
  if (chosen < 0) input.removeAttribute("aria-activedescendant");
  else {
    input.setAttribute("aria-activedescendant", options[chosen].id);
    options[chosen].scrollIntoView({ block: "nearest" });
  }
}

function show(found) {
  list.replaceChildren(...found.hits.map((hit, at) => {
    const about = [hit.where === "name" ? "" : `in ${hit.where}`, hit.text].filter(Boolean).join(" · ");
    return make("li", { role: "option", id: `seek-hit-${at}`, "data-page": hit.page, onclick: () => location.assign(hit.page), onmousemove: () => { if (chosen !== at) choose(at); } },
      make("span", { class: `kind ${hit.kind}` }, hit.kind), make("b", {}, hit.name), hit.tags.length ? make("span", { class: "soft" }, hit.tags.slice(0, 3).join(", ")) : null, about ? make("small", {}, about) : null);
  }));
  input.setAttribute("aria-expanded", String(found.hits.length > 0));
  const counts = Object.entries(found.kinds).map(([kind, count]) => `${count.toLocaleString()} ${kind}`).join(", ");
  words.textContent = found.hits.length ? `${found.total.toLocaleString()} found: ${counts}` : found.is_complete ? "Nothing has this in its name, tags, description or columns." : "Listing the project …";
  choose(0);
}

async function seek() {
  const turn = ++asked;
  try {
    const found = await askJson(`/api/v1/search?limit=12&q=${encodeURIComponent(input.value)}`);
    if (turn !== asked || !dialog.open) return; // a later question was asked meanwhile
    show(found);
    if (!found.is_complete) waiting = setTimeout(seek, 700);
  } catch (error) {
    if (turn === asked) words.textContent = error.message;
  }
}

function open() {
  if (!dialog.open) dialog.showModal();
  input.select();
  seek();
}

button.addEventListener("click", open);
input.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(seek, WAIT_MS); });
input.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown") choose(chosen + 1);
  else if (event.key === "ArrowUp") choose(chosen - 1);
  else if (event.key === "Escape") dialog.close(); // a search field would only be emptied by it
  else if (event.key === "Enter" && chosen >= 0) location.assign(list.children[chosen].dataset.page);
  else return;
  event.preventDefault();
});
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
dialog.addEventListener("close", () => clearTimeout(waiting));
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.matches?.("input, textarea, select, [contenteditable]");
  const isAsked = (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) || (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey));
  if (!isAsked) return;
  event.preventDefault();
  open();
});
