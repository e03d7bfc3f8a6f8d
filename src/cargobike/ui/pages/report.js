"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const figures = read("figure-data"), table = read("table-data");
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const narrow = matchMedia("(max-width: 760px)");

  /* Figures are drawn when they come into view: a page with ten thousand trials opens at once. */
  const drawn = new Set();
  function dressed(figure, element) {
    const layout = { ...figure.layout, font: { ...figure.layout.font, color: style("--figure-ink") } };
    layout.paper_bgcolor = style("--card");
    layout.hoverlabel = {
      align: "left", bgcolor: style("--card"), bordercolor: style("--edge"), font: { color: style("--ink"), size: 12 },
    };
    if (narrow.matches && !element.closest(".wide")) layout.margin = { ...layout.margin, l: 44, r: 8 };
    return layout;
  }
  function draw(element) {
    const figure = figures[element.dataset.figure];
    drawn.add(element);
    Plotly.react(element, figure.data, dressed(figure, element), {
      responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"],
      displayModeBar: narrow.matches || figure.layout.height < 300 ? false : "hover",
    });
  }
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting && !drawn.has(entry.target)) draw(entry.target);
    }
  }, { rootMargin: "600px" });
  const places = [...document.querySelectorAll("[data-figure]")];
  for (const element of places) {
    element.style.minHeight = `${figures[element.dataset.figure].layout.height || 420}px`;
    watcher.observe(element);
  }
  const redraw = () => drawn.forEach(draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  narrow.addEventListener("change", redraw);
  addEventListener("beforeprint", () => places.forEach(draw));
  for (const button of document.querySelectorAll("[data-shows]")) {
    button.addEventListener("click", () => {
      const element = document.getElementById(button.dataset.target);
      for (const other of button.parentElement.children) other.setAttribute("aria-pressed", String(other === button));
      element.dataset.figure = button.dataset.shows;
      draw(element);
    });
  }

  /* The table: all rows are data, only those on show are elements, and text stays text. */
  const body = document.querySelector("#table tbody"), head = document.querySelector("#table thead tr");
  const search = document.getElementById("search"), state = document.getElementById("state");
  const count = document.getElementById("count"), more = document.getElementById("more");
  const PAGE = 50;
  let sortBy = table.sorted, falling = table.falling, visible = PAGE;
  const numeric = table.columns.map((_, at) => table.rows.every((row) => row[at] === null || typeof row[at] === "number"));
  function shown(value) {
    if (value === null) return "";
    if (typeof value === "number") return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(6)));
    return String(value);
  }
  function compare(one, other) {
    const a = one[sortBy], b = other[sortBy];
    if (a === null || b === null) return (a === null) - (b === null) || one[0] - other[0];
    const order = typeof a === "number" && typeof b === "number" ? a - b : shown(a).localeCompare(shown(b));
    return (falling ? -order : order) || one[0] - other[0];
  }
  function fill() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = table.rows.filter((row) => {
      if (state.value && row[1] !== state.value) return false;
      const text = words.length ? row.map((value, at) => `${table.columns[at]}=${shown(value)}`).join(" ").toLowerCase() : "";
      return words.every((word) => text.includes(word));
    }).sort(compare);
    body.replaceChildren(...rows.slice(0, visible).map((row) => {
      const line = document.createElement("tr");
      if (row[0] === table.best) line.className = "best";
      row.forEach((value, at) => {
        const cell = document.createElement("td");
        cell.textContent = cell.title = shown(value);
        if (numeric[at]) cell.className = "number";
        if (at === 1) cell.className = value;
        line.append(cell);
      });
      return line;
    }));
    count.textContent = `${Math.min(visible, rows.length)} of ${rows.length} trials`;
    more.hidden = rows.length <= visible;
    [...head.children].forEach((cell, at) => {
      if (at === sortBy) cell.setAttribute("aria-sort", falling ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
  }
  table.columns.forEach((name, at) => {
    const cell = document.createElement("th"), button = document.createElement("button");
    button.textContent = name;
    cell.scope = "col";
    if (numeric[at]) cell.className = "number";
    button.addEventListener("click", () => {
      falling = sortBy === at ? !falling : numeric[at] && at > 0;
      sortBy = at;
      fill();
    });
    cell.append(button);
    head.append(cell);
  });
  search.addEventListener("input", () => { visible = PAGE; fill(); });
  state.addEventListener("change", () => { visible = PAGE; fill(); });
  more.addEventListener("click", () => { visible += 200; fill(); });
  fill();
})();
