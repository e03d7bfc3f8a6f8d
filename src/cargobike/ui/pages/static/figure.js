/* A figure on a card: asked for when it comes into view, drawn by Plotly, saved as a picture, read as a table. */
import { ApiError, csvCell, make, plain, save, say, shown } from "/static/shell.js";
import { Coordinates } from "/static/coordinates.js";

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const narrow = matchMedia("(max-width: 720px)");
const MOST_ROWS = 300;

let plotly = null;
function loadPlotly() {
  plotly ??= new Promise((resolve, reject) => {
    const script = make("script", { src: "/static/plotly.js" });
    script.onload = () => resolve(globalThis.Plotly);
    script.onerror = () => reject(new ApiError("Plotly could not be loaded."));
    document.head.append(script);
  });
  return plotly;
}

/* Plotly's script is large: it is loaded while the server still reads the journal. */
export const warmUp = () => (globalThis.requestIdleCallback ?? setTimeout)(() => loadPlotly().catch(() => {}));

const cards = new Set();
const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const card = [...cards].find((each) => each.element === entry.target);
    card.isInView = entry.isIntersecting;
    if (entry.isIntersecting) card.refresh();
  }
}, { rootMargin: "300px" });
addEventListener("themechange", () => cards.forEach((card) => card.show()));
narrow.addEventListener("change", () => cards.forEach((card) => card.show()));

export class FigureCard {
  /**
   * @param {string} title  shown until the figure brings its own
   * @param {() => string} address  where the figure is asked for
   * @param {{controls?: HTMLElement[], full?: boolean, onBrush?: Function, onPick?: Function}} options
   */
  constructor(title, address, options = {}) {
    this.address = address;
    this.options = options;
    this.tag = null;
    this.figure = null;
    this.isStale = true;
    this.isInView = false;
    this.titleElement = make("h3", {}, title);
    this.hint = make("p", { class: "soft" });
    this.plot = make("div", { class: "plot busy" });
    this.data = make("div", { class: "data", tabindex: "0", role: "region", "aria-label": `${title}: data` });
    this.details = make("details", { ontoggle: () => this.details.open && this.fillTable() }, make("summary", {}, "Data as a table"), this.data);
    this.isLog = false;
    this.smoothing = 0;
    this.controls = make("div", { class: "controls" }, ...(options.controls || []), ...this.viewControls(),
      make("button", { type: "button", onclick: () => this.savePicture("svg"), "aria-label": `${title}: save as SVG` }, "SVG"),
      make("button", { type: "button", onclick: () => this.savePicture("png"), "aria-label": `${title}: save as PNG` }, "PNG"),
      make("button", { type: "button", onclick: () => this.saveCsv(), "aria-label": `${title}: save the data as CSV` }, "CSV"));
    this.element = make("article", { class: `figure card${options.full ? " full" : ""}` },
      make("header", {}, make("div", {}, this.titleElement, this.hint), this.controls), this.plot, this.details);
    cards.add(this);
    watcher.observe(this.element);
  }

  /** How curves are looked at: on a log axis, smoothed. Nothing is asked of the server for it. */
  viewControls() {
    const made = [];
    if (this.options.isCurve || this.options.hasLog) {
      made.push(make("label", {}, make("input", { type: "checkbox", onchange: (event) => { this.isLog = event.target.checked; this.show(); } }), "log axis"));
    }
    if (this.options.isCurve) {
      const select = make("select", { onchange: () => { this.smoothing = Number(select.value); this.show(); } },
        ...[["0", "not smoothed"], ["0.6", "smoothed a little"], ["0.9", "smoothed"], ["0.98", "smoothed a lot"]].map(([value, word]) => make("option", { value }, word)));
      made.push(make("label", {}, make("span", { class: "hidden" }, "Smoothing"), select));
    }
    return made;
  }

  get isBusy() { return !!this.asking; }

  /** Ask for the figure if something has changed and it can be seen. */
  async refresh(isStale = false) {
    this.isStale ||= isStale;
    if (!this.isStale || !this.isInView || this.asking) return;
    this.isStale = false;
    this.asking = this.load();
    await this.asking;
    this.asking = null;
    if (this.isStale) this.refresh();
  }

  async load() {
    const address = this.address();
    try {
      const response = await fetch(address, { headers: this.tag?.address === address ? { "If-None-Match": this.tag.etag } : {} });
      if (response.status === 304) return;
      if (!response.ok) throw new ApiError((await response.json()).detail);
      this.figure = await response.json();
      this.tag = { address, etag: response.headers.get("etag") };
      await this.show();
    } catch (error) {
      this.hint.textContent = `This figure could not be shown: ${error.message}`;
    } finally {
      this.plot.classList.remove("busy");
    }
  }

  async show() {
    if (!this.figure) return;
    const { title } = this.figure.layout;
    this.titleElement.textContent = plain(title?.text);
    const hidden = this.isLog && this.figure.data.some((trace) => (trace.y || []).some((value) => typeof value === "number" && value <= 0));
    this.hint.textContent = plain(title?.subtitle?.text) + (hidden ? " · values of 0 and less have no place on a log axis" : "");
    const first = this.figure.data[0];
    if (first?.type === "parcoords") {
      this.drawing ??= new Coordinates(this.plot, this.options.onBrush);
      this.drawing.show(first, this.figure.layout);
    } else {
      const Plotly = await loadPlotly();
      await Plotly.react(this.plot, this.dressedData(), this.dressedLayout(), {
        responsive: true, displaylogo: false, showSendToCloud: false, plotlyServerURL: "",
        displayModeBar: narrow.matches ? false : "hover",
        modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d", "toImage"],
      });
      if (this.options.onPick && !this.isListening) {
        this.isListening = true;
        this.plot.on("plotly_click", (event) => {
          const found = /<b>trial (\d+)<\/b>/.exec(event.points[0].hovertext || event.points[0].text || "");
          const number = found ? Number(found[1]) : event.points[0].customdata;
          if (Number.isInteger(number)) this.options.onPick(number);
        });
      }
    }
    // Of parallel coordinates only the canvas: what can be operated beside it must not be hidden from screen readers.
    const image = this.drawing?.canvas ?? this.plot;
    // What can be operated inside, as Plotly's buttons, must not be hidden by the role of an image.
    image.setAttribute("role", this.drawing ? "img" : "figure");
    image.setAttribute("aria-label", `${this.titleElement.textContent}. ${this.hint.textContent}. The data follows as a table.`);
    if (this.details.open) this.fillTable();
  }

  dressedData() {
    // Traces of several thousand marks are left to the graphics card only if that needs no eval: so never.
    return this.figure.data.map((trace) => (this.smoothing && trace.type === "scatter" && trace.mode?.includes("lines") ? { ...trace, y: smoothed(trace.y, this.smoothing) } : { ...trace }));
  }

  dressedLayout() {
    const layout = { ...this.figure.layout };
    const legend = layout.showlegend ?? this.figure.data.length > 1;
    const own = layout.margin;
    delete layout.title; // it stands above, as text
    layout.margin = { l: 56, r: 14, b: 46, ...own, t: own?.t ? Math.max(12, own.t - 70) : legend ? 40 : 12 };
    if (narrow.matches) {
      layout.margin = { ...layout.margin, l: 44, r: 6 };
      if (layout.grid?.columns > 1) Object.assign(layout, this.stacked(layout));
    }
    if (this.isLog) {
      for (const key of Object.keys(layout).filter((each) => /^yaxis\d*$/.test(each))) layout[key] = { ...layout[key], type: "log", range: undefined, autorange: true };
    }
    layout.font = { color: style("--figure-ink"), family: style("--sans") };
    layout.paper_bgcolor = style("--card");
    layout.hoverlabel = { align: "left", bgcolor: style("--card"), bordercolor: style("--edge"), font: { color: style("--ink"), size: 12 } };
    return layout;
  }

  /** Panels side by side become panels in a column where there is no room. */
  stacked(layout) {
    const panels = Object.keys(layout).filter((key) => /^xaxis\d*$/.test(key)).length;
    return { grid: { ...layout.grid, rows: panels, columns: 1 }, height: 60 + 240 * panels };
  }

  columns() {
    const rows = [["series", "x", "y"]];
    for (const trace of this.figure?.data || []) {
      if (trace.type === "parcoords") {
        const named = trace.dimensions.map((dimension) => plain(dimension.label));
        const numbers = trace.meta?.trials || [];
        const table = [["trial", ...named]];
        numbers.forEach((number, at) => table.push([number, ...trace.dimensions.map((dimension, column) => this.valueAt(trace, column, dimension.values[at]))]));
        return table;
      }
      const name = plain(trace.name ?? "");
      if (trace.z) {
        trace.y.forEach((y, row) => trace.x.forEach((x, column) => rows.push([`${shown(x)}, ${shown(y)}`, "mean", trace.z[row][column]])));
        continue;
      }
      const xs = trace.x || [], ys = trace.y || [];
      xs.forEach((x, at) => { if (x !== null && ys[at] !== null) rows.push([trace.customdata?.[at] !== undefined && name !== "together with others" ? `${name} · trial ${trace.customdata[at]}` : name, typeof x === "string" ? plain(x) : x, typeof ys[at] === "string" ? plain(ys[at]) : ys[at]]); });
    }
    return rows;
  }

  valueAt(trace, column, position) {
    const axis = Coordinates.meaning(trace, column);
    return axis ? Coordinates.value(axis, position) : position;
  }

  fillTable() {
    const [head, ...rows] = this.columns();
    const left = rows.length - MOST_ROWS;
    this.data.replaceChildren(make("table", {},
      make("caption", { class: "hidden" }, this.titleElement.textContent),
      make("thead", {}, make("tr", {}, ...head.map((word) => make("th", { scope: "col" }, word)))),
      make("tbody", {}, ...rows.slice(0, MOST_ROWS).map((row) => make("tr", {}, ...row.map((cell) => make("td", {}, shown(cell))))))),
    ...(left > 0 ? [make("p", { class: "soft", style: { padding: "8px 10px" } }, `${left} more rows are in the CSV file.`)] : []));
  }

  get fileName() { return `${document.body.dataset.experiment || "cargobike"}-${this.titleElement.textContent.toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 60)}`; }

  saveCsv() {
    if (!this.figure) return;
    save(new Blob([this.columns().map((row) => row.map(csvCell).join(",")).join("\r\n"), "\r\n"], { type: "text/csv" }), `${this.fileName}.csv`);
  }

  async savePicture(format) {
    if (!this.figure) return;
    try {
      if (this.drawing) { save(await this.drawing.picture(format), `${this.fileName}.${format}`); return; }
      const Plotly = await loadPlotly();
      const size = this.plot.getBoundingClientRect();
      const figure = { data: this.dressedData(), layout: { ...this.dressedLayout(), title: this.figure.layout.title, margin: this.figure.layout.margin || this.figure.layout.template?.layout?.margin } };
      const url = await Plotly.toImage(figure, { format, width: Math.max(640, size.width), height: this.figure.layout.height || 420, scale: 2 });
      save(await (format === "svg" ? new Blob([decodeURIComponent(url.slice(url.indexOf(",") + 1))], { type: "image/svg+xml" }) : pngOf(url)), `${this.fileName}.${format}`);
    } catch (error) {
      say(`The picture could not be made: ${error.message ?? error}`);
    }
  }
}

/* A moving average that forgets exponentially; a gap starts it anew, and the first points are not drawn to zero. */
export function smoothed(values, weight) {
  let sum = 0, mass = 0;
  return values.map((value) => {
    if (typeof value !== "number" || !Number.isFinite(value)) { sum = mass = 0; return value; }
    sum = weight * sum + (1 - weight) * value;
    mass = weight * mass + (1 - weight);
    return sum / mass;
  });
}

function pngOf(url) {
  const raw = atob(url.slice(url.indexOf(",") + 1));
  return new Blob([Uint8Array.from(raw, (character) => character.charCodeAt(0))], { type: "image/png" });
}

export const refreshFigures = () => cards.forEach((card) => card.refresh(true));
export const isDrawing = () => [...cards].some((card) => card.isBusy);
