/* One deployment, live: asks how it is doing every two seconds while the page is seen. */
import { askJson, bytes, make, say, send, shown } from "./shell.js";

const api = `/api/v1/deployments/${encodeURIComponent(document.body.dataset.deployment)}`;
const EVERY_MS = 2000, KEPT = 150;
const find = (selector) => document.querySelector(selector);
const kept = { per_s: [], p99_ms: [] };

const milliseconds = (value) => (value === null ? "–" : `${value.toFixed(1)} ms`);
const WORDS = { per_s: (value) => value.toFixed(1), p50_ms: milliseconds, p99_ms: milliseconds };

function show(details) {
  const one = details.deployment;
  find("[data-state]").replaceChildren(make("span", { class: `badge ${one.state}` }, make("i", { "aria-hidden": "true" }), one.state));
  find("[data-version]").textContent = one.version || "–";
  const problem = find("[data-problem]");
  problem.textContent = details.last_error || details.trouble;
  problem.hidden = !problem.textContent;
  for (const element of document.querySelectorAll("[data-fact]")) {
    const name = element.dataset.fact, value = one.traffic[name];
    element.textContent = (WORDS[name] ?? ((count) => count.toLocaleString("en")))(value);
  }
  for (const name of Object.keys(kept)) draw(name, one.traffic[name]);
  showVersions(details);
  const rows = details.replicas.map((each) => make("tr", {}, make("th", { scope: "row", class: "number" }, shown(each.replica)),
    make("td", { class: "number" }, shown(each.version)), make("td", {}, each.state), make("td", { class: "number" }, each.memory_bytes ? bytes(each.memory_bytes) : "–")));
  find("[data-replicas]").replaceChildren(...(rows.length ? rows : [make("tr", { class: "none" }, make("td", { colspan: 4 }, "There are no replicas now."))]));
  const back = find("[data-rollback]");
  if (back) back.disabled = !(details.previous || details.candidate);
}

function showVersions(details) {
  const serving = details.deployment.version;
  const versions = [...new Set([serving, details.candidate, details.shadow, details.previous])].filter(Boolean);
  const is = (version) => (version === serving ? "serves" : version === details.candidate ? "is brought in" : version === details.shadow ? "shadow" : "served before");
  const rows = versions.map((version) => {
    const figures = details.figures.find((each) => each.version === version);
    const share = details.routes[version];
    const cells = [share === undefined ? "–" : `${Math.round(share * 100)}%`, figures ? figures.requests.toLocaleString("en") : "–", figures ? figures.failed.toLocaleString("en") : "–", figures ? milliseconds(figures.latency_ms) : "–"];
    const link = make("a", { href: `/models/${encodeURIComponent(details.model_name)}/${version}` }, String(version));
    return make("tr", {}, make("th", { scope: "row" }, link), make("td", {}, is(version)), ...cells.map((cell) => make("td", { class: "number" }, cell)));
  });
  if (rows.length) find("[data-versions]").replaceChildren(...rows);
}

function draw(name, value) {
  const values = kept[name];
  values.push(value ?? 0);
  if (values.length > KEPT) values.shift();
  const svg = find(`[data-spark="${name}"]`);
  const most = Math.max(...values, 1e-9);
  const points = values.map((each, at) => `${((at + KEPT - values.length) / (KEPT - 1) * 300).toFixed(1)},${(57 - each / most * 52).toFixed(1)}`);
  const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  line.setAttribute("class", "line");
  line.setAttribute("points", points.join(" "));
  svg.replaceChildren(line);
  svg.setAttribute("aria-label", `${svg.dataset.spark === "per_s" ? "Requests in a second" : "p99 in milliseconds"}: now ${shown(value, 3) || "none"}, at most ${shown(most, 3)}`);
}

async function look() {
  if (!document.hidden) {
    try { show(await askJson(api)); } catch (error) { say(error.message); }
  }
  setTimeout(look, EVERY_MS);
}
look();

async function change(button, path, body, done) {
  button.disabled = true;
  try {
    const { state, version } = await send(`${api}/${path}`, body);
    say(state === "releasing" ? "It is being brought in." : `${done}: version ${version} serves.`);
  } catch (error) {
    say(error.message);
  }
  button.disabled = false;
}

find("[data-roll]")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const model = event.target.elements.model.value.trim();
  if (!confirm(`Roll to ${model}? It is started, warmed up and checked first; no request is lost.`)) return;
  change(event.submitter, "roll", { model }, "Rolled");
});
find("[data-rollback]")?.addEventListener("click", (event) => {
  if (!confirm("Roll back? What is being brought in is taken back; else the version before serves again.")) return;
  change(event.target, "rollback", {}, "Rolled back");
});
