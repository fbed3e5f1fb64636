"use strict";
/* The time line of one frame, and the fill of queues over an interval. */
hw.timeline = () => {
  const seen = hw.data.dataflow?.activity;
  if (!seen) {
    if (hw.data.dataflow) hw.section("time", "Time line", "The schedule of this design is a bound and not followed cycle by cycle: there is no time line.");
    return;
  }
  const section = hw.section("time", "Time line of a frame", `What each core does for one frame in a full pipeline: ${hw.int(seen.cycles + 1)} cycles (${hw.time(seen.cycles + 1, hw.mhz)}) from its first beat in to its last beat out. The next frame enters every ${hw.int(seen.interval)} cycles.`);
  const canvas = hw.el("canvas", { role: "img", "aria-label": "Time line of all cores; the figures are in the details of each core" });
  const holder = hw.el("div", { class: "timeline", id: "timeline" }, canvas);
  section.append(hw.el("div", { class: "card" }, hw.el("div", { class: "scroll" }, holder),
    hw.el("div", { class: "key" }, hw.el("span", {}, "works", hw.el("span", { class: "ramp" }), "every cycle"), hw.el("span", {}, hw.el("s"), "a frame enters"))));
  const ROW = 19, TOP = 26;
  const rows = seen.cores, name = (row) => row.cores.map((n) => hw.label(hw.layers[n].name)).join(" \u2192 ");
  const first = seen.begin, last = seen.cycles + 1;
  const draw = () => {
    const width = holder.clientWidth, label = width < 560 ? 112 : 230, height = TOP + rows.length * ROW + 10, ratio = devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio); canvas.style.height = height + "px";
    const c = canvas.getContext("2d");
    c.scale(ratio, ratio);
    const x = d3.scaleLinear([first, last], [label, width - 16]), ramp = d3.interpolateRgb(hw.color("seq0"), hw.color("seq1"));
    c.font = "11.5px " + hw.color("sans"); c.textBaseline = "middle";
    c.fillStyle = hw.color("muted"); c.strokeStyle = hw.color("grid"); c.lineWidth = 1;
    for (const tick of x.ticks(width < 560 ? 3 : 8)) { c.textAlign = "center"; c.fillText(d3.format(",")(tick), x(tick), 13); c.beginPath(); c.moveTo(Math.round(x(tick)) + 0.5, TOP - 3); c.lineTo(Math.round(x(tick)) + 0.5, height - 8); c.stroke(); }
    if ((last - first) / seen.interval < 60) {
      c.strokeStyle = hw.color("warm"); c.globalAlpha = 0.45; c.setLineDash([3, 4]);
      for (let t = Math.ceil(first / seen.interval) * seen.interval; t < last; t += seen.interval) { c.beginPath(); c.moveTo(x(t), TOP - 3); c.lineTo(x(t), height - 8); c.stroke(); }
      c.setLineDash([]); c.globalAlpha = 1;
    }
    const colors = d3.range(10).map((k) => ramp(0.1 + 0.9 * k / 9)), most = Math.floor((label - 26) / 6.1);
    rows.forEach((row, r) => {
      const y = TOP + r * ROW, bins = row.busy.length, wide = (last - first) / bins;
      c.textAlign = "left"; c.fillStyle = hw.color("ink"); c.fillText(hw.short(name(row), most), 16, y + ROW / 2);
      c.fillStyle = hw.color("track");
      const a = Math.max(x(row.start), label), b = Math.max(a + 1, x(row.end + 1));
      c.fillRect(a, y + 4, b - a, ROW - 8);
      for (let k = 0; k < bins;) {
        const level = +row.busy[k];
        let end = k + 1;
        while (end < bins && +row.busy[end] === level) end++;
        if (level) { const from = x(first + k * wide), to = x(first + end * wide); c.fillStyle = colors[level]; c.fillRect(Math.max(from, a), y + 4, Math.max(0.5, Math.min(to, b) - Math.max(from, a)), ROW - 8); }
        k = end;
      }
    });
  };
  const at = (event) => rows[Math.floor((event.clientY - canvas.getBoundingClientRect().top - TOP) / ROW)];
  canvas.addEventListener("pointermove", (event) => {
    const row = at(event);
    if (!row) return hw.tip();
    hw.tip(event, name(row), [`cycles ${hw.int(row.start)} to ${hw.int(row.end)}`, `works in ${hw.int(row.steps)}, ${hw.percent(row.steps / seen.interval)} of the interval`, `waits ${hw.int(row.starved)} cycles for input, ${hw.int(row.blocked)} for room behind it`]);
  });
  canvas.addEventListener("pointerleave", () => hw.tip());
  canvas.addEventListener("click", (event) => { const row = at(event); if (row) hw.choose(row.cores[0]); });
  draw();
  hw.redraw.push(draw);
  addEventListener("resize", draw);
};

hw.queues = () => {
  const flow = hw.data.dataflow, queues = flow?.activity?.queues ?? [];
  const fills = new Map(queues.map((queue) => [queue.stream, queue]));
  const rows = (flow?.streams ?? []).map((stream, n) => ({ ...stream, queue: fills.get(n) })).filter((stream) => stream.depth > 0 && stream.beats !== null);
  if (!rows.length) return;
  rows.sort((a, b) => b.depth * b.lanes * b.bits - a.depth * a.lanes * a.bits);
  const section = hw.section("queues", "Queues", "Beats in each queue and on their way to it, over one interval of a full pipeline; the line is its depth, the least that keeps the interval.");
  const spark = (row) => {
    if (!row.queue) return "\u2013";
    const fill = row.queue.fill, x = (k) => (150 * k / fill.length).toFixed(1), y = (v) => (25 - 23 * v / row.depth).toFixed(1);
    const steps = fill.map((v, k) => `${k ? "L" : "M"}${x(k)},${y(v)}L${x(k + 1)},${y(v)}`).join("");
    return hw.svg("svg", { class: "spark", viewBox: "0 0 150 26", preserveAspectRatio: "none", role: "img", "aria-label": `between ${d3.min(fill)} and ${row.queue.most} of ${row.depth} beats` },
      hw.svg("path", { d: `${steps}L150,25L0,25Z` }), hw.svg("line", { x1: 0, x2: 150, y1: y(row.depth), y2: y(row.depth) }));
  };
  section.append(hw.el("div", { class: "card" }, hw.table([
    ["Stream", "name", (row) => hw.short(hw.label(row.name), 42)],
    ["Fill", "", spark], ["Most", "r", (row) => row.queue ? hw.int(row.queue.most) : "\u2013"], ["Depth", "r", (row) => hw.int(row.depth)],
    ["Bits", "r wide", (row) => hw.int(row.depth * row.lanes * row.bits)], ["In", "wide", (row) => hw.data.styles[row.name] ?? ""],
  ], rows, "fills")));
};
