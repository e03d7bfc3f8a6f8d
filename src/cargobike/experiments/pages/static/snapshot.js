/* What was run, and in which environment. */
import { askJson, bytes, make, shown } from "/static/shell.js";

const facts = (pairs) => make("dl", { class: "facts" }, ...pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== 0 && !(Array.isArray(value) && !value.length))
  .map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, Array.isArray(value) ? value.join(", ") : shown(value)))));

export async function fillSnapshot(place, experiment) {
  let told;
  try {
    told = await askJson(`/api/v1/experiments/${experiment}/snapshot`);
  } catch (error) {
    place.replaceChildren(make("p", { class: "soft" }, error.message));
    return;
  }
  if (told === null) {
    place.replaceChildren(make("p", { class: "soft" }, "Nothing is recorded about the code and the environment."));
    return;
  }
  const { environment, git, launcher } = told;
  const packages = Object.entries(environment.packages || {}).sort();
  place.replaceChildren(...[
    facts([
      ["commit", git ? `${git.commit.slice(0, 12)}${git.changed.length ? " + changes" : ""}` : ""], ["branch", git?.branch], ["repository", git?.remote || git?.root],
      ["launched by", launcher ? launcher.path || launcher.kind : ""], ["in", told.directory],
      ["Python", environment.python], ["system", `${environment.os} ${environment.machine}`.trim()], ["processor", environment.cpu ? `${environment.cpu}, ${environment.cores} cores` : ""],
      ["memory", environment.memory_bytes ? bytes(environment.memory_bytes) : ""], ["GPUs", environment.gpus], ["driver", environment.gpu_driver],
      ...Object.entries(environment.variables || {}), ...told.resources.map((each) => [`resource ${each.name}`, (each.sha256 || "").slice(0, 12)]),
    ]),
    ...told.problems.map((problem) => make("p", { class: "problem" }, problem)),
    told.function ? make("details", { open: true }, make("summary", {}, "The train function"), make("pre", { class: "log", tabindex: "0", role: "region", "aria-label": "Source of the train function" }, told.function)) : null,
    git?.changed?.length ? make("details", {}, make("summary", {}, `${git.changed.length} files differed from the commit`), make("pre", { class: "log", tabindex: "0", role: "region", "aria-label": "Files that differed" }, git.changed.join("\n"))) : null,
    packages.length ? make("details", {}, make("summary", {}, `${packages.length} packages`), make("pre", { class: "log", tabindex: "0", role: "region", "aria-label": "Packages" }, packages.map(([name, version]) => `${name}==${version}`).join("\n"))) : null,
  ].filter((each) => each !== null));
}
