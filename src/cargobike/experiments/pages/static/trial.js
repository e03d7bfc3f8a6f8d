/* One trial: its curves, its output as it is written, its files. */
import { askJson, askText, listen, make, renderParts, ride, say, send } from "/static/shell.js";
import { FigureCard, refreshFigures } from "/static/figure.js";
import { fillFiles } from "/static/files.js";
import { fillArtifacts } from "/static/artifacts.js";
import { fillUsage } from "/static/usage.js";
import { fillSnapshot } from "/static/snapshot.js";

const { experiment: id, trial: number } = document.body.dataset;
const api = `/api/v1/experiments/${id}/trials/${number}`;
const head = document.querySelector("[data-head]");
const card = new FigureCard("Curves", () => `${api}/figures/curves`, { full: true, isCurve: true });
document.querySelector("[data-curves]").append(card.element);

/* Output: asked for from where the last part ended, so that nothing is sent twice. */
const log = document.querySelector("[data-log]");
const status = document.querySelector("[data-log-status]");
const follow = document.querySelector("[data-follow]");
const ranks = document.querySelector("[data-rank]");
const tabs = [...document.querySelectorAll("[data-stream]")];
const START = 120_000, LONGEST = 2_000_000;
let stream = "stdout", offset = -START, isOver = false, timer = 0, run = 0;

const withoutCommands = (text) => text.replace(/\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])?/g, "").replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g, "");
async function readOn() {
  const mine = run;
  try {
    const part = await askJson(`${api}/logs/${stream}?rank=${ranks?.value ?? 0}&offset=${offset}&limit=262144`);
    if (mine !== run) return;
    if (offset < 0 && part.offset > 0) log.append(`… ${part.offset.toLocaleString()} bytes before\n`);
    offset = part.next_offset;
    isOver = part.is_over;
    if (part.text) {
      log.append(withoutCommands(part.text).replace(/\r\n/g, "\n").replace(/[^\n]*\r(?!\n)/g, ""));
      while (log.textContent.length > LONGEST && log.childNodes.length > 1) log.firstChild.remove();
      if (follow.checked) log.scrollTop = log.scrollHeight;
    }
    status.textContent = isOver ? (part.size ? `${part.size.toLocaleString()} bytes` : "nothing was written") : "live";
    if (!isOver) timer = setTimeout(readOn, part.next_offset < part.size ? 0 : 1000);
  } catch (error) {
    status.textContent = error.message;
    timer = setTimeout(readOn, 5000);
  }
}
function choose(tab) {
  run++;
  clearTimeout(timer);
  for (const other of tabs) {
    other.setAttribute("aria-selected", String(other === tab));
    other.tabIndex = other === tab ? 0 : -1;
  }
  log.setAttribute("aria-labelledby", tab.id);
  log.replaceChildren();
  stream = tab.dataset.stream;
  offset = -START;
  isOver = false;
  readOn();
}
for (const tab of tabs) {
  tab.addEventListener("click", () => choose(tab));
  tab.addEventListener("keydown", (event) => {
    if (!["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    const other = tabs[(tabs.indexOf(tab) + 1) % tabs.length];
    other.focus();
    choose(other);
  });
}
ranks?.addEventListener("change", () => choose(tabs.find((tab) => tab.dataset.stream === stream)));
readOn();

/* Files. */
async function fillOwnFiles() {
  const place = document.querySelector("[data-files]");
  const name = String(number).padStart(4, "0");
  const has = async (path, wanted) => (await askJson(`/api/v1/experiments/${id}/files?path=${path}`)).entries.some((entry) => entry.name === wanted);
  const isThere = (await has("", "files")) && (await has("files", name));
  if (isThere) {
    fillFiles(place, id, `files/${name}`);
    fillArtifacts(document.querySelector("[data-artifacts-section]"), id, `files/${name}`).catch((error) => say(error.message));
  }
  else place.append(make("p", { class: "soft" }, "It has written none."));
}
fillOwnFiles().catch((error) => say(error.message));
fillUsage(document.querySelector("[data-usage-section]"), api).catch((error) => say(error.message));
fillSnapshot(document.querySelector("[data-snapshot]"), id);

/* Marks: worth a second look, or not to be listed. */
head.addEventListener("click", async (event) => {
  const mark = event.target.closest("[data-mark]");
  if (!mark) return;
  const isOn = mark.getAttribute("aria-pressed") === "true";
  try {
    await send(`/api/v1/experiments/${id}/annotations`, { marks: { [number]: isOn ? null : mark.dataset.mark } });
    renderParts(head, await askText(`/experiments/${id}/trials/${number}?fragment=true`));
    if (!isOn && mark.dataset.mark === "hidden") say("Left out of table and figures; mark=hidden in the table's filter shows it.");
  } catch (error) { say(error.message); }
});

const dress = () => { ride(head.querySelector(".badge.running") !== null); };
dress();
if (["running", "pending", "paused"].includes(document.body.dataset.state)) {
  let isFirst = true;
  const close = listen(`/api/v1/events?experiment=${id}`, {
    experiment: async () => {
      if (isFirst) { isFirst = false; return; }
      try {
        renderParts(head, await askText(`/experiments/${id}/trials/${number}?fragment=true`));
      } catch (error) { say(error.message); return; }
      dress();
      refreshFigures();
      if (head.querySelector(".badge:is(.completed, .stopped, .failed)")) close();
    },
  });
}
addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, textarea, [role=tab], [role=tabpanel], [role=region]") || event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === "ArrowLeft") document.querySelector("[rel=prev]")?.click();
  if (event.key === "ArrowRight") document.querySelector("[rel=next]")?.click();
});
