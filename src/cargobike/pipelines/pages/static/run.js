/* One run, live: what changes is asked for every two seconds while it runs and the page is seen. */
import { askText, say, send } from "./shell.js";

const run = encodeURIComponent(document.body.dataset.run);
const api = `/api/v1/pipelines/runs/${run}`;
const EVERY_MS = 2000;
const find = (selector) => document.querySelector(selector);
const state = () => find("[data-run-state]").dataset.runState;
let expects = "";

async function look() {
  if (!document.hidden && (expects || state() === "running")) {
    try {
      const offset = new URLSearchParams(location.search).get("offset") ?? "0";
      const text = await askText(`/pipelines/runs/${run}?fragment=true&offset=${encodeURIComponent(offset)}`);
      const fresh = new DOMParser().parseFromString(text, "text/html").querySelector("[data-run-state]");
      const scrolled = [...document.querySelectorAll("[data-live] .scroll")].map((each) => each.scrollLeft);
      const focused = document.activeElement?.getAttribute("href");
      find("[data-live]").replaceChildren(fresh);
      document.querySelectorAll("[data-live] .scroll").forEach((each, at) => { each.scrollLeft = scrolled[at] ?? 0; });
      if (focused) find(`[data-live] a[href="${CSS.escape(focused)}"]`)?.focus();
      const is = state();
      if (expects === is) expects = "";
      show(is);
    } catch (error) { say(error.message); }
  }
  setTimeout(look, EVERY_MS);
}

function show(is) {
  const cancel = find("[data-cancel]"), resume = find("[data-resume]");
  if (cancel) cancel.hidden = is !== "running";
  if (resume) resume.hidden = is === "running" || is === "completed";
}

async function change(button, path, awaited, words) {
  button.disabled = true;
  try {
    await send(`${api}/${path}`);
    expects = awaited;
    say(words);
  } catch (error) { say(error.message); }
  button.disabled = false;
}

find("[data-cancel]")?.addEventListener("click", (event) => {
  if (confirm("Cancel this run? Its steps are ended; it can be resumed later.")) change(event.target, "cancel", "cancelled", "It is being cancelled.");
});
find("[data-resume]")?.addEventListener("click", (event) => {
  if (confirm("Resume this run? What is done is not done again.")) change(event.target, "resume", "running", "It goes on.");
});
setTimeout(look, EVERY_MS);
