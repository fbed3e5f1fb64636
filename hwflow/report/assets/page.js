"use strict";
/* Theme, sections in order, the foot of the page. */
(() => {
  const root = document.documentElement, button = document.getElementById("theme"), wanted = matchMedia("(prefers-color-scheme: dark)");
  let stored = null;
  try { stored = localStorage.getItem("hwflow-theme"); } catch { /* of a file some browsers keep nothing */ }
  if (stored === "dark" || stored === "light") root.dataset.theme = stored;
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : wanted.matches;
  const icon = () => {
    const sun = "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1.1 1.1M11.9 11.9 13 13M13 3l-1.1 1.1M4.1 11.9 3 13", moon = "M13.5 9.7A5.8 5.8 0 0 1 6.3 2.5 5.8 5.8 0 1 0 13.5 9.7";
    button.replaceChildren(hw.svg("svg", { width: 16, height: 16, viewBox: "0 0 16 16", fill: "none", stroke: "currentColor", "stroke-width": 1.5, "stroke-linecap": "round", "stroke-linejoin": "round", "aria-hidden": "true" }, hw.svg("path", { d: dark() ? sun : moon })));
  };
  const changed = () => { icon(); for (const redraw of hw.redraw) redraw(); };
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; try { localStorage.setItem("hwflow-theme", root.dataset.theme); } catch { /* likewise */ } changed(); });
  wanted.addEventListener("change", changed);
  icon();

  hw.headline();
  hw.graph();
  hw.bars();
  hw.timeline();
  hw.queues();
  hw.roofline();
  hw.ranges();
  hw.noise();
  hw.path();
  hw.findings();

  const { report } = hw.data, versions = Object.entries(report.versions).filter(([, version]) => version);
  document.getElementById("about").append(
    hw.el("p", { text: `Model SHA-256 ${report.model.sha256}` }),
    hw.el("p", { text: versions.map(([name, version]) => `${name} ${version}`).join(", ") }),
    hw.el("p", { text: `Drawn with d3 ${d3.version} (ISC) and dagre ${dagre.version?.version ?? dagre.version ?? ""} (MIT).` }));
  root.dataset.ready = String(Math.round(performance.now()));
})();
