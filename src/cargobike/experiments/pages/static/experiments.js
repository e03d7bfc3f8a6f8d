/* The list of experiments. */
import { askText, listen, localTimes, ride } from "/static/shell.js";

const form = document.querySelector("[data-filter]");
const body = document.querySelector("[data-rows]");
const compare = document.querySelector("[data-compare]");
const chosen = new Set();
let limit = 50;

const wheels = () => ride(!!body.querySelector(".badge.running"));
function query() {
  const data = new FormData(form);
  const params = new URLSearchParams();
  for (const name of ["q", "state", "sort"]) if (data.get(name)) params.append(name, data.get(name));
  if (data.get("sort") === "name") params.set("descending", "false");
  if (limit > 50) params.set("limit", limit);
  return params;
}
let asked = 0;
async function refresh() {
  const mine = ++asked;
  const params = query();
  const address = params.toString() === "sort=started" ? "/experiments" : `/experiments?${params}`;
  params.set("fragment", "true");
  const html = await askText(`/experiments?${params}`);
  if (mine !== asked) return;
  const focused = document.activeElement?.closest("[data-rows] tr")?.dataset.id;
  const within = document.activeElement?.tagName;
  body.innerHTML = html; // made by the server from a template in which every text is escaped
  history.replaceState(null, "", address);
  dress();
  if (focused) body.querySelector(`tr[data-id="${CSS.escape(focused)}"] ${within === "INPUT" ? "input" : "a"}`)?.focus();
}
function dress() {
  localTimes(body);
  wheels();
  for (const box of body.querySelectorAll("input[type=checkbox]")) box.checked = chosen.has(box.value);
}
body.addEventListener("change", (event) => {
  if (event.target.checked) chosen.add(event.target.value); else chosen.delete(event.target.value);
  compare.disabled = chosen.size < 2;
  compare.querySelector("[data-chosen]").textContent = chosen.size ? ` ${chosen.size}` : "";
});
body.addEventListener("click", (event) => {
  const more = event.target.closest("[data-more]");
  if (more) { limit = Math.min(1000, limit + 200); refresh(); }
});
compare.addEventListener("click", () => location.assign(`/compare?${[...chosen].map((id) => `experiment=${encodeURIComponent(id)}`).join("&")}`));
let waiting = 0;
form.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(refresh, 180); });
form.addEventListener("submit", (event) => { event.preventDefault(); refresh(); });
listen("/api/v1/events", { experiments: () => refresh() });
dress();
