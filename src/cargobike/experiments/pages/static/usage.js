/* What a trial used over time; the section is shown only if something was measured. */
import { askJson } from "/static/shell.js";
import { FigureCard } from "/static/figure.js";

export async function fillUsage(section, api) {
  const { samples, summary } = await askJson(`${api}/usage`);
  if (!samples.length) return;
  section.hidden = false;
  section.querySelector("[data-usage-summary]").textContent = summary;
  section.querySelector("[data-usage]").append(new FigureCard("Use", () => `${api}/figures/usage`, { full: true }).element);
}
