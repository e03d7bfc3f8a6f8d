/* What every page has: colours, messages, a way to ask the API. */
const root = document.documentElement;
const WORDS = { auto: "as the system", light: "light", dark: "dark" };

export const isDark = () => root.dataset.theme === "dark" || (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);

const button = document.querySelector("[data-theme-switch]");
const label = () => button.setAttribute("aria-label", `Colours: ${WORDS[root.dataset.theme || "auto"]}`);
button?.addEventListener("click", () => {
  // From what the system says first to the other one, and in three steps round.
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const order = dark ? ["auto", "light", "dark"] : ["auto", "dark", "light"];
  const next = order[(order.indexOf(root.dataset.theme || "auto") + 1) % 3];
  if (next === "auto") delete root.dataset.theme; else root.dataset.theme = next;
  try { if (next === "auto") localStorage.removeItem("cargobike-theme"); else localStorage.setItem("cargobike-theme", next); } catch { /* not kept */ }
  label();
  say(`Colours: ${WORDS[next]}`);
  dispatchEvent(new Event("themechange"));
});
if (button) label();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dispatchEvent(new Event("themechange")));

let silence = 0;
export function say(text) {
  const toast = document.querySelector("[data-toast]");
  toast.textContent = text;
  toast.classList.add("on");
  clearTimeout(silence);
  silence = setTimeout(() => toast.classList.remove("on"), 2600);
}

export class ApiError extends Error {}

export async function ask(path, options = {}) {
  const response = await fetch(path, { credentials: "same-origin", ...options });
  if (response.status === 401) location.assign("/login");
  if (!response.ok) {
    let why = `${response.status}`;
    try {
      const { detail } = await response.json();
      why = Array.isArray(detail) ? detail.map((each) => `${each.where.at(-1)}: ${each.what}`).join("; ") : detail;
    } catch { /* no words */ }
    throw new ApiError(why);
  }
  return response;
}
export const askJson = async (path, options) => (await ask(path, options)).json();
export const askText = async (path, options) => (await ask(path, options)).text();
export const send = (path, body = {}) => askJson(path, { method: "POST", headers: { "Content-Type": "application/json", "X-Cargobike": "1" }, body: JSON.stringify(body) });

/* Elements by hand: text is always text. */
export function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "class") element.className = value;
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "style") Object.assign(element.style, value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/* Texts of a figure were escaped for Plotly, which reads them as HTML does; here they become plain text again. */
export const plain = (text) => (text || "").replace(/<br>/g, " · ").replace(/<[^>]*>/g, "").replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");

export function shown(value, digits = 6) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(digits)));
  return typeof value === "string" ? value : JSON.stringify(value);
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
  return `${Math.floor(whole / 3600)} h ${String(Math.floor((whole % 3600) / 60)).padStart(2, "0")} min`;
}

export function bytes(size) {
  for (const unit of ["B", "KB", "MB", "GB"]) {
    if (size < 1024 || unit === "GB") return `${unit === "B" ? size : size.toFixed(1)} ${unit}`;
    size /= 1024;
  }
}

/* Times as people at this place tell them. */
export function localTimes(within = document) {
  for (const element of within.querySelectorAll("time[datetime]")) {
    const at = new Date(element.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    element.textContent = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
    element.title = at.toISOString();
  }
}
localTimes();

/* A large graph opens with what it was asked for in view, not with its upper left corner. */
for (const middle of document.querySelectorAll(".scroll .lineage-graph .middle")) {
  const frame = middle.closest(".scroll"), around = frame.getBoundingClientRect(), box = middle.getBoundingClientRect();
  frame.scrollLeft += box.left + box.width / 2 - around.left - around.width / 2;
  frame.scrollTop += box.top + box.height / 2 - around.top - around.height / 2;
}
export const ride = (isRunning) => document.body.classList.toggle("running-somewhere", isRunning);

/* Replaces those parts of a place that have changed, and no others: what is being clicked or read stays where it is. */
const shownParts = new WeakMap();
export function renderParts(place, html) {
  const box = document.createElement("template");
  box.innerHTML = html; // made by the server from a template in which every text is escaped
  const before = shownParts.get(place) ?? [];
  const parts = [...box.content.children];
  const now = parts.map((part) => part.outerHTML);
  parts.forEach((part, at) => {
    if (now[at] === before[at]) return;
    const old = place.children[at];
    const focused = old?.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    if (old) old.replaceWith(part); else place.append(part);
    if (focused) part.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
  });
  while (place.children.length > parts.length) place.lastElementChild.remove();
  shownParts.set(place, now);
  localTimes(place);
}

export function save(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = make("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export function csvCell(value) {
  let text = shown(value, 17);
  if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/* Live updates. A hidden page listens to nothing: browsers allow six connections to one server. */
export function listen(path, handlers) {
  let source = null;
  const open = () => {
    if (source || document.hidden) return;
    source = new EventSource(path);
    for (const [name, handle] of Object.entries(handlers)) source.addEventListener(name, (event) => handle(JSON.parse(event.data)));
  };
  const close = () => { source?.close(); source = null; };
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
  open();
  return close;
}
