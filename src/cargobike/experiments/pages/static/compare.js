/* Trials or experiments side by side. */
import { askJson, csvCell, duration, make, save, shown } from "/static/shell.js";
import { FigureCard } from "/static/figure.js";

const place = document.querySelector("[data-compared]");
const hint = document.querySelector("[data-hint]");
const query = new URLSearchParams(location.search);

function table(caption, heads, rows) {
  const onlyDifferent = make("input", { type: "checkbox", onchange: () => element.querySelectorAll("tbody tr:not(.differs)").forEach((row) => { row.hidden = onlyDifferent.checked; }) });
  const csv = () => save(new Blob([[["", ...heads.map((head) => head.text)], ...rows.map(([name, values]) => [name, ...values])].map((row) => row.map(csvCell).join(",")).join("\r\n"), "\r\n"], { type: "text/csv" }), "comparison.csv");
  const element = make("div", { class: "card" },
    make("div", { class: "tools" }, make("h3", {}, caption), make("label", { class: "soft" }, onlyDifferent, " only what differs"), make("button", { type: "button", onclick: csv }, "CSV")),
    make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, make("table", {}, make("caption", { class: "hidden" }, caption),
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, make("span", { class: "hidden" }, "What")), ...heads.map((head) => make("th", { scope: "col" }, make("a", { href: head.href }, head.text))))),
      make("tbody", {}, ...rows.map(([name, values]) => make("tr", { class: new Set(values.map((value) => JSON.stringify(value ?? null))).size > 1 ? "differs" : "" },
        make("th", { scope: "row" }, name), ...values.map((value) => make("td", { class: typeof value === "number" ? "number" : "" }, shown(value)))))))));
  return element;
}
const union = (lists) => [...new Set(lists.flat())];

async function compareTrials(refs) {
  const joined = refs.map((ref) => `trial=${ref}`).join("&");
  const { trials } = await askJson(`/api/v1/compare/trials?${joined}`);
  const several = new Set(trials.map(({ experiment }) => experiment.id)).size > 1;
  const heads = trials.map(({ experiment, trial }) => ({ text: several ? `${experiment.name} · ${trial.trial}` : `trial ${trial.trial}`, href: `/experiments/${experiment.id}/trials/${trial.trial}` }));
  const params = union(trials.map(({ trial }) => Object.keys(trial.params)));
  const metrics = union(trials.map(({ trial }) => Object.keys(trial.metrics)));
  const rows = [
    ...(several ? [["experiment", trials.map(({ experiment }) => experiment.id)]] : []),
    ["state", trials.map(({ trial }) => trial.state)], ["value", trials.map(({ trial }) => trial.value)],
    ...params.map((name) => [name, trials.map(({ trial }) => trial.params[name])]),
    ...metrics.map((name) => [`${name} (returned)`, trials.map(({ trial }) => trial.metrics[name])]),
    ["took", trials.map(({ trial }) => duration(trial.duration_s))], ["attempts", trials.map(({ trial }) => trial.attempts)], ["points", trials.map(({ trial }) => trial.points)], ["seed", trials.map(({ trial }) => trial.seed)],
  ];
  hint.textContent = `${trials.length} trials`;
  const names = union(trials.map((each) => each.metric_names));
  const cards = names.slice(0, 8).map((name) => new FigureCard(name, () => `/api/v1/compare/figures/curves?${joined}&metric=${encodeURIComponent(name)}`, { full: names.length === 1, isCurve: true }));
  place.replaceChildren(make("h2", {}, "Figures"), make("div", { class: "figures" }, ...cards.map((card) => card.element)), make("h2", {}, "Side by side"), table("Parameters and results", heads, rows));
}

async function compareExperiments(ids) {
  const details = await Promise.all(ids.map((id) => askJson(`/api/v1/experiments/${id}`)));
  const heads = details.map((detail) => ({ text: detail.name || detail.id, href: `/experiments/${detail.id}` }));
  const params = union(details.map((detail) => Object.keys(detail.best?.params ?? {})));
  const flat = (value, name = "", into = {}) => {
    if (value !== null && typeof value === "object" && !Array.isArray(value)) for (const [key, inner] of Object.entries(value)) flat(inner, name ? `${name}.${key}` : key, into);
    else into[name] = value;
    return into;
  };
  const headers = details.map((detail) => {
    const { space, at, id, pid, ...rest } = detail.header;
    const told = flat(rest);
    for (const each of space || []) told[`space: ${each.name}`] = Object.entries(each).filter(([key, value]) => key !== "name" && value !== null).map(([key, value]) => `${key} ${shown(value)}`).join(" · ");
    return told;
  });
  const rows = [
    ["id", details.map((detail) => detail.id)], ["state", details.map((detail) => detail.state)],
    ["best value", details.map((detail) => detail.best?.value ?? null)], ["trials done", details.map((detail) => detail.trials_done)], ["failed", details.map((detail) => detail.counts.failed)],
    ["took", details.map((detail) => duration(detail.duration_s))],
    ...params.map((name) => [`best ${name}`, details.map((detail) => detail.best?.params[name])]),
  ];
  hint.textContent = `${details.length} experiments`;
  const joined = ids.map((id) => `experiment=${id}`).join("&");
  const by = (order) => new FigureCard("Best so far", () => `/api/v1/compare/figures/best-so-far?${joined}&by=${order}`);
  place.replaceChildren(make("h2", {}, "Figures"), make("div", { class: "figures" }, by("trial").element, by("time").element), make("h2", {}, "Side by side"), table("Results", heads, rows),
    await differences(ids), make("h2", {}, "What was asked for"), table("What was asked for", heads, union(headers.map((each) => Object.keys(each))).map((name) => [name, headers.map((each) => each[name])])));
}

/* Of two experiments also what differs in their code and their environment. */
async function differences(ids) {
  if (ids.length !== 2) return "";
  const found = await askJson(`/api/v1/compare/experiments?first=${ids[0]}&second=${ids[1]}`);
  const pairs = Object.entries({ ...found.environment, ...Object.fromEntries(Object.entries(found.packages).map(([name, pair]) => [`package ${name}`, pair])), ...Object.fromEntries(Object.entries(found.resources).map(([name, pair]) => [`resource ${name}`, pair])) });
  return make("div", {}, make("h2", {}, "Code and environment"), make("div", { class: "card" },
    ...found.warnings.map((warning) => make("p", { class: "problem" }, warning)),
    ...(found.code.length ? [] : [make("p", { class: "soft" }, "The recorded code is the same.")]),
    ...found.code.filter((file) => file.status === "changed").map((file) => make("details", {}, make("summary", {}, make("code", {}, file.name), " changed"), make("pre", { class: "log", tabindex: "0", role: "region", "aria-label": `Differences of ${file.name}` }, file.diff))),
    ...[["removed", "first"], ["added", "second"]].map(([status, which]) => {
      const names = found.code.filter((file) => file.status === status).map((file) => file.name);
      return names.length ? make("details", {}, make("summary", {}, `${names.length} files only in the ${which}`), make("pre", { class: "log" }, names.join("\n"))) : null;
    }),
    pairs.length ? make("div", { class: "scroll" }, make("table", {}, make("caption", { class: "hidden" }, "Differences of the environments"), make("tbody", {}, ...pairs.map(([name, values]) => make("tr", {}, make("th", { scope: "row" }, name), ...values.map((value) => make("td", {}, shown(value)))))))) : make("p", { class: "soft" }, "The recorded environments are the same.")));
}

const trials = query.getAll("trial").slice(0, 24), experiments = query.getAll("experiment").slice(0, 24);
try {
  if (trials.length) await compareTrials(trials.map((ref) => ref.split("/").map(encodeURIComponent).join("/")));
  else if (experiments.length) await compareExperiments(experiments.map(encodeURIComponent));
} catch (error) {
  hint.textContent = error.message;
}
