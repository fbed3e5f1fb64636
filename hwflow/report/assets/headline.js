"use strict";
/* What the design is, how fast, how large, and what limits it. */
hw.headline = () => {
  const { report, board, simulation, comparison } = hw.data;
  const { timing, clock, link } = report;
  const page = document.getElementById("page");
  document.title = hw.show(report.model.name) + " \u00b7 hwflow report";
  const frames = timing.frames_per_second, fit = timing.exact === false ? "at most " : "";
  const badges = [];
  if (simulation) badges.push([simulation.verdict === "equal" ? "good" : "bad", `simulation: ${hw.int(simulation.frames)} frames ${simulation.verdict === "equal" ? "equal, bit for bit" : "DIFFER"}`]);
  if (comparison) badges.push([comparison.verdict === "equal" ? "good" : "bad", `reference evaluator: ${comparison.verdict === "equal" ? "equal" : "DIFFERENT"} on ${hw.int(comparison.frames)} frames`]);
  if (report.exactness.proved) badges.push(["good", `${hw.int(report.exactness.proved)} requantizer${report.exactness.proved === 1 ? "" : "s"} proved exact`]);
  if (clock.fmax_mhz !== null) badges.push([clock.fmax_mhz >= clock.target_mhz ? "good" : "bad", `clock ${clock.fmax_mhz >= clock.target_mhz ? "met" : "missed"} after routing`]);
  badges.push(["", report.device], ["", report.toolchain]);
  page.append(hw.el("h1", { class: "name", text: report.model.name }), hw.el("p", { class: "kicker", text: [board.title, report.model.parameters && `${hw.int(report.model.parameters)} parameters`, report.model.macs_without_padding && `${hw.int(report.model.macs_without_padding)} multiply-accumulates a frame`].filter(Boolean).join(", ") }),
    hw.el("div", { class: "badges" }, ...badges.map(([kind, text]) => hw.el("span", { class: "badge " + kind, text }))));

  const tile = (label, value, unit, note, id) => hw.el("div", { class: "card tile", id }, hw.el("div", { class: "label", text: label }),
    hw.el("div", { class: "value" }, value, unit ? hw.el("small", { text: "\u2009" + unit }) : null), hw.el("div", { class: "note", text: note }));
  const accuracy = simulation?.accuracy ?? comparison?.accuracy ?? null;
  const [latency, latencyUnit] = hw.time(timing.latency, hw.mhz).split("\u2009");
  page.append(hw.el("div", { class: "tiles" },
    tile("Throughput", frames >= 1e6 ? d3.format(".3~f")(frames / 1e6) : hw.int(Math.round(frames)), frames >= 1e6 ? "M frames/s" : "frames/s",
      link ? `over the board's link at most ${hw.int(Math.floor(link.frames_per_second))}` : "of the core", "throughput"),
    tile("Latency", fit + latency, latencyUnit, `${hw.int(timing.latency)} cycles from the first beat in to the first beat out`, "latency"),
    tile("Clock", d3.format(".4~f")(clock.target_mhz), "MHz", clock.fmax_mhz === null ? "not placed and routed" : `reached ${clock.fmax_mhz.toFixed(1)} MHz after routing`, "clock"),
    accuracy !== null ? tile("Accuracy", (100 * accuracy).toFixed(2), "%", "of the labels, " + (simulation?.accuracy != null ? `simulated, ${hw.int(simulation.frames)} frames` : `golden model, ${hw.int(comparison.frames)} frames`), "accuracy")
      : tile("Multipliers busy", report.multiplier_utilization === null ? "\u2013" : (100 * report.multiplier_utilization).toFixed(1), report.multiplier_utilization === null ? "" : "%",
        "share of cycles with a product of data", "busy")));

  const limit = hw.el("div", { class: "card pad limit", id: "limit" }, hw.el("h3", { text: "What limits it" }), ...hw.limits());
  const gauges = Object.entries(hw.resources).map(([key, name]) => {
    const row = report.resources[key], used = row.synthesized ?? row.predicted, there = row.available;
    return hw.el("div", { class: "gauge" }, hw.el("div", { class: "row" }, hw.el("span", { text: hw.words[key] }),
      hw.el("span", { class: "num" }, hw.el("b", { text: hw.int(used) }), there ? ` of ${hw.int(there)} (${hw.percent(used / there)})` : "")),
    hw.el("div", { class: "track", role: "img", "aria-label": `${name}: ${used} of ${there}` }, hw.el("i", { "width%": there ? Math.min(100, 100 * used / there) : 0 }),
      row.synthesized !== null && there ? hw.mark(row.predicted / there) : null));
  });
  const synthesized = report.resources.lut.synthesized !== null;
  page.append(hw.el("div", { class: "two" }, limit, hw.el("div", { class: "card pad" }, hw.el("h3", { text: synthesized ? "Resources, synthesized (mark: predicted)" : "Resources, predicted" }), hw.el("div", { class: "gauges" }, ...gauges))));
};

hw.mark = (share) => { const mark = hw.el("u"); mark.style.left = `calc(${Math.min(100, 100 * share)}% - 1px)`; return mark; };

hw.limits = () => {
  const { report, dataflow } = hw.data, { timing, link } = report, limit = dataflow?.limit, lines = [];
  const say = (...parts) => lines.push(hw.el("p", {}, ...parts));
  const frames = (interval) => hw.mhz ? `${hw.int(Math.round(hw.mhz * 1e6 * (timing.interleave ?? 1) / interval))} frames/s` : "";
  if (limit?.circuit) {
    const circuit = timing.circuit, many = circuit.rounds;
    say("The interval, ", hw.el("b", { text: `${hw.int(hw.interval)} cycles` }), ", is the latency of the circuit through ", `${circuit.states.length} ${circuit.states.length === 1 ? "state" : "states"}`,
      many > 1 ? `, with ${many} rounds of a loop one after the other. Independent frames make use of the time (--interleave auto).` : ". Independent channels make use of the time (--channels).");
  } else if (limit) {
    const names = limit.cores.map((n) => hw.layers[n].name), shown = names.slice(0, 3);
    const links = shown.map((name, k) => hw.el("b", { class: "name", text: hw.short(hw.label(name), 44) + (k + 1 < shown.length ? ", " : "") }));
    say(...links, names.length > 3 ? ` and ${names.length - 3} more` : "", names.length > 1 ? " take " : " takes ", hw.el("b", { text: `${hw.int(limit.cycles)} cycles` }),
      names.length > 1 ? " a frame each, as many as no other core: the interval" : " a frame, more than every other core: the interval", limit.cycles < hw.interval ? ` is ${hw.int(hw.interval)} with bursts between cores.` : ".");
    const next = limit.faster;
    if (next) {
      const costs = Object.entries(hw.resources).filter(([key]) => next[key]).map(([key, name]) =>
        hw.el("span", { class: "chip" + (next.lacks.includes(key) ? " bad" : ""), text: `${next[key] > 0 ? "+" : "\u2212"}${hw.int(Math.abs(next[key]))} ${name}` }));
      say("One step faster, ", hw.el("b", { text: `${hw.int(next.interval)} cycles` }), hw.mhz ? ` (${frames(next.interval)})` : "", ", costs about ", hw.el("span", { class: "cost" }, ...(costs.length ? costs : ["nothing"])),
        next.lacks.length ? `: the part lacks ${next.lacks.map((key) => hw.words[key]).join(" and ")}.` : ".");
    } else say("No core has a larger folding that is faster.");
  }
  if (link) say(link.limit === "link" ? `The link (${link.transport}) carries at most ${hw.int(Math.floor(link.frames_per_second))} frames/s of ${hw.int(link.input_bytes)} bytes in and ${hw.int(link.output_bytes)} out: it limits what a host gets.`
    : `The link (${link.transport}) would carry ${hw.int(Math.floor(link.frames_per_second))} frames/s: the core limits.`);
  if (report.larger_design) say(`A larger design of ${hw.int(report.larger_design.initiation_interval)} cycles was not routed (${report.larger_design.reason}); this one replaces it.`);
  if (!lines.length) say("The folder has no dataflow.json: run 'hwflow synth' again.");
  return lines;
};
