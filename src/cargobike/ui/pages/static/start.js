import { askText, renderParts, ride } from "/static/shell.js";

/* The cards of the start page: asked for again while the page is looked at; only what has changed is replaced. */
const EVERY_MS = 4000;
const place = document.querySelector("[data-cards]");
const isRiding = () => ride(Boolean(place.querySelector(".badge.running, .badge.serving")));

let waiting = 0;
async function refresh() {
  clearTimeout(waiting);
  if (!document.hidden) {
    try { renderParts(place, await askText("/?fragment=true")); isRiding(); } catch { /* the next round may succeed */ }
  }
  waiting = setTimeout(refresh, place.querySelector("[data-unread]") ? 700 : EVERY_MS);
}
isRiding();
waiting = setTimeout(refresh, place.querySelector("[data-unread]") ? 500 : EVERY_MS);
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
