"use strict";
/* The roofline of the board, ranges of values, the clock's critical path, requantizers, findings. */
hw.roofline = () => {
  const { report } = hw.data, { link, timing } = report, dsp = report.resources.dsp.available, macs = report.model.macs_without_padding;
  const made = report.layers.reduce((sum, layer) => sum + (layer.macs ? layer.multipliers : 0), 0);
  if (!hw.mhz || !macs || !link) return;
  const bytes = link.input_bytes + link.output_bytes, frames = timing.frames_per_second, hz = hw.mhz * 1e6;
  const peak = Math.max(1, dsp ?? 0) * hz, own = Math.max(1, made) * hz, bandwidth = link.frames_per_second * bytes, intensity = macs / bytes;
  const section = hw.section("roofline", "Roofline", "Multiply-accumulates a second over those for each byte that passes the link. Roofs: all multiplier blocks of the part, all multipliers of the design; the slope is what the link carries.");
  const holder = hw.el("div", { class: "card pad" });
  section.append(holder);
  const points = [["core", intensity, macs * frames, "accent"], ["over the link", intensity, macs * Math.min(frames, link.frames_per_second), "warm"]];
  const draw = () => {
    const width = Math.max(280, holder.clientWidth - (innerWidth < 560 ? 28 : 40)), height = Math.min(380, Math.max(260, width * 0.42)), left = 62, bottom = 42, right = 14;
    const top = Math.max(peak, own, points[0][2]) * 4, low = Math.min(points[1][2], bandwidth * intensity) / 12, span = [Math.min(intensity, peak / bandwidth) / 30, Math.max(intensity, peak / bandwidth, own / bandwidth) * 8];
    const x = d3.scaleLog(span, [left, width - right]), y = d3.scaleLog([low, top], [height - bottom, 8]);
    const svg = hw.svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": "Roofline" });
    const tick = d3.format("~s");
    const powers = (scale) => { const [a, b] = scale.domain(), all = d3.range(Math.ceil(Math.log10(a)), Math.floor(Math.log10(b)) + 1), every = Math.ceil(all.length / (width < 500 ? 5 : 9)); return all.filter((k) => k % every === 0).map((k) => 10 ** k); };
    for (const v of powers(x)) svg.append(hw.svg("line", { x1: x(v), x2: x(v), y1: 8, y2: height - bottom, stroke: "var(--grid)" }), hw.svg("text", { x: x(v), y: height - bottom + 17, "text-anchor": "middle", text: v < 1 ? v.toPrecision(1) : tick(v) }));
    for (const v of powers(y)) svg.append(hw.svg("line", { x1: left, x2: width - right, y1: y(v), y2: y(v), stroke: "var(--grid)" }), hw.svg("text", { x: left - 8, y: y(v) + 4, "text-anchor": "end", text: tick(v) }));
    svg.append(hw.svg("text", { x: (left + width) / 2, y: height - 6, "text-anchor": "middle", text: "multiply-accumulates a byte" }), hw.svg("text", { x: 14, y: 20, transform: `rotate(-90 14 20)`, "text-anchor": "end", text: "multiply-accumulates a second" }));
    const inside = (v) => Math.max(low, Math.min(top, v)), clipped = (roof) => { const ridge = Math.min(span[1], roof / bandwidth), begin = Math.max(span[0], low / bandwidth); return `M${x(begin)},${y(inside(begin * bandwidth))}L${x(ridge)},${y(inside(ridge * bandwidth))}L${x(span[1])},${y(inside(roof))}`; };
    if (dsp) svg.append(hw.svg("path", { d: clipped(peak), fill: "none", stroke: "var(--ink)", "stroke-width": 1.8 }));
    if (made) svg.append(hw.svg("line", { x1: x(Math.min(span[1], Math.max(span[0], own / bandwidth))), x2: width - right, y1: y(own), y2: y(own), stroke: "var(--accent)", "stroke-dasharray": "5 4", "stroke-width": 1.5 }));
    for (const [label, px, py, color] of points) svg.append(hw.svg("circle", { cx: x(px), cy: y(py), r: 6, fill: `var(--${color})`, stroke: "var(--surface)", "stroke-width": 2 }));
    const dot = (color) => hw.el("span", { class: "dot round", "--c": `var(--${color})` }), line = (style) => hw.el("span", { class: "stroke " + style });
    holder.replaceChildren(svg, hw.el("div", { class: "notes" },
      dsp ? hw.el("span", {}, line("whole"), `${hw.int(dsp)} multiplier blocks of the part and the link (${hw.brief(bandwidth)}B/s): ${hw.brief(peak)}MAC/s`) : null,
      made ? hw.el("span", {}, line("dashed"), `${hw.int(made)} multipliers of the design: ${hw.brief(own)}MAC/s`) : null,
      ...points.map(([label, , py, color]) => hw.el("span", {}, dot(color), `${label}: ${hw.brief(py)}MAC/s`))));
  };
  draw();
  addEventListener("resize", draw);
};

hw.ranges = () => {
  const streams = (hw.data.dataflow?.streams ?? []).filter((s) => s.beats !== null || s.from < 0 || s.depth === 0);
  const unique = [...new Map(streams.map((s) => [s.onnx || s.name, s])).values()];
  if (!unique.length) return;
  const compared = new Map((hw.data.comparison?.values ?? []).map((row) => [row.name, { ...row }]));
  for (const range of hw.data.comparison?.ranges ?? []) Object.assign(compared.get(range.name) ?? {}, range);
  const measured = [...compared.values()].some((row) => row.least !== undefined);
  const section = hw.section("ranges", "Values", "The integers of each stream: the bar is what the compiler proved possible within the type" + (measured ? ", the dark part what the compared frames had." : ". 'hwflow compare' on this folder adds what frames have."));
  const bar = (s) => {
    const low = s.signed ? -(2 ** (s.bits - 1)) : 0, span = 2 ** s.bits - 1 || 1, row = compared.get(s.onnx);
    const part = (tag, a, b) => { const e = hw.el(tag); e.style.left = 100 * (a - low) / span + "%"; e.style.width = Math.max(0.8, 100 * (b - a) / span) + "%"; return e; };
    return hw.el("div", { class: "range", role: "img", "aria-label": `${s.interval[0]} to ${s.interval[1]}` }, part("i", ...s.interval), row?.least !== undefined && row.least !== null ? part("u", row.least, row.greatest) : null);
  };
  const span = (a, b) => a === null || a === undefined ? "\u2013" : `${hw.int(a)} \u2026 ${hw.int(b)}`;
  const columns = [["Value", "name", (s) => hw.short(hw.label(s.onnx || s.name), 40)], ["Bits", "r", (s) => `${s.bits}${s.signed ? " s" : " u"}`], ["Range in its type", "", bar], ["Proved", "r wide", (s) => span(...s.interval)]];
  if (measured) columns.push(["Measured", "r", (s) => { const row = compared.get(s.onnx); return span(row?.least, row?.greatest); }]);
  if (compared.size) columns.push(["Against the reference", "r wide", (s) => { const row = compared.get(s.onnx); return !row ? "\u2013" : row.mismatches === 0 ? "equal" : `${hw.int(row.mismatches)} differ, ${row.unexplained ? `${hw.int(row.unexplained)} UNEXPLAINED` : "explained"}`; }]);
  section.append(hw.el("div", { class: "card" }, hw.table(columns, unique, "values")));
};

hw.noise = () => {
  const rows = hw.data.dataflow?.noise;
  if (!rows) return;
  const section = hw.section("noise", "Quantization", "Where the error against the float model comes from, as 'hwflow quantize' measured it: the signal to noise ratio behind each quantizer, and the share of the outputs' noise that this quantizer alone makes.");
  const most = d3.max(rows, (row) => row.noise_share ?? 0) || 1;
  const bar = (row) => { if (row.noise_share === null) return "\u2013"; const part = hw.el("u"); part.style.left = "0"; part.style.width = `${Math.max(0.5, 100 * row.noise_share / most)}%`; return hw.el("div", { class: "range", role: "img", "aria-label": hw.percent(row.noise_share) }, part); };
  section.append(hw.el("div", { class: "card" }, hw.table([
    ["Value", "name", (row) => hw.short(hw.label(row.name), 40)], ["", "", (row) => row.weights ? "weights" : "activation"], ["Type", "", (row) => row.type], ["Node", "name wide", (row) => hw.short(hw.label(row.node), 32)],
    ["SNR", "r", (row) => row.snr_db === null ? "exact" : `${row.snr_db.toFixed(1)} dB`], ["Share of the noise", "", bar], ["", "r", (row) => hw.percent(row.noise_share)]], rows, "noises")));
};

hw.path = () => {
  const path = hw.data.path, reached = hw.data.report.clock.fmax_mhz;
  if (!path || !path.length) return;
  const total = d3.sum(path, (row) => row.logic + row.wires), wires = d3.sum(path, (row) => row.wires);
  const name = (row) => row.core === null ? `${row.where} (outside of the cores)` : hw.layers[row.core].name, color = (row) => row.core === null ? "var(--gray)" : hw.kindColor(hw.layers[row.core].op);
  const section = hw.section("critical", "Critical path", `After routing the slowest path between two registers takes ${total.toFixed(2)} ns (${reached.toFixed(1)} MHz), ${hw.percent(wires / total, 0)} of it on wires (pale).`);
  const bar = hw.el("div", { class: "path", role: "img", "aria-label": "The path by core" });
  for (const row of path) for (const [kind, ns] of [["logic", row.logic], ["wires", row.wires]]) if (ns > 0) {
    const piece = hw.el("div", { class: kind, "--c": color(row) });
    piece.style.flex = `${ns} 0 0`;
    piece.addEventListener("pointermove", (event) => hw.tip(event, name(row), [`${ns.toFixed(2)} ns of ${kind}`, ...row.cells.slice(0, 6).map((cell) => hw.short(cell, 70))]));
    piece.addEventListener("pointerleave", () => hw.tip());
    bar.append(piece);
  }
  section.append(hw.el("div", { class: "card pad" }, bar), hw.el("div", { class: "card" , id: "pathrows" }, hw.table([
    ["Core", "name", (row) => hw.short(hw.label(name(row)), 50)], ["Steps", "r", (row) => hw.int(row.steps)], ["Logic", "r", (row) => row.logic.toFixed(2) + " ns"], ["Wires", "r", (row) => row.wires.toFixed(2) + " ns"]], path, "path")));
  section.lastChild.style.marginTop = "12px";
};

hw.findings = () => {
  const { findings, host } = hw.data;
  const section = hw.section("findings", "Findings", host ? host[0].toUpperCase() + host.slice(1) + "." : "");
  section.append(hw.el("div", { class: "card" }, ...(findings.length ? findings.map((f) => hw.el("div", { class: "finding" }, hw.el("div", {}, hw.el("span", { class: "sev " + (["warning", "error", "unsupported"].includes(f.severity) ? f.severity : ""), text: f.severity }), hw.el("span", { class: "name", text: `${f.where}: ${f.message}` }), hw.el("code", { text: f.clause })), f.remedy ? hw.el("div", { class: "remedy", text: f.remedy }) : null))
    : [hw.el("div", { class: "finding muted", text: "None." })])));
};
