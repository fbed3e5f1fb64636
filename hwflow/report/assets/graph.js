"use strict";
/* The dataflow graph: layers by dagre, wrapped into columns where a single stream passes; zoom, pan, search, details. */
hw.graph = () => {
  const flow = hw.data.dataflow;
  const section = hw.section("graph", "Dataflow", "Each core and the streams between them. Drag to move, pinch or Ctrl and scroll to zoom, choose a core for all that is known of it.");
  const count = hw.layers.length;
  const state = { color: "busy", plumbing: count <= 60, chosen: null, query: "" };
  const search = hw.el("input", { class: "field", type: "search", placeholder: "Search names, operators\u2026", "aria-label": "Search cores", id: "search", oninput: () => { state.query = search.value.toLowerCase(); mark(); seek(); } });
  const plumbing = hw.el("input", { type: "checkbox", id: "plumbing", onchange: () => { state.plumbing = plumbing.checked; draw(); fit(); } });
  plumbing.checked = state.plumbing;
  section.firstChild.append(hw.el("div", { class: "tools" }, search,
    hw.segments("Colour by", { busy: "Busy", lut: "LUT", ff: "FF", dsp: "DSP", bram: "BRAM" }, "busy", (key) => { state.color = key; paint(); }),
    hw.el("label", { class: "check" }, plumbing, "plumbing")));
  const svg = hw.svg("svg", { role: "img", "aria-label": "Dataflow graph" }), view = hw.svg("g");
  svg.append(view);
  const side = hw.el("aside", { class: "side", id: "details", "aria-live": "polite" });
  const legend = hw.el("div", { class: "legend" });
  const button = (text, label, action) => hw.el("button", { class: "plain", type: "button", "aria-label": label, text, onclick: action });
  const canvas = hw.el("div", { class: "canvas" }, svg, legend, hw.el("div", { class: "zoom" }, button("+", "Zoom in", () => zoomBy(1.5)), button("\u2212", "Zoom out", () => zoomBy(1 / 1.5)), button("\u2922", "Show all", () => fit())));
  section.append(hw.el("div", { class: "card graph" }, canvas, side));
  // A page that scrolls must not stop at the picture: the wheel zooms with Ctrl, which pinching on a touchpad has, too.
  const zoom = d3.zoom().scaleExtent([0.03, 3]).filter((event) => event.type === "wheel" ? event.ctrlKey || event.metaKey : !event.ctrlKey && !event.button)
    .wheelDelta((event) => -event.deltaY * (event.deltaMode ? 0.05 : Math.abs(event.deltaY) < 50 ? 0.02 : 0.002)).on("zoom", (event) => view.setAttribute("transform", event.transform));
  d3.select(svg).call(zoom).on("dblclick.zoom", null);
  const zoomBy = (factor) => d3.select(svg).transition().duration(180).call(zoom.scaleBy, factor);
  let size = { width: 1, height: 1 }, nodes = new Map();

  // What is shown: cores, without plumbing where it is hidden, which streams then pass through.
  const visible = () => {
    const streams = flow ? flow.streams : hw.layers.slice(1).map((_, k) => ({ from: k, to: k + 1, name: "" }));
    const hidden = (n) => n >= 0 && !state.plumbing && hw.kind(hw.layers[n].op) === "plumbing";
    const out = d3.group(streams, (s) => s.from), ends = [], edges = [];
    const follow = (stream, first, seen) => {
      if (hidden(stream.to) && !seen.has(stream.to)) { seen.add(stream.to); for (const next of out.get(stream.to) ?? []) follow(next, first, seen); }
      else edges.push({ ...first, last: stream, to: stream.to });
    };
    for (const stream of streams) if (!hidden(stream.from)) follow(stream, stream, new Set());
    for (const edge of edges) {
      if (edge.from < 0) { edge.from = "in " + edge.port; ends.push([edge.from, edge.port, "input"]); }
      if (edge.to < 0) { edge.to = "out " + (edge.last.port || edge.last.name); ends.push([edge.to, edge.last.port || edge.last.name, "output"]); }
    }
    return { cores: hw.layers.map((_, n) => n).filter((n) => !hidden(n)), ends: [...new Map(ends.map((end) => [end[0], end])).values()], edges };
  };

  const W = 214, H = 50, GAP = 26;
  const layout = ({ cores, ends, edges }) => {
    const place = new Map(), small = (n) => hw.kind(hw.layers[n].op) === "plumbing";
    const boxes = [...cores.map((n) => [String(n), small(n) ? 150 : W, small(n) ? 26 : H]), ...ends.map(([id]) => [id, 150, 26])];
    if (boxes.length > 900) {  // a grid: nobody reads the lines of a thousand
      const columns = Math.ceil(Math.sqrt(boxes.length / 3));
      boxes.forEach(([id, width, height], k) => place.set(id, { x: (k % columns) * (W + 30) + W / 2, y: Math.floor(k / columns) * (H + GAP) + H / 2, width, height }));
    } else {
      const g = new dagre.graphlib.Graph({ multigraph: true });
      g.setGraph({ rankdir: "TB", nodesep: 26, ranksep: GAP, marginx: 6, marginy: 6, ranker: boxes.length > 300 ? "longest-path" : "network-simplex" });
      g.setDefaultEdgeLabel(() => ({}));
      for (const [id, width, height] of boxes) g.setNode(id, { width, height });
      edges.forEach((edge, k) => g.setEdge(String(edge.from), String(edge.to), {}, String(k)));
      dagre.layout(g);
      for (const [id] of boxes) place.set(id, { ...g.node(id) });
      edges.forEach((edge, k) => { edge.points = g.edge(String(edge.from), String(edge.to), String(k)).points; });
    }
    return wrap(place, edges);
  };

  // Cut the picture into columns between ranks where one stream passes, so that a long chain fills the page.
  const wrap = (place, edges) => {
    const all = [...place.values()], bottom = d3.max(all, (p) => p.y + p.height / 2), wide = d3.max(all, (p) => p.x + p.width / 2);
    const box = canvas.getBoundingClientRect();
    const scaleOf = (n) => Math.min(box.width / (n * (wide + 54)), (box.height - 60) / (bottom / n + 60), 1.15);
    const most = bottom / d3.greatest(d3.range(1, 1 + Math.max(1, Math.floor(bottom / (H * 4)))), (a, b) => scaleOf(a) - scaleOf(b) || b - a);
    const ys = [...new Set(all.map((p) => Math.round(p.y)))].sort((a, b) => a - b);
    const cuts = [];
    let begin = 0;
    for (let k = 0; k + 1 < ys.length; k++) {
      const y = (ys[k] + ys[k + 1]) / 2;
      const clear = !all.some((p) => p.y - p.height / 2 < y && p.y + p.height / 2 > y);
      if (y - begin < most * 0.97 || !clear || bottom - y < most * 0.2) continue;
      const crossing = edges.filter((e) => place.get(String(e.from)).y < y && place.get(String(e.to)).y > y).length;
      if (crossing <= 1 || (crossing <= 2 && y - begin > most * 1.5)) { cuts.push(y); begin = y; }
    }
    if (!cuts.length) return { place, edges };
    const column = (y) => d3.bisectLeft(cuts, y), inColumn = d3.group(all, (p) => column(p.y)), order = d3.range(cuts.length + 1);
    const tops = order.map((c) => d3.min(inColumn.get(c), (p) => p.y - p.height / 2));
    const bounds = order.map((c) => [d3.min(inColumn.get(c), (p) => p.x - p.width / 2), d3.max(inColumn.get(c), (p) => p.x + p.width / 2)]);
    let x = 0;
    const shifts = bounds.map(([low, high]) => { const shift = x - low; x += high - low + 54; return shift; });
    for (const p of all) { p.column = column(p.y); p.x += shifts[p.column]; p.y -= tops[p.column] - 20; }
    for (const edge of edges) {
      const a = place.get(String(edge.from)), b = place.get(String(edge.to));
      if (a.column === b.column && edge.points) edge.points = edge.points.map((p) => ({ x: p.x + shifts[a.column], y: p.y - tops[a.column] + 20 }));
      else {
        const gutter = bounds[b.column][0] + shifts[b.column] - 27, up = b.y - b.height / 2 - 12, down = a.y + a.height / 2 + 12;
        edge.square = [[a.x, a.y + a.height / 2], [a.x, down], [gutter, down], [gutter, up], [b.x, up], [b.x, b.y - b.height / 2]];
      }
    }
    return { place, edges };
  };

  const curve = d3.line().x((p) => p.x).y((p) => p.y).curve(d3.curveBasis);
  const rounded = (points, r = 8) => points.map(([x, y], k) => {
    if (k === 0) return `M${x},${y}`;
    if (k === points.length - 1) return `L${x},${y}`;
    const [px, py] = points[k - 1], [nx, ny] = points[k + 1];
    const cut = (ax, ay) => { const length = Math.hypot(ax - x, ay - y) || 1, s = Math.min(r, length / 2) / length; return [x + (ax - x) * s, y + (ay - y) * s]; };
    return `L${cut(px, py)}Q${x},${y} ${cut(nx, ny)}`;
  }).join("");

  const draw = () => {
    const shown = visible(), { place, edges } = layout(shown);
    const lines = hw.svg("g"), boxes = hw.svg("g");
    const limiting = new Set(flow?.limit.circuit ? [] : flow?.limit.cores ?? []);
    nodes = new Map();
    for (const edge of edges) {
      const a = place.get(String(edge.from)), b = place.get(String(edge.to));
      const d = edge.square ? rounded(edge.square) : edge.points ? curve(edge.points) : `M${a.x},${a.y}L${b.x},${b.y}`;
      const path = hw.svg("path", { class: "edge", d, "data-from": edge.from, "data-to": edge.to });
      path.addEventListener("pointermove", (event) => edge.name && hw.tip(event, edge.name, hw.stream(edge)));
      path.addEventListener("pointerleave", () => hw.tip());
      const [x, y] = [b.x, b.y - b.height / 2];
      lines.append(path, hw.svg("path", { class: "arrow", d: `M${edge.square || !edge.points ? x : edge.points.at(-1).x},${y}l-4,-7h8z` }));
    }
    const add = (id, element, p) => { element.setAttribute("transform", `translate(${p.x - p.width / 2},${p.y - p.height / 2})`); boxes.append(element); nodes.set(id, element); };
    for (const [id, name, kind] of shown.ends) {
      const p = place.get(id);
      add(id, hw.svg("g", { class: "node end", "data-id": id }, hw.svg("rect", { class: "box", width: p.width, height: p.height, rx: 13 }), hw.svg("text", { x: p.width / 2, y: 17, "text-anchor": "middle", text: hw.short(name, 20) }), hw.svg("title", { text: `${kind} ${hw.show(name)}` })), p);
    }
    for (const n of shown.cores) {
      const layer = hw.layers[n], p = place.get(String(n)), small = p.height < H;
      const g = hw.svg("g", { class: "node" + (limiting.has(n) ? " limit" : ""), "data-core": n, tabindex: 0, role: "button", "aria-label": `${hw.show(layer.name)}, ${layer.op}` },
        hw.svg("rect", { class: "box", width: p.width, height: p.height, rx: small ? 13 : 8 }));
      if (small) g.append(hw.svg("text", { x: p.width / 2, y: 17, class: "sub", "text-anchor": "middle", text: layer.op.replace("_", " ") }));
      else {
        const strip = hw.svg("rect", { x: 0, y: 8, width: 3.5, height: H - 16, rx: 1.75 });
        strip.style.fill = hw.kindColor(layer.op);
        g.append(strip, hw.svg("text", { x: 14, y: 19, text: hw.short(hw.label(layer.name), 25) }), hw.svg("text", { x: 14, y: 33, class: "sub", text: `${layer.op.replaceAll("_", " ")}  ${layer.folding.input_lanes}\u2192${layer.folding.output_lanes}` }),
          hw.svg("text", { x: W - 12, y: 33, class: "sub value", "text-anchor": "end" }), hw.svg("rect", { x: 14, y: 39, width: W - 26, height: 4, rx: 2, class: "back" }), hw.svg("rect", { x: 14, y: 39, width: 0, height: 4, rx: 2, class: "fill" }));
      }
      g.addEventListener("click", () => choose(n));
      g.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(n); } });
      g.addEventListener("pointermove", (event) => hw.tip(event, layer.name, [`${layer.op}, ${hw.int(layer.initiation_interval)} cycles, ${hw.percent(hw.busy(layer))} of the interval`, layer.onnx_nodes.length ? "ONNX: " + layer.onnx_nodes.map((x) => hw.short(x, 60)).join(", ") : null]));
      g.addEventListener("pointerleave", () => hw.tip());
      add(n, g, p);
    }
    view.replaceChildren(lines, boxes);
    size = { width: d3.max([...place.values()], (p) => p.x + p.width / 2) + 20, height: d3.max([...place.values()], (p) => p.y + p.height / 2) + 20 };
    paint();
    mark();
  };

  const amount = (layer) => state.color === "busy" ? hw.busy(layer) : hw.used(layer, state.color);
  const paint = () => {
    const most = state.color === "busy" ? 1 : d3.max(hw.layers, amount) || 1, ramp = d3.interpolateRgb(hw.color("seq0"), hw.color("seq1"));
    for (const [n, g] of nodes) {
      const bar = g.querySelector(".fill");
      if (!bar) continue;
      const share = Math.min(1, amount(hw.layers[n]) / most);
      bar.setAttribute("width", Math.max(share > 0 ? 2 : 0, share * (W - 26)));
      bar.style.fill = ramp(0.25 + 0.75 * share);
      g.querySelector(".back").style.fill = "var(--track)";
      g.querySelector(".value").textContent = state.color === "busy" ? hw.percent(hw.busy(hw.layers[n]), 0) : `${hw.count(amount(hw.layers[n]))} ${hw.resources[state.color]}`;
    }
    legend.replaceChildren(...Object.values(hw.kinds).map(([color, words]) => hw.el("span", { "--c": `var(--${color})`, text: words })));
  };
  const found = (n) => { const layer = hw.layers[n]; return !state.query || [layer.name, layer.op, layer.instance, ...layer.onnx_nodes].some((text) => String(text).toLowerCase().includes(state.query)); };
  const mark = () => {
    for (const [n, g] of nodes) { g.classList.toggle("off", typeof n === "number" ? !found(n) : Boolean(state.query)); g.classList.toggle("chosen", n === state.chosen); }
    for (const path of view.querySelectorAll(".edge")) path.classList.toggle("hot", state.chosen !== null && [path.dataset.from, path.dataset.to].includes(String(state.chosen)));
  };
  const centre = (n, scale) => { const at = /translate\(([^,]+),([^)]+)\)/.exec(nodes.get(n)?.getAttribute("transform") ?? ""); if (at) d3.select(svg).transition().duration(250).call(zoom.translateTo, +at[1] + W / 2, +at[2] + H / 2).transition().duration(0); };
  const seek = () => { if (state.query) { const first = [...nodes.keys()].find((n) => typeof n === "number" && found(n)); if (first !== undefined) centre(first); } };
  const fit = (instant) => {
    const box = canvas.getBoundingClientRect(), foot = legend.offsetHeight ? 52 : 14, scale = Math.min(1.15, (box.width - 24) / size.width, (box.height - foot - 14) / size.height);
    const small = scale < 0.2, k = small ? Math.min(0.8, (box.width - 24) / Math.min(size.width, 420)) : scale;  // too small to read: begin at the input
    const x = small ? 12 : (box.width - size.width * k) / 2, y = small ? 12 : Math.max(12, (box.height - foot - size.height * k) / 2);
    const target = d3.zoomIdentity.translate(x, y).scale(instant === true || !small ? k : scale);
    if (instant === true) d3.select(svg).call(zoom.transform, target);
    else d3.select(svg).transition().duration(220).call(zoom.transform, d3.zoomIdentity.translate((box.width - size.width * scale) / 2, (box.height - foot - size.height * scale) / 2).scale(scale));
  };
  const choose = (n, move) => {
    state.chosen = n;
    if (!nodes.has(n)) { plumbing.checked = state.plumbing = true; draw(); }
    side.replaceChildren(...hw.details(n));
    mark();
    if (move) { section.scrollIntoView({ block: "start" }); centre(n); }
  };
  hw.choose = (n) => choose(n, true);
  draw();
  fit(true);
  side.replaceChildren(...hw.details(flow?.limit.cores[0] ?? 0));
  state.chosen = flow?.limit.cores[0] ?? 0;
  mark();
  hw.redraw.push(paint);
};

hw.used = (layer, key) => layer.resources[key].synthesized ?? layer.resources[key].predicted;
hw.stream = (s) => [`${s.shape?.join(" \u00d7 ")}, ${s.bits} bits ${s.signed ? "signed" : "unsigned"}, ${s.lanes} lane${s.lanes === 1 ? "" : "s"}`, s.onnx ? "ONNX value: " + hw.short(s.onnx, 60) : null,
  s.depth ? `queue of ${hw.int(s.depth)} beats` : null, `integers ${hw.int(s.interval[0])} to ${hw.int(s.interval[1])}`];

hw.details = (n) => {
  const layer = hw.layers[n], flow = hw.data.dataflow, folding = layer.folding, row = flow?.activity?.cores.find((each) => each.cores.includes(n));
  const sent = flow?.streams.find((s) => s.from === n), r = layer.requantizer;
  const names = [["Core", layer.name], ["ONNX nodes", layer.onnx_nodes.length ? layer.onnx_nodes.join("\n") : "\u2013"], ["Instance in hwflow_top", layer.instance]];
  const list = [["Output shape", flow ? flow.cores[n].shapes.map((shape) => shape.join(" \u00d7 ")).join("; ") : null],
    ["Output", sent ? `${sent.bits} bits ${sent.signed ? "signed" : "unsigned"}, ${hw.int(sent.interval[0])} to ${hw.int(sent.interval[1])}` : null],
    ["Lanes", `${folding.input_lanes} in, ${folding.output_lanes} out`], ["Folding", folding.pe ? `PE ${folding.pe}, SIMD ${folding.simd}${folding.multiplier ? ", " + folding.multiplier : ""}` : null],
    ["Cycles a frame", hw.int(layer.initiation_interval)], ["Busy", hw.percent(hw.busy(layer))], ["Latency", `${hw.int(layer.latency)} cycles`],
    ["In a frame", row ? `from ${hw.int(row.start)} to ${hw.int(row.end)}` : null], ["Waits for input", row ? `${hw.int(row.starved)} cycles` : null], ["Waits for room", row ? `${hw.int(row.blocked)} cycles` : null],
    ["Multiply-accumulates", layer.macs ? `${hw.int(layer.macs_without_padding)} of data` : null], ["Multipliers", layer.multipliers ? hw.int(layer.multipliers) : null], ["Accumulator", layer.accumulator_bits ? `${layer.accumulator_bits} bits` : null], ["Rounds", layer.rounds > 1 ? hw.int(layer.rounds) : null]];
  const form = r ? [["Requantizer", r.form], ["Bits", `${r.input_bits} to ${r.output_bits}`], ["Constants", r.form === "multiply-add-shift" ? `multiplier ${r.multiplier_bits}, addend ${r.addend_bits}, shift ${r.shift}` : r.form === "thresholds" ? `${r.thresholds} thresholds` : r.form === "search" ? `${r.stages} comparisons of ${r.threshold_bits} bits` : r.form === "quadratics" ? `${hw.int(r.segments)} segments of ${r.coefficient_bits} bits` : `${hw.int(r.words)} words`],
    ["Proof", r.epsilon ? `proved within \u03b5 = ${r.epsilon.toExponential(2)} of a step` : "proved equal for every input"]] : [];
  const rows = (pairs) => pairs.filter(([, text]) => text !== null).flatMap(([term, text]) => [hw.el("dt", { text: term }), hw.el("dd", { class: "name", text: text })]);
  const table = hw.el("table", { class: "mini" }, hw.el("tr", {}, hw.el("th", { text: "" }), hw.el("th", { text: "predicted" }), hw.el("th", { text: "synthesized" })),
    ...Object.entries(hw.resources).map(([key, name]) => hw.el("tr", {}, hw.el("td", { text: name }), hw.el("td", { text: hw.count(layer.resources[key].predicted) }), hw.el("td", { text: hw.count(layer.resources[key].synthesized) }))));
  return [hw.el("h3", { class: "name", text: hw.short(hw.label(layer.name), 60) }), hw.el("p", { class: "op", text: layer.op.replaceAll("_", " ") }), table, hw.el("dl", {}, ...rows(list)), hw.el("dl", { class: "long" }, ...names.flatMap(([term, text]) => [hw.el("dt", { text: term }), ...text.split("\n").map((line) => hw.el("dd", { class: "name", text: line }))])), form.length ? hw.el("dl", {}, ...rows(form)) : null].filter(Boolean);
};
