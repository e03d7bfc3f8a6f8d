"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const figures = read("figure-data");
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
      responsive: true, displaylogo: false, showSendToCloud: false, plotlyServerURL: "",
      modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"],
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
})();
