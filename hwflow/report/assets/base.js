"use strict";
/* Elements, numbers and names. Text of models only ever becomes textContent. */
const hw = { data: JSON.parse(document.getElementById("data").textContent), redraw: [] };

// Controls, marks of direction and what has no width are shown by their numbers, so that no name looks like another.
hw.show = (text) => String(text ?? "").replace(
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g,
  (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

hw.short = (text, most) => {
  const shown = [...hw.show(text)];
  if (shown.length <= most) return shown.join("");
  const end = Math.ceil((most - 1) * 0.62);
  return shown.slice(0, most - 1 - end).join("") + "\u2026" + shown.slice(-end).join("");
};

// Exporters' names are paths, or several of them: the last two parts of the last one say most.
hw.label = (name) => name.split(";").at(-1).split("/").slice(-2).join("/") || name;

hw.fill = (element, attributes, children) => {
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "text") element.textContent = hw.show(value);
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key.startsWith("--") || key === "width%") element.style.setProperty(key === "width%" ? "width" : key, key === "width%" ? value + "%" : value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children ?? []) if (child !== null && child !== undefined) element.append(child.nodeType ? child : hw.show(child));
  return element;
};
hw.el = (tag, attributes, ...children) => hw.fill(document.createElement(tag), attributes, children);
hw.svg = (tag, attributes, ...children) => hw.fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

hw.int = d3.format(",");
hw.count = (x) => x === null || x === undefined ? "\u2013" : Number.isInteger(x) ? hw.int(x) : d3.format(",.1f")(x);
hw.brief = (x) => x >= 1e4 ? d3.format(".3~s")(x).replace(/(?=[a-zA-Z\u00b5])/, "\u2009") : hw.count(Math.round(x * 10) / 10);
hw.percent = (x, digits = 1) => x === null || x === undefined ? "\u2013" : (100 * x).toFixed(x >= 0.9995 ? 0 : digits) + "\u2009%";
hw.time = (cycles, mhz) => {
  if (!mhz) return hw.int(cycles) + " cycles";
  const us = cycles / mhz;
  const [value, unit] = us < 1 ? [us * 1e3, "ns"] : us < 1e3 ? [us, "\u00b5s"] : us < 1e6 ? [us / 1e3, "ms"] : [us / 1e6, "s"];
  return (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)) + "\u2009" + unit;
};
hw.color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

const LINEAR = ["mvu", "stream_matrix", "product", "neurons", "tree_ensemble", "add", "sum", "depthwise", "elementwise"];
const PLUMBING = ["frame_sync", "relay", "fork", "width_converter", "fifo", "delay", "followed_by"];
hw.kinds = { linear: ["accent", "arithmetic"], move: ["teal", "windows and order"], requantize: ["warm", "requantizer"], pool: ["violet", "pooling"], plumbing: ["gray", "plumbing"] };
hw.kind = (op) => PLUMBING.includes(op) ? "plumbing" : op.includes("requantize") ? "requantize" : op.includes("pool") || op.includes("max") ? "pool"
  : /window|rearrange|reindex|buffer|concat|part|take|repeat|split/.test(op) ? "move" : "linear";
hw.kindColor = (op) => "var(--" + hw.kinds[hw.kind(op)][0] + ")";

hw.layers = hw.data.report.layers;
hw.mhz = hw.data.report.clock.target_mhz;
hw.interval = hw.data.report.timing.initiation_interval;
hw.resources = { lut: "LUT", ff: "FF", dsp: "DSP", bram: "BRAM" };
hw.words = { lut: "look-up tables", ff: "flip-flops", dsp: "multiplier blocks", bram: "block RAMs" };
hw.busy = (layer) => layer.initiation_interval / hw.interval;
hw.core = (number) => number < 0 ? "host" : hw.layers[number].name;

hw.section = (id, title, lead, tools) => {
  const words = hw.el("div", {}, hw.el("h2", { text: title }), lead ? hw.el("p", { class: "lead", text: lead }) : null);
  const section = hw.el("section", { id }, hw.el("div", { class: "head" }, words, tools ? hw.el("div", { class: "tools" }, ...tools) : null));
  document.getElementById("page").append(section);
  document.getElementById("sections").append(hw.el("a", { href: "#" + id, text: title }));
  return section;
};

hw.segments = (label, choices, chosen, action) => {
  const buttons = Object.entries(choices).map(([key, text]) => hw.el("button", { type: "button", "aria-pressed": key === chosen ? "true" : "false", text, onclick: () => {
    for (const button of buttons) button.setAttribute("aria-pressed", button === buttons[Object.keys(choices).indexOf(key)] ? "true" : "false");
    action(key);
  } }));
  return hw.el("div", { class: "seg", role: "group", "aria-label": label }, ...buttons);
};

hw.tip = (event, title, lines) => {
  const tip = document.getElementById("tip");
  if (!title) { tip.hidden = true; return; }
  tip.replaceChildren(hw.el("b", { text: title }), ...lines.filter(Boolean).map((text) => hw.el("span", { text })));
  tip.hidden = false;
  const { offsetWidth: width, offsetHeight: height } = tip;
  tip.style.left = Math.max(8, Math.min(event.clientX + 14, innerWidth - width - 8)) + "px";
  tip.style.top = (event.clientY + 18 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 18) + "px";
};

hw.choose = () => {};  // set by the graph: shows a core's details
