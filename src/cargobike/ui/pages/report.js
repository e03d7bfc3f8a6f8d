"use strict";
(() => {
  const table = JSON.parse(document.getElementById("table-data").textContent);

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
