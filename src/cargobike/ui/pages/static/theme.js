"use strict";
/* Runs before the page is painted, so that it is never painted in the wrong colours. */
(() => {
  let chosen = null;
  try { chosen = localStorage.getItem("cargobike-theme"); } catch { /* no storage: as the system */ }
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
})();
