/* Parallel coordinates on a canvas: ten thousand lines, selected by dragging along an axis or with the keyboard. */
import { make, plain } from "/static/shell.js";

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const TOP = 58, BOTTOM = 26, SIDE = 64, LEAST = 110, TICK = 5;

function mixed(stops, share) {
  const at = Math.min(1, Math.max(0, share));
  const next = stops.findIndex(([place]) => place >= at);
  if (next <= 0) return stops[0][1];
  const [low, one] = stops[next - 1], [high, other] = stops[next];
  const part = (at - low) / (high - low);
  const channel = (hex, index) => parseInt(hex.slice(1 + 2 * index, 3 + 2 * index), 16);
  return `rgb(${[0, 1, 2].map((index) => Math.round(channel(one, index) + part * (channel(other, index) - channel(one, index)))).join(",")})`;
}

export class Coordinates {
  /** What a position on an axis stands for. */
  static value(axis, position) {
    if (axis.kind === "choice") return axis.labels[Math.round(position)] ?? "absent";
    if (axis.floor !== null && axis.floor !== undefined && position <= axis.floor + 1e-12) return "absent";
    if (axis.scale === "log") return 10 ** position;
    if (axis.scale === "reverse-log") return axis.ceiling - 10 ** -position;
    return position;
  }

  /** The parameter behind an axis, its texts plain again; `null` for the score. */
  static meaning(trace, index) {
    const axis = trace.meta?.axes?.[index];
    return axis ? { ...axis, name: plain(axis.name), labels: axis.labels.map(plain) } : null;
  }

  constructor(place, onBrush) {
    this.place = place;
    this.onBrush = onBrush;
    this.ranges = new Map();
    this.canvas = make("canvas");
    this.scroll = make("div", { class: "coordinates", tabindex: "0", role: "group", "aria-label": "Parallel coordinates, scrollable" }, this.canvas);
    this.status = make("p", { class: "soft", role: "status" });
    this.keys = make("div", { class: "controls", role: "group", "aria-label": "Select by keyboard" });
    place.replaceChildren(this.scroll, make("details", {}, make("summary", {}, "Select without a pointer"), this.keys), this.status);
    this.canvas.addEventListener("pointerdown", (event) => this.start(event));
    this.canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) this.canvas.addEventListener(name, (event) => this.end(event));
    new ResizeObserver(() => this.trace && this.draw()).observe(place);
  }

  show(trace, layout) {
    this.trace = trace;
    this.dimensions = trace.dimensions.map((dimension, index) => {
      const values = dimension.values;
      const low = Math.min(...sample(values)), high = Math.max(...sample(values));
      return { ...dimension, range: dimension.range || [low, high === low ? low + 1 : high], axis: Coordinates.meaning(trace, index) };
    });
    for (const index of [...this.ranges.keys()]) if (index >= this.dimensions.length) this.ranges.delete(index);
    this.colours = this.lineColours(trace.line);
    this.height = (layout.height || 460) - 40;
    this.fillKeys();
    this.draw();
  }

  lineColours({ color, colorscale, reversescale }) {
    let low = Infinity, high = -Infinity;
    for (const value of color) { if (value < low) low = value; if (value > high) high = value; }
    const stops = colorscale;
    const shades = Array.from({ length: 33 }, (_, index) => mixed(stops, index / 32));
    return { of: (at) => { const share = high > low ? (color[at] - low) / (high - low) : 1; return Math.round(32 * (reversescale ? 1 - share : share)); }, shades };
  }

  get count() { return this.dimensions[0]?.values.length ?? 0; }
  x(index) { return SIDE + index * this.gap; }
  y(dimension, value) { const [low, high] = dimension.range; return this.height - BOTTOM - ((value - low) / (high - low)) * (this.height - TOP - BOTTOM); }
  at(dimension, y) { const [low, high] = dimension.range; return low + ((this.height - BOTTOM - y) / (this.height - TOP - BOTTOM)) * (high - low); }

  selected() {
    const chosen = [];
    const checks = [...this.ranges].map(([index, range]) => [this.dimensions[index].values, ...range]);
    for (let at = 0; at < this.count; at++) if (checks.every(([values, low, high]) => values[at] >= low && values[at] <= high)) chosen.push(at);
    return chosen;
  }

  draw() {
    const width = Math.max(this.place.clientWidth, 2 * SIDE + LEAST * (this.dimensions.length - 1));
    this.gap = (width - 2 * SIDE) / Math.max(1, this.dimensions.length - 1);
    const ratio = Math.min(2, devicePixelRatio || 1);
    this.canvas.width = width * ratio;
    this.canvas.height = this.height * ratio;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${this.height}px`;
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    this.paint(context, width);
  }

  paint(context, width) {
    const chosen = this.selected();
    context.clearRect(0, 0, width, this.height);
    context.lineWidth = 1;
    if (this.ranges.size) {
      context.strokeStyle = css("--edge");
      context.globalAlpha = 0.5;
      this.lines(context, Array.from({ length: Math.min(this.count, 2000) }, (_, at) => Math.floor((at * this.count) / Math.min(this.count, 2000))));
    }
    context.globalAlpha = Math.max(0.06, Math.min(0.75, 160 / Math.max(1, chosen.length)));
    const groups = this.colours.shades.map(() => []);
    for (const at of chosen) groups[this.colours.of(at)].push(at);
    // The best ones last, so that they lie on top.
    groups.forEach((group, shade) => { if (group.length) { context.strokeStyle = this.colours.shades[shade]; if (shade > 28) context.globalAlpha = Math.max(context.globalAlpha, 0.35); this.lines(context, group); } });
    context.globalAlpha = 1;
    this.axes(context);
    const total = this.count;
    this.status.textContent = this.ranges.size ? `${chosen.length.toLocaleString()} of ${total.toLocaleString()} trials selected; the table of trials shows them.` : "";
  }

  lines(context, group) {
    const xs = this.dimensions.map((_, index) => this.x(index));
    context.beginPath();
    for (const at of group) {
      this.dimensions.forEach((dimension, index) => {
        const y = this.y(dimension, dimension.values[at]);
        if (index) context.lineTo(xs[index], y); else context.moveTo(xs[0], y);
      });
    }
    context.stroke();
  }

  axes(context) {
    const ink = css("--figure-ink"), ground = css("--card");
    this.dimensions.forEach((dimension, index) => {
      const x = this.x(index), isLast = index === this.dimensions.length - 1 && index > 0;
      // Beside the axis, so that neither the axis nor the lines run through the numbers; the last one's inside the card.
      const side = isLast ? -1 : 1;
      const room = this.gap - 16;
      context.textAlign = "center";
      context.strokeStyle = ink;
      context.beginPath();
      context.moveTo(x, TOP - 6);
      context.lineTo(x, this.height - BOTTOM + 6);
      context.stroke();
      context.fillStyle = css("--ink");
      context.font = `600 13px ${css("--sans")}`;
      context.fillText(this.name(dimension), x, 18, Math.min(this.gap - 8, 2 * SIDE - 6));
      context.font = `11px ${css("--sans")}`;
      const ticks = dimension.tickvals || [dimension.range[0], (dimension.range[0] + dimension.range[1]) / 2, dimension.range[1]];
      ticks.forEach((tick, place) => {
        const text = dimension.ticktext?.[place] ?? Number(tick.toPrecision(4)).toString();
        const y = this.y(dimension, tick);
        context.strokeStyle = ink;
        context.beginPath();
        context.moveTo(x, y);
        context.lineTo(x + side * TICK, y);
        context.stroke();
        context.textAlign = isLast ? "right" : "left";
        const at = x + side * (TICK + 3);
        context.strokeStyle = ground;
        context.lineWidth = 4;
        context.lineJoin = "round";
        context.strokeText(text, at, y + 4, room);
        context.lineWidth = 1;
        context.fillStyle = ink;
        context.fillText(text, at, y + 4, room);
      });
      const range = this.ranges.get(index);
      if (range) {
        const top = this.y(dimension, range[1]), bottom = this.y(dimension, range[0]);
        context.fillStyle = css("--amber-line");
        context.globalAlpha = 0.28;
        context.fillRect(x - 9, top, 18, bottom - top);
        context.globalAlpha = 1;
        context.strokeStyle = css("--amber-line");
        context.strokeRect(x - 9, top, 18, bottom - top);
      }
    });
  }

  name(dimension) { return plain(dimension.label); }

  start(event) {
    const x = event.offsetX, index = Math.round((x - SIDE) / this.gap);
    if (index < 0 || index >= this.dimensions.length || Math.abs(x - this.x(index)) > Math.min(34, this.gap / 2)) return;
    if (event.pointerType !== "touch") event.preventDefault();
    this.canvas.setPointerCapture(event.pointerId);
    this.drag = { index, from: event.offsetY, to: event.offsetY };
  }

  move(event) {
    if (!this.drag) return;
    this.drag.to = event.offsetY;
    const dimension = this.dimensions[this.drag.index];
    const ends = [this.at(dimension, this.drag.from), this.at(dimension, this.drag.to)].sort((a, b) => a - b);
    this.ranges.set(this.drag.index, ends);
    this.soon();
  }

  end() {
    if (!this.drag) return;
    if (Math.abs(this.drag.to - this.drag.from) < 4) this.ranges.delete(this.drag.index);
    this.drag = null;
    this.changed();
  }

  soon() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => { this.frame = null; this.draw(); });
  }

  changed() {
    this.draw();
    this.fillKeys();
    this.onBrush?.(this.conditions());
  }

  /** The selection in the words of the table's filter, such as `lr>=0.001 lr<=0.01 act=relu|gelu`. */
  conditions() {
    const quoted = (text) => (/[\s|"]/.test(text) ? `"${text.replace(/["\\]/g, "\\$&")}"` : text);
    const found = [];
    for (const [index, [low, high]] of this.ranges) {
      const { axis, range } = this.dimensions[index];
      if (!axis) {
        found.push(`value>=${low.toPrecision(6)}`, `value<=${high.toPrecision(6)}`);
      } else if (axis.kind === "choice") {
        const within = axis.labels.filter((_, place) => place >= low && place <= high);
        if (axis.floor !== null && low <= axis.floor) within.push("absent");
        found.push(`${quoted(`params.${axis.name}`)}=${within.map(quoted).join("|") || '""'}`);
      } else {
        const name = quoted(`params.${axis.name}`);
        const first = Coordinates.value(axis, Math.max(low, range[0])), last = Coordinates.value(axis, Math.min(high, range[1]));
        if (typeof first === "number") found.push(`${name}>=${first.toPrecision(6)}`);
        if (typeof last === "number") found.push(`${name}<=${last.toPrecision(6)}`);
      }
    }
    return found.join(" ");
  }

  fillKeys() {
    this.keys.replaceChildren(...this.dimensions.flatMap((dimension, index) => {
      const [low, high] = this.ranges.get(index) || dimension.range;
      const step = (dimension.range[1] - dimension.range[0]) / 50;
      const input = (which, value) => make("input", {
        type: "range", min: dimension.range[0], max: dimension.range[1], step, value, "aria-label": `${this.name(dimension)}: ${which}`,
        onchange: (event) => {
          const now = this.ranges.get(index) || [...dimension.range];
          now[which === "from" ? 0 : 1] = Number(event.target.value);
          this.ranges.set(index, now);
          this.draw();
          this.onBrush?.(this.conditions());
        },
      });
      return [make("label", {}, this.name(dimension), input("from", low), input("to", high))];
    }), make("button", { type: "button", onclick: () => { this.ranges.clear(); this.changed(); } }, "Clear"));
  }

  async picture(format) {
    const width = this.canvas.clientWidth;
    if (format === "png") {
      const canvas = make("canvas", { width: width * 2, height: this.height * 2 });
      const context = canvas.getContext("2d");
      context.scale(2, 2);
      this.paint(context, width);
      context.globalCompositeOperation = "destination-over";
      context.fillStyle = css("--card");
      context.fillRect(0, 0, width, this.height);
      return new Promise((resolve) => { canvas.toBlob(resolve, "image/png"); });
    }
    const recorder = new SvgRecorder(width, this.height, css("--card"));
    this.paint(recorder, width);
    return new Blob([recorder.toString()], { type: "image/svg+xml" });
  }
}

/* Up to a limit of arguments `Math.min` takes all values at once; more are looked at in steps. */
function sample(values) {
  return values.length < 50_000 ? values : values.filter((_, at) => at % 10 === 0);
}

/* The few commands of a canvas that are used here, written down as SVG. */
class SvgRecorder {
  constructor(width, height, ground) {
    Object.assign(this, { width, height, parts: [`<rect width="${width}" height="${height}" fill="${ground}"/>`], path: "", globalAlpha: 1, lineWidth: 1, strokeStyle: "#000", fillStyle: "#000", font: "11px sans-serif" });
  }
  clearRect() {}
  beginPath() { this.path = ""; }
  moveTo(x, y) { this.path += `M${x.toFixed(1)} ${y.toFixed(1)}`; }
  lineTo(x, y) { this.path += `L${x.toFixed(1)} ${y.toFixed(1)}`; }
  stroke() { this.parts.push(`<path d="${this.path}" fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}" stroke-opacity="${this.globalAlpha}"/>`); }
  text(text, x, y, paint) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", "text");
    node.textContent = text;
    const [, weight, size, family] = /^(\d+ )?([\d.]+)px (.*)$/.exec(this.font) || [null, "", "11", "sans-serif"];
    const safe = new XMLSerializer().serializeToString(node).replace(/^<text[^>]*>|<\/text>$/g, "").replace(/^<text[^>]*\/>$/, "");
    this.parts.push(`<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${{ left: "start", right: "end" }[this.textAlign] ?? "middle"}" font-size="${size}" font-weight="${(weight || "400").trim()}" font-family="${family.replaceAll('"', "'")}" ${paint}>${safe}</text>`);
  }
  strokeText(text, x, y) { this.text(text, x, y, `fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}" stroke-linejoin="round"`); }
  fillText(text, x, y) { this.text(text, x, y, `fill="${this.fillStyle}"`); }
  rect(x, y, width, height, paint) { this.parts.push(`<rect x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${width}" height="${height.toFixed(1)}" ${paint}/>`); }
  fillRect(x, y, width, height) { this.rect(x, y, width, height, `fill="${this.fillStyle}" fill-opacity="${this.globalAlpha}"`); }
  strokeRect(x, y, width, height) { this.rect(x, y, width, height, `fill="none" stroke="${this.strokeStyle}"`); }
  toString() { return `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}">${this.parts.join("")}</svg>`; }
}
