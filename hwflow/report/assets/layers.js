"use strict";
/* A bar a layer: cycles, resources, multiply-accumulates. */
hw.bars = () => {
  const state = { key: "cycles", sorted: false };
  const list = hw.el("div", { class: "bars scroll", id: "bars" }), key = hw.el("div", { class: "key" });
  const section = hw.section("layers", "Layers", "Cycles of each core in a frame, and what it takes of the part. Choose one to see it in the graph.", [
    hw.segments("Figure", { cycles: "Cycles", lut: "LUT", ff: "FF", dsp: "DSP", bram: "BRAM", macs: "MACs" }, "cycles", (chosen) => { state.key = chosen; draw(); }),
    hw.segments("Order", { flow: "Dataflow", size: "Size" }, "flow", (chosen) => { state.sorted = chosen === "size"; draw(); })]);
  section.append(hw.el("div", { class: "card" }, list, key));
  const value = (layer) => state.key === "cycles" ? layer.initiation_interval : state.key === "macs" ? layer.macs_without_padding : hw.used(layer, state.key);
  const draw = () => {
    const resource = state.key in hw.resources;
    const most = Math.max(1, state.key === "cycles" ? hw.interval : 0, d3.max(hw.layers, (layer) => resource ? Math.max(layer.resources[state.key].predicted, layer.resources[state.key].synthesized ?? 0) : value(layer)));
    const order = d3.range(hw.layers.length);
    if (state.sorted) order.sort((a, b) => value(hw.layers[b]) - value(hw.layers[a]));
    list.replaceChildren(...order.map((n) => {
      const layer = hw.layers[n], row = resource ? layer.resources[state.key] : null;
      const trail = hw.el("span", { class: "trail" }, hw.el("i", { "width%": 100 * value(layer) / most, "--c": hw.kindColor(layer.op) }), row && row.synthesized !== null ? hw.el("u", { "width%": 100 * row.predicted / most }) : null);
      const figure = state.key === "cycles" ? `${hw.int(value(layer))} (${hw.percent(hw.busy(layer), 0)})` : row && row.synthesized !== null ? `${hw.count(row.synthesized)} / ${hw.count(row.predicted)}` : hw.count(value(layer));
      return hw.el("button", { class: "barrow", type: "button", title: hw.show(layer.name), "data-core": n, onclick: () => hw.choose(n) },
        hw.el("span", { class: "what name" }, hw.el("span", { class: "dot", "--c": hw.kindColor(layer.op) }), hw.short(hw.label(layer.name), 46)), trail, hw.el("span", { class: "figure", text: figure }));
    }));
    const glue = resource ? hw.data.report.resources[state.key].glue : null;
    key.replaceChildren(...(resource && hw.data.report.resources[state.key].synthesized !== null
      ? [hw.el("span", {}, hw.el("i"), "synthesized"), hw.el("span", {}, hw.el("u"), "predicted"), glue === null ? null : hw.el("span", { text: `glue between cores: ${hw.count(glue)}` })].filter(Boolean)
      : [hw.el("span", { text: resource ? "predicted" : state.key === "cycles" ? `full width: the interval, ${hw.int(hw.interval)} cycles` : "multiply-accumulates of data" })]));
  };
  draw();
};

/* A table that scrolls: columns are [title, class, cell of a row]. */
hw.table = (columns, rows, id) => hw.el("div", { class: "scroll" }, hw.el("table", { class: "list", id },
  hw.el("thead", {}, hw.el("tr", {}, ...columns.map(([title, kind]) => hw.el("th", { class: kind, text: title })))),
  hw.el("tbody", {}, ...rows.map((row) => hw.el("tr", {}, ...columns.map(([, kind, cell]) => { const made = cell(row); return hw.el("td", { class: kind }, made); }))))));
