/* Pause, resume and limit the daemon of a network, and have it ask who has a publication. */
import { askJson, make, say, send } from "./shell.js";

for (const button of document.querySelectorAll("[data-share]")) {
  button.addEventListener("click", () => change(button, button.dataset.share));
}

for (const form of document.querySelectorAll("[data-limits]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const limits = [...new FormData(form)].filter(([, rate]) => rate.trim());
    if (limits.length === 0) return say("Write a rate, such as 20MB/s, or none.");
    change(form.querySelector("button"), `${form.dataset.limits}?${new URLSearchParams(limits)}`);
  });
}

async function change(button, address) {
  button.disabled = true;
  try {
    await send(address, {});
    location.reload();
  } catch (error) {
    say(error.message);
    button.disabled = false;
  }
}

for (const button of document.querySelectorAll("[data-holders]")) {
  button.addEventListener("click", async () => {
    const status = document.getElementById("holders-status");
    button.disabled = true;
    status.textContent = "Members are asked …";
    try {
      const { holders } = await askJson(button.dataset.holders);
      show(holders);
      status.textContent = holders.length ? "" : "No other members are known.";
    } catch (error) {
      status.textContent = error.message;
    }
    button.disabled = false;
  });
}

function show(holders) {
  const table = document.getElementById("holders");
  table.tBodies[0].replaceChildren(...holders.map((one) => {
    const note = one.problem || (one.through.length ? `through it: ${one.through.map(short).join(", ")}` : "–");
    const rate = one.rate ? `${(one.rate / 1e6).toFixed(1)} MB/s` : "–";
    return make("tr", {},
      make("th", { scope: "row" }, short(one.publisher) || "unknown"), make("td", {}, one.address),
      make("td", { class: "number" }, `${Math.round(100 * one.share)} %`), make("td", { class: "number" }, rate),
      make("td", {}, note));
  }));
  table.hidden = holders.length === 0;
}

function short(key) {
  return key.replace("ed25519:", "").slice(0, 10);
}
