/* One experiment, live. */
import { askJson, askText, duration, listen, make, renderParts, ride, say, send, shown } from "/static/shell.js";
import { FigureCard, isDrawing, refreshFigures, warmUp } from "/static/figure.js";
import { TrialTable } from "/static/trial_table.js";
import { fillFiles } from "/static/files.js";
import { fillSnapshot } from "/static/snapshot.js";

const id = document.body.dataset.experiment;
const api = `/api/v1/experiments/${id}`;
const head = document.querySelector("[data-head]");
const filter = document.querySelector("[data-trial-filter]");
const compare = filter.querySelector("[data-compare]");
const HALF = new Set(["importance", "contour"]);
let detail = null;

/* Figures: a card for each that makes sense, with the choices that it knows. */
const cards = new Map();
const choices = new Map();
function chooser(figure, option, label, values, first = "", isSeen = true) {
  const key = `${figure}/${option}`;
  const select = make("select", { onchange: () => { choices.set(key, select.value); cards.get(figure).refresh(true); } },
    ...(first === null ? [] : [make("option", { value: "" }, first)]), ...values.map(([value, word]) => make("option", { value }, word ?? value)));
  return make("label", {}, make("span", { class: isSeen ? "" : "hidden" }, label), select);
}
function controlsOf({ name, options }) {
  const made = [];
  if (options.includes("by")) made.push(chooser(name, "by", "Order", [["trial", "by trial"], ["time", "by time"]], null, false));
  if (options.includes("metric") && detail.metrics.length > 2) made.push(chooser(name, "metric", "Metric", detail.metrics.map((each) => [each]), "objective", false));
  if (name === "contour" && detail.params.length > 2) made.push(chooser(name, "x", "x", detail.params.map((each) => [each]), "most important"), chooser(name, "y", "y", detail.params.map((each) => [each]), "next"));
  if (name === "pareto" && detail.metrics.length > 2) made.push(chooser(name, "x", "x", detail.metrics.map((each) => [each]), "first"), chooser(name, "y", "y", detail.metrics.map((each) => [each]), "second"));
  if (name === "learning-curves") made.push(chooser(name, "most", "How many trials", [["200", "up to 200 trials"], ["50", "up to 50 trials"], ["1000", "up to 1000 trials"]], null, false));
  return made;
}
function addressOf({ name, options }) {
  const params = new URLSearchParams();
  for (const option of options) {
    const value = choices.get(`${name}/${option}`);
    if (value) params.set(option, value);
  }
  return `${api}/figures/${name}${params.size ? `?${params}` : ""}`;
}
async function placeFigures() {
  const { figures } = await askJson(`${api}/figures`);
  for (const place of document.querySelectorAll("[data-figures]")) {
    const here = figures.filter((each) => each.section === place.dataset.figures);
    here.forEach((figure, at) => {
      if (cards.has(figure.name)) return;
      const card = new FigureCard(figure.title, () => addressOf(figure), {
        controls: controlsOf(figure), isCurve: figure.name === "learning-curves", hasLog: figure.name === "best-so-far", full: !(HALF.has(figure.name) && here.filter((each) => HALF.has(each.name)).length > 1), onBrush: brush, onPick: (number) => location.assign(`/experiments/${id}/trials/${number}`),
      });
      card.element.dataset.name = figure.name;
      cards.set(figure.name, card);
      const after = [...place.children].find((other) => here.findIndex((each) => each.name === other.dataset.name) > at);
      place.insertBefore(card.element, after ?? null);
    });
    place.closest("section").hidden = !place.children.length;
    document.querySelector(`[data-sections] a[href="#${place.closest("section").id}"]`).hidden = !place.children.length;
  }
}

/* The table of trials. */
const table = new TrialTable(document.querySelector("[data-trials]"), id, {
  onCount: (total, all, problem, hidden = 0) => {
    filter.querySelector("[data-count]").classList.toggle("problem", !!problem);
    filter.elements.q.setAttribute("aria-invalid", String(!!problem));
    filter.querySelector("[data-count]").textContent = problem ?? (total === all ? `${all.toLocaleString()} trials` : `${total.toLocaleString()} of ${all.toLocaleString()} trials${hidden ? `, ${hidden.toLocaleString()} hidden` : ""}`);
    filter.querySelector("[data-csv]").href = `${api}/trials.csv?${table.parameters}`;
  },
  onChoose: (chosen) => {
    compare.disabled = chosen.size < 2;
    compare.querySelector("[data-chosen]").textContent = chosen.size ? ` ${chosen.size}` : "";
  },
});
/* Which columns the table has. */
const columns = filter.querySelector("[data-columns]");
columns.addEventListener("toggle", () => columns.open && columns.querySelector("div").replaceChildren(...table.all.filter(([key]) => key !== "trial").map(([key, title]) => {
  const box = make("input", { type: "checkbox", onchange: (event) => { event.stopPropagation(); table.choose(key, box.checked); } });
  box.checked = !table.hidden.has(key);
  return make("label", {}, box, title);
})));
columns.addEventListener("input", (event) => event.stopPropagation()); // it is no part of the filter
document.addEventListener("click", (event) => { if (!columns.contains(event.target)) columns.open = false; });
columns.addEventListener("keydown", (event) => { if (event.key === "Escape") { columns.open = false; columns.querySelector("summary").focus(); } });
function brush(conditions) {
  filter.elements.q.value = conditions;
  applyFilter();
}
function applyFilter() { table.filter(filter.elements.q.value.trim(), filter.elements.state.value); }
let waiting = 0;
filter.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(applyFilter, 160); });
filter.addEventListener("submit", (event) => { event.preventDefault(); applyFilter(); });
compare.addEventListener("click", () => location.assign(`/compare?${[...table.chosen].map((number) => `trial=${id}/${number}`).join("&")}`));

/* Tags and notes that people add. */
const annotating = document.querySelector("[data-annotate]");
async function annotate(body) {
  try {
    const { tags } = await send(`${api}/annotations`, body);
    annotating.querySelector("form").reset();
    fillTags(tags);
    renderParts(head, await askText(`/experiments/${id}?fragment=true`));
    dressHead();
  } catch (error) { say(error.message); }
}
function fillTags(tags) {
  annotating?.querySelector("[data-tags]").replaceChildren(...tags.map((tag) => make("span", { class: "tag" }, tag,
    make("button", { type: "button", "aria-label": `Take the tag ${tag} away`, onclick: () => annotate({ remove: [tag] }) }, "×"))));
}
annotating?.addEventListener("submit", (event) => {
  event.preventDefault();
  const { tag, note } = event.target.elements;
  const body = { add: tag.value.trim() ? [tag.value.trim()] : [], note: note.value.trim() };
  if (body.add.length || body.note) annotate(body);
});

/* What was asked for, and the failures. */
function fillRecord() {
  const rows = [];
  const walk = (value, name) => {
    if (value !== null && typeof value === "object" && !Array.isArray(value) && Object.keys(value).length) for (const [key, inner] of Object.entries(value)) walk(inner, name ? `${name}.${key}` : key);
    else if (typeof value === "number" && name.endsWith("_s")) rows.push([name.slice(0, -2).replaceAll("_", " "), duration(value)]);
    else if (value !== null && value !== "" && !(Array.isArray(value) && !value.length)) rows.push([name, Array.isArray(value) && name !== "space" ? value.map((each) => shown(each)).join(", ") : shown(value)]);
  };
  const { space, fact, id: _, name, ...rest } = detail.header;
  delete rest.at; // it stands above, as the time at which it began
  walk(rest, "");
  for (const each of space || []) rows.push([`space: ${each.name}`, Object.entries(each).filter(([key, value]) => key !== "name" && value !== null).map(([key, value]) => `${key} ${shown(value)}`).join(" · ")]);
  document.querySelector("[data-header]").replaceChildren(...rows.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}
async function fillFailures() {
  const section = document.getElementById("failures");
  const none = !detail.counts.failed;
  section.hidden = none;
  document.querySelector('[data-sections] a[href="#failures"]').hidden = none;
  if (none) return;
  const { trials, total } = await askJson(`${api}/trials?state=failed&limit=200&sort=trial&descending=true`);
  const groups = new Map();
  for (const trial of trials) {
    const error = (trial.error || "failed without a message").trim();
    const line = error.split("\n").at(-1).slice(0, 300);
    groups.set(line, [...(groups.get(line) || []), trial]);
  }
  const isFirst = detail.state === "failed" && !section.querySelector("details");
  if (isFirst) leadWith(section);
  const opened = new Set([...section.querySelectorAll("details[open]")].map((each) => each.dataset.line));
  section.querySelector("[data-failures]").replaceChildren(
    make("p", { class: "soft" }, `${total.toLocaleString()} of ${detail.trials.toLocaleString()} trials failed${total > trials.length ? `; the last ${trials.length} are told here` : ""}.`),
    ...[...groups].sort((one, other) => other[1].length - one[1].length).map(([line, those], at) => make("details", { "data-line": line, open: opened.has(line) || (isFirst && at === 0) },
      make("summary", {}, make("b", { class: "problem" }, `${those.length} × `), make("code", {}, line)),
      make("p", { class: "links" }, ...those.slice(0, 30).flatMap((trial) => [make("a", { href: `/experiments/${id}/trials/${trial.trial}` }, `trial ${trial.trial}`), " "])),
      make("pre", { class: "log error", tabindex: "0", role: "region", "aria-label": `Traceback of trial ${those[0].trial}` }, those[0].error || ""))));
}
/* On the page of an experiment that failed, why it failed comes first. */
function leadWith(section) {
  document.getElementById("progress").before(section);
  const link = document.querySelector(`[data-sections] a[href="#${section.id}"]`);
  link.parentElement.prepend(link);
}

/* Keeping up: the head at once, figures and table as fast as they can be made. */
function dressHead() {
  const state = head.querySelector(".badge")?.className.split(" ")[1];
  document.body.dataset.state = state;
  ride(state === "running");
}
head.addEventListener("click", (event) => { if (event.target.matches("[data-stop]")) stop(event); });
async function stop(event) {
  if (!confirm("Stop this experiment? Trials that have ended are kept, and it can be resumed.")) return;
  event.target.disabled = true;
  try {
    await send(`${api}/stop`);
    say("Asked to stop.");
  } catch (error) {
    say(error.message);
    event.target.disabled = false;
  }
}
const REST_MS = 1000;
let version = -1, latest = -1, isUpdating = false, isResting = false;
async function update() {
  if (isUpdating || isResting) return;
  isUpdating = true;
  try {
    renderParts(head, await askText(`/experiments/${id}?fragment=true`));
    dressHead();
    detail = await askJson(api);
    const sample = await askJson(`${api}/trials?limit=50`);
    detail.tableParams = [...new Set([...detail.params, ...sample.trials.flatMap((trial) => Object.keys(trial.params))])].slice(0, 40);
    detail.tableMetrics = detail.metrics.filter((name) => name !== detail.metric && name !== "duration_s").slice(0, 20);
    table.setColumns(detail);
    fillTags(detail.tags);
    await Promise.all([placeFigures(), table.pages.size ? table.reload() : table.restart(), fillFailures()]);
    if (version < 0) { fillRecord(); fillSnapshot(document.querySelector("[data-snapshot]"), id); fillFiles(document.querySelector("[data-files]"), id); }
    version = detail.version;
    refreshFigures();
  } catch (error) {
    say(error.message);
  } finally {
    isUpdating = false;
  }
  // Not before the figures that were asked for are drawn: a slow machine gets fewer updates, not a queue of them.
  const rest = () => {
    isResting = isDrawing() || document.hidden;
    if (isResting) setTimeout(rest, 300);
    else if (latest !== version) update();
  };
  isResting = true;
  setTimeout(rest, REST_MS);
}
dressHead();
warmUp();
update();
listen(`/api/v1/events?experiment=${id}`, {
  experiment: (news) => {
    latest = news.version;
    if (latest !== version) update();
  },
  gone: (news) => say(news.detail),
});

/* Which section is being looked at. */
const links = [...document.querySelectorAll("[data-sections] a")];
const marker = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    for (const link of links) if (link.hash === `#${entry.target.id}`) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
  }
}, { rootMargin: "-25% 0px -65% 0px" });
for (const section of document.querySelectorAll("main section")) marker.observe(section);
