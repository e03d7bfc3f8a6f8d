/* What a trial has kept to be looked at: pictures, tables, texts. User code wrote it: text is only ever text, and
   pictures are decoded as pictures of four kinds, whatever is in them. */
import { ask, askJson, make } from "/static/shell.js";

const PICTURES = { png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", webp: "image/webp", gif: "image/gif" };
const TEXTS = ["txt", "md"];
const LARGEST_PICTURE = 8 << 20, LONGEST_TEXT = 20_000, LONGEST_TABLE = 400_000, MOST_ROWS = 200, MOST_COLUMNS = 40, MOST = 24, FOLDERS = 12;

const ending = (name) => name.slice(name.lastIndexOf(".") + 1).toLowerCase();
const isShown = (entry) => entry.kind === "file" && !entry.name.startsWith(".") && (ending(entry.name) in PICTURES || ending(entry.name) === "csv" || TEXTS.includes(ending(entry.name)));

async function list(experiment, start) {
  const found = [], folders = [start];
  for (let looked = 0; folders.length && looked < FOLDERS; looked++) {
    const { entries } = await askJson(`/api/v1/experiments/${experiment}/files?path=${encodeURIComponent(folders.shift())}`);
    found.push(...entries.filter(isShown));
    folders.push(...entries.filter((entry) => entry.kind === "folder").map((entry) => entry.path));
  }
  return found;
}

async function readText(url, longest) {
  const reader = (await ask(url)).body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  while (text.length < longest) {
    const { done, value } = await reader.read();
    if (done) return { text, isWhole: true };
    text += decoder.decode(value, { stream: true });
  }
  reader.cancel();
  return { text: text.slice(0, longest), isWhole: false };
}

/* CSV as RFC 4180 has it: quotes around cells, doubled inside. */
export function readCsv(text) {
  const rows = [[]];
  let cell = "", isQuoted = false;
  const endCell = () => { rows.at(-1).push(cell); cell = ""; };
  for (let at = 0; at < text.length && rows.length <= MOST_ROWS + 2; at++) {
    const letter = text[at];
    if (isQuoted) {
      if (letter !== '"') cell += letter;
      else if (text[at + 1] === '"') { cell += '"'; at++; }
      else isQuoted = false;
    } else if (letter === '"' && cell === "") isQuoted = true;
    else if (letter === ",") endCell();
    else if (letter === "\n") { endCell(); rows.push([]); }
    else if (letter !== "\r") cell += letter;
  }
  if (cell || rows.at(-1).length) endCell();
  return rows.filter((row) => row.length > 1 || row[0]);
}

function table(name, { text, isWhole }) {
  const [head = [], ...body] = readCsv(text);
  const columns = head.slice(0, MOST_COLUMNS);
  const rows = body.slice(0, MOST_ROWS);
  const isCut = !isWhole || rows.length < body.length || columns.length < head.length;
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name },
    make("table", {},
      make("caption", { class: isCut ? "soft" : "hidden" }, isCut ? `the first ${rows.length} rows, ${columns.length} columns` : name),
      make("thead", {}, make("tr", {}, ...columns.map((cell) => make("th", { scope: "col" }, cell)))),
      make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.slice(0, MOST_COLUMNS).map((cell) => make("td", {}, cell)))))));
}

async function show(experiment, entry, name) {
  const url = `/api/v1/experiments/${experiment}/files/content?path=${encodeURIComponent(entry.path)}`;
  const kind = ending(entry.name);
  if (kind === "csv") return table(name, await readText(url, LONGEST_TABLE));
  if (TEXTS.includes(kind)) {
    const { text, isWhole } = await readText(url, LONGEST_TEXT);
    return make("pre", { class: "log", tabindex: "0", role: "region", "aria-label": name }, isWhole ? text : `${text}\n…`);
  }
  if (entry.size_bytes > LARGEST_PICTURE) return make("p", { class: "soft" }, `larger than ${LARGEST_PICTURE >> 20} MB`);
  const picture = new Blob([await (await ask(url)).arrayBuffer()], { type: PICTURES[kind] });
  const image = make("img", { alt: name, style: { maxWidth: "100%", height: "auto" } });
  const address = URL.createObjectURL(picture);
  image.addEventListener("load", () => URL.revokeObjectURL(address));
  image.addEventListener("error", () => image.replaceWith(make("p", { class: "soft" }, "not a picture that can be shown")));
  image.src = address;
  return image;
}

/* Fills a section, and shows it only if there is something in it. */
export async function fillArtifacts(section, experiment, start) {
  const place = section.querySelector("[data-artifacts]");
  const found = await list(experiment, start);
  for (const entry of found.slice(0, MOST)) {
    const name = entry.path.slice(start.length + 1);
    const card = make("div", { class: "card" }, make("h3", {}, name));
    place.append(card);
    section.hidden = false;
    try { card.append(await show(experiment, entry, name)); } catch (error) { card.append(make("p", { class: "soft" }, error.message)); }
  }
  if (found.length > MOST) place.append(make("p", { class: "soft" }, `${found.length - MOST} more among the files`));
}
