/* The table of trials: rows are asked for page by page and only those in view are elements. */
import { askJson, duration, make, shown } from "/static/shell.js";

const ROW = 36, PAGE = 100, SPARE = 8;

export class TrialTable {
  constructor(place, experiment, { onCount, onChoose }) {
    Object.assign(this, { place, experiment, onCount, onChoose });
    this.query = "";
    this.state = "";
    this.sort = "trial";
    this.descending = false;
    this.chosen = new Set();
    this.pages = new Map();
    this.total = 0;
    this.version = 0;
    this.columns = [];
    this.all = [];
    this.hidden = new Set();
    try { this.hidden = new Set(JSON.parse(localStorage.getItem(this.memory)) ?? []); } catch { /* none are hidden */ }
    place.addEventListener("scroll", () => this.soon(), { passive: true });
    new ResizeObserver(() => this.soon()).observe(place);
  }

  get parameters() {
    const params = new URLSearchParams({ sort: this.sort, descending: this.descending });
    if (this.query) params.set("q", this.query);
    if (this.state) params.set("state", this.state);
    return params;
  }

  /** Name the columns: those that all experiments have, then parameters and metrics of this one. */
  setColumns(detail) {
    // A column that can only be empty is left out: of several goals none is the value, and without reports there are no steps.
    const hasValue = !Object.keys(detail.objectives).length;
    const fixed = [["trial", "trial", 76], ["state", "state", 126], ...(hasValue ? [["value", detail.metric || "value", 134]] : [])];
    const params = detail.tableParams.map((name) => [`params.${name}`, name, 130]);
    const metrics = detail.tableMetrics.map((name) => [`metrics.${name}`, name, 134]);
    const columns = [...fixed, ...params, ...metrics, ["duration", "took", 96], ["attempts", "attempts", 90], ...(detail.points ? [["last_step", "last step", 108]] : [])];
    this.isOver = detail.state !== "running";
    this.all = columns;
    this.show(columns.filter(([key]) => !this.hidden.has(key)));
  }

  /** Leave a column out, or show it again; remembered for this experiment. */
  choose(key, isShown) {
    if (isShown) this.hidden.delete(key); else this.hidden.add(key);
    try { localStorage.setItem(this.memory, JSON.stringify([...this.hidden])); } catch { /* not kept */ }
    this.show(this.all.filter(([each]) => !this.hidden.has(each)));
    this.draw();
  }

  get memory() { return `cargobike-columns-${this.experiment}`; }

  show(columns) {
    if (JSON.stringify(columns) === JSON.stringify(this.columns)) return;
    this.columns = columns;
    this.body = make("div", { class: "body", role: "rowgroup" });
    this.head = make("div", { role: "row", "aria-rowindex": "1" },
      make("span", { role: "columnheader" }, make("span", { class: "hidden" }, "Compare")),
      ...columns.map(([key, title]) => make("span", { role: "columnheader", "data-key": key, title: key }, make("button", { type: "button", onclick: () => this.sortBy(key) }, title))));
    this.grid = make("div", { class: "grid", role: "table", "aria-label": "Trials", },
      make("div", { class: "head", role: "rowgroup" }, this.head), this.body);
    const widths = columns.map(([, , width]) => width);
    this.grid.style.setProperty("--columns", `44px ${widths.map((width) => `minmax(${width}px, ${width}fr)`).join(" ")}`);
    this.grid.style.width = `max(100%, ${44 + widths.reduce((sum, width) => sum + width, 0)}px)`;
    this.place.replaceChildren(this.grid);
  }

  sortBy(key) {
    this.descending = this.sort === key ? !this.descending : key === "value" || key.startsWith("metrics.");
    this.sort = key;
    this.restart();
  }

  filter(query, state) {
    if (query === this.query && state === this.state) return;
    this.query = query;
    this.state = state;
    this.restart();
  }

  restart() {
    this.pages.clear();
    this.place.scrollTop = 0;
    return this.load(0);
  }

  /** Ask again for what is in view: something has changed. */
  async reload() {
    const first = Math.floor(this.place.scrollTop / ROW / PAGE);
    this.stale = new Set(this.pages.keys());
    await this.load(first);
    for (const page of this.stale) if (page !== first) this.pages.delete(page);
  }

  async load(page) {
    const params = this.parameters;
    const key = params.toString();
    params.set("offset", page * PAGE);
    params.set("limit", PAGE);
    try {
      const found = await askJson(`/api/v1/experiments/${this.experiment}/trials?${params}`);
      if (key !== this.parameters.toString()) return;
      this.pages.set(page, found.trials);
      Object.assign(this, { total: found.total, best: found.best, version: found.version, marks: found.marks });
      this.onCount(found.total, found.all, null, found.hidden);
    } catch (error) {
      this.pages.set(page, []);
      this.total = 0;
      this.onCount(0, 0, error.message);
    }
    this.draw();
  }

  soon() {
    if (this.frame || !this.grid) return;
    this.frame = requestAnimationFrame(() => { this.frame = null; this.draw(); });
  }

  draw() {
    if (!this.grid) return;
    const sample = this.pages.get(0)?.[0];
    for (const cell of this.head.children) {
      const key = cell.dataset.key;
      if (key && sample) cell.classList.toggle("number", key === "value" || ["attempts", "last_step"].includes(key) || typeof this.raw(key, sample) === "number");
      if (cell.dataset.key === this.sort) cell.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
    this.grid.setAttribute("aria-rowcount", this.total + 1);
    this.body.style.height = `${this.total * ROW}px`;
    const first = Math.max(0, Math.floor(this.place.scrollTop / ROW) - SPARE);
    const last = Math.min(this.total, Math.ceil((this.place.scrollTop + this.place.clientHeight) / ROW) + SPARE);
    const focus = document.activeElement?.closest?.(".body [role=row]") ? [document.activeElement.closest("[role=row]").dataset.trial, document.activeElement.tagName] : null;
    const rows = [];
    for (let at = first; at < last; at++) {
      const page = Math.floor(at / PAGE);
      const trial = this.pages.get(page)?.[at % PAGE];
      if (!this.pages.has(page)) { this.pages.set(page, []); this.load(page); }
      rows.push(this.row(at, trial));
    }
    this.body.replaceChildren(...rows);
    if (focus) this.body.querySelector(`[data-trial="${focus[0]}"] ${focus[1].toLowerCase()}`)?.focus({ preventScroll: true });
  }

  row(at, trial) {
    const place = { top: `${at * ROW}px` };
    if (!trial) return make("div", { role: "row", style: place, "aria-rowindex": at + 2 }, make("span", { role: "cell" }), make("span", { role: "cell", class: "wait" }, "…"));
    const box = make("input", { type: "checkbox", "aria-label": `Compare trial ${trial.trial}`, onchange: (event) => {
      if (event.target.checked) this.chosen.add(trial.trial); else this.chosen.delete(trial.trial);
      this.onChoose(this.chosen);
    } });
    box.checked = this.chosen.has(trial.trial);
    return make("div", { role: "row", style: place, "aria-rowindex": at + 2, "data-trial": trial.trial, class: trial.trial === this.best ? "best-row" : "" },
      make("span", { role: "cell" }, box), ...this.columns.map(([key]) => this.cell(key, trial)));
  }

  raw(key, trial) {
    const [kind, name] = [key.slice(0, key.indexOf(".")), key.slice(key.indexOf(".") + 1)];
    if (kind === "params" || kind === "metrics") return trial[kind][name];
    return { value: trial.value, duration: duration(trial.duration_s), attempts: trial.attempts, last_step: trial.last_step }[key];
  }

  cell(key, trial) {
    if (key === "trial") return make("span", { role: "cell" }, make("a", { href: `/experiments/${this.experiment}/trials/${trial.trial}` }, String(trial.trial)), trial.trial === this.best ? make("span", { title: "best" }, " ★") : null, this.marks?.[trial.trial] ? make("span", { class: "marked", title: `marked: ${this.marks[trial.trial]}` }, this.marks[trial.trial] === "star" ? " ☆" : " ∅") : null);
    if (key === "state") return make("span", { role: "cell" }, make("span", { class: `badge ${trial.state}` }, make("i", { "aria-hidden": "true" }), trial.state === "pending" && this.isOver ? "not run" : trial.state));
    const value = this.raw(key, trial);
    const text = shown(value);
    const isNumber = typeof value === "number";
    return make("span", { role: "cell", class: `${isNumber ? "number" : ""} ${key === "value" ? "value" : ""}`, title: text }, text);
  }
}
