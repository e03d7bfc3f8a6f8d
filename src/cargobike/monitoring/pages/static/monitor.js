/* One monitor, live: asks how it is doing every three seconds while the page is seen. */
import { askJson, make, say, send } from "./shell.js";

const { monitor, windows, alarms } = document.body.dataset;
const api = `/api/v1/monitors/${encodeURIComponent(monitor)}`;
const EVERY_MS = 3000;
const find = (selector) => document.querySelector(selector);
const COLORS = { watching: "running", lost: "failed", stopped: "stopped" };

function lasting(seconds) {
  for (const [unit, size] of [["days", 86400], ["h", 3600], ["min", 60]]) if (seconds >= 2 * size) return `${Math.round(seconds / size)} ${unit}`;
  return `${Math.round(seconds)} s`;
}

function show(details) {
  const one = details.monitor;
  find("[data-state]").replaceChildren(make("span", { class: `badge ${COLORS[one.state]}` }, make("i", { "aria-hidden": "true" }), one.state));
  const trouble = find("[data-trouble]");
  trouble.textContent = one.trouble;
  trouble.hidden = !one.trouble;
  const facts = {
    open_alarms: one.open_alarms, windows: one.windows.toLocaleString("en"), rows: details.rows.toLocaleString("en"),
    unusual: one.unusual ? "unusual" : one.windows ? "as usual" : "–",
    per_s: details.per_s === null ? "–" : Number(details.per_s.toPrecision(3)),
    lag_s: details.lag_s === null ? "–" : `${lasting(details.lag_s)} ago`,
    late: details.late.toLocaleString("en"), dropped: details.dropped.toLocaleString("en"),
  };
  for (const element of document.querySelectorAll("[data-fact]")) element.textContent = facts[element.dataset.fact];
  find("[data-news]").hidden = one.windows === Number(windows) && details.alarms.length === Number(alarms);
}

async function look() {
  if (!document.hidden) {
    try { show(await askJson(api)); } catch (error) { say(error.message); }
  }
  setTimeout(look, EVERY_MS);
}
setTimeout(look, EVERY_MS);

for (const form of document.querySelectorAll("[data-acknowledge]")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const alarm = form.dataset.acknowledge;
    if (!confirm(`Acknowledge ${alarm}? It is written down that you have seen it.`)) return;
    event.submitter.disabled = true;
    try {
      await send(`${api}/alarms/${encodeURIComponent(alarm)}/acknowledge`, { note: form.elements.note.value.trim() });
      location.reload();
    } catch (error) {
      say(error.message);
      event.submitter.disabled = false;
    }
  });
}
