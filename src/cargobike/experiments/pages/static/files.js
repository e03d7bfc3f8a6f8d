/* Files of an experiment: folders to look into, texts to read, everything to save. */
import { ask, askJson, bytes, make } from "/static/shell.js";

const LONGEST = 200_000;
const TEXTS = /\.(py|txt|log|md|json|jsonl|ya?ml|toml|cfg|ini|csv|lock|diff|patch|sh|ipynb|in)$|^[A-Z]+$/i;

export async function fillFiles(place, experiment, start = "") {
  const list = make("ul", { class: "files" });
  const trail = make("p", { class: "soft" });
  const text = make("div");
  place.replaceChildren(trail, list, text);
  const content = (path) => `/api/v1/experiments/${experiment}/files/content?path=${encodeURIComponent(path)}`;

  async function read(path) {
    const response = await ask(content(path));
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    let read = "";
    while (read.length < LONGEST) {
      const { done, value } = await reader.read();
      if (done) break;
      read += decoder.decode(value, { stream: true });
    }
    reader.cancel();
    text.replaceChildren(make("h3", {}, path), make("pre", { class: "log", tabindex: "0", role: "region", "aria-label": path }, read.length >= LONGEST ? `${read.slice(0, LONGEST)}\n… (save it to see the rest)` : read));
  }

  async function open(path) {
    try {
      const found = await askJson(`/api/v1/experiments/${experiment}/files?path=${encodeURIComponent(path)}`);
      trail.replaceChildren(...(path === start ? [] : [make("button", { type: "button", onclick: () => open(path.includes("/") && path !== start ? path.slice(0, path.lastIndexOf("/")) : start) }, "← back"), ` ${path}`]));
      list.replaceChildren(...found.entries.map((entry) => {
        if (entry.kind === "folder") return make("li", {}, make("button", { type: "button", onclick: () => open(entry.path) }, `${entry.name}/`));
        const name = entry.kind === "file" && TEXTS.test(entry.name) ? make("button", { type: "button", onclick: () => read(entry.path) }, entry.name) : make("span", {}, entry.name);
        return make("li", {}, name, make("span", { class: "soft" }, entry.kind === "file" ? bytes(entry.size_bytes) : "link"), entry.kind === "file" ? make("a", { href: content(entry.path), download: entry.name, "aria-label": `Save ${entry.name}` }, "save") : null);
      }), ...(found.entries.length ? [] : [make("li", { class: "soft" }, "Nothing here.")]));
      if (found.left_out) list.append(make("li", { class: "soft" }, `${found.left_out} more`));
    } catch (error) {
      list.replaceChildren(make("li", { class: "soft" }, error.message));
    }
  }
  await open(start);
  return { read, open };
}
