// The right side: tables that are built once and then only get new text.
const ROLE_NAMES = { ffn: "FFN", norm: "norms", router: "routers", position: "positions", mixer: "mixers" };
const FLOPS_NAMES = { attention: "attention with its projections" };
const PARTS = {
  weights: "weights", cache: "KV cache", workspace: "workspace of a step", reserve: "reserve", need: "in all",
};
const $ = (id) => document.getElementById(id);

function make(kind, attributes = {}, ...inside) {
  const element = document.createElement(kind);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...inside);
  return element;
}

function drawn(kind, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", kind);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// New text only where it differs: what stays needs no new layout.
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const cell = (key) => make("output", { "data-figure": key });

function meter() {
  const fill = make("span", { class: "fill" });
  const share = make("span");
  const track = make("span", { class: "track", "aria-hidden": "true" }, fill);
  return { line: make("span", { class: "meter" }, track, share), fill, share };
}

const bars = { params: {}, flops: {} };

function buildResults() {
  for (const [table, what] of [["components", "params"], ["flops-parts", "flops"]]) {
    for (const role of DATA.roles) {
      const { line, fill, share } = meter();
      const row = make(
        "tr", {},
        make("th", { scope: "row" }, (what === "flops" && FLOPS_NAMES[role]) || ROLE_NAMES[role] || role),
        make("td", {}, cell(`${what}_${role}`)),
        make("td", { class: "share" }, line),
      );
      bars[what][role] = { row, fill, share };
      $(table).tBodies[0].append(row);
    }
  }
  for (const [key, label, sum] of [
    ["matmul_flops_per_token", "one token: matmuls"],
    ["attention_flops_per_token", "one token: attention scores and values"],
    ["flops_per_token", "one token: forward", true],
    ["prefill_flops", "prefill, causal sum"],
    ["prefill_flops_all_pairs", "prefill, all pairs"],
    ["training_flops", "training, 3 × forward", true],
    ["training_flops_6n", "training, 6 N n"],
  ]) {
    const row = make("tr", sum ? { class: "sum" } : {}, make("th", { scope: "row" }, label), make("td", {}, cell(key)));
    $("flops").tBodies[0].append(row);
    row.cells[0].id = `label-${key}`;
  }
  const memory = DATA.dtypes.map((name) => [`weight_bytes_${name}`, `weights ${name}`]);
  memory.push(["kv_bytes_per_token", "KV cache, first token"], ["kv_bytes", "KV cache, whole batch"]);
  for (const [key, label] of memory) {
    const own = [1000, 1024].map((step) => make("td", { "data-of": key, "data-step": step }));
    const row = make("tr", { id: `row-${key}` }, make("th", { scope: "row" }, label), make("td", {}, cell(key)), ...own);
    $("memory").tBodies[0].append(row);
  }
  for (const [key, label] of Object.entries(PARTS)) {
    const name = make("th", { scope: "row" }, label);
    const own = DATA.engines.map((_, i) => make("td", { "data-part": key, "data-engine": i }));
    $("parts").tBodies[0].append(make("tr", key === "need" ? { class: "sum" } : { id: `part-${key}` }, name, ...own));
  }
  for (const [i, { tokens, requests }] of DATA.engines.entries()) {
    $("parts").tHead.rows[0].append(make("th", { scope: "col" }, i ? "smaller GPUs and A100" : `GPUs from ${DATA.large} GiB`));
    const [most, asked] = [grouped(tokens), grouped(requests)];
    $("engines").append(i ? `, ${most} and ${asked} on smaller ones and the A100`
      : `${most} tokens and ${asked} requests a step on GPUs from ${DATA.large} GiB of memory`);
  }
  for (const unit of DATA.units) {
    const fill = make("span", { class: "fill" }), words = make("span");
    unit.item = make(
      "li", { "data-unit": unit.label },
      make("div", { class: "line" }, make("span", {}, unit.label), words),
      make("div", { class: "track", "aria-hidden": "true" }, fill),
    );
    Object.assign(unit, { fill, words });
    $("fit").append(unit.item);
  }
}

function showParts(what, found, whole) {
  for (const [role, { row, fill, share }] of Object.entries(bars[what])) {
    const value = found[`${what}_${role}`];
    row.hidden = value === 0n;
    fill.style.width = `${100 * ratio(value, whole)}%`;
    say(share, percent(value, whole));
  }
}

function showFit(found) {
  for (const element of document.querySelectorAll("td[data-part]")) {
    const parts = found.parts[element.dataset.engine], value = parts[element.dataset.part];
    say(element, sized(value, 1000n, parts.need));
    element.title = `${grouped(value)} bytes`;
    element.dataset.value = value;
  }
  const { batch, context } = found.filled;
  $("part-weights").cells[0].textContent = `weights ${state.dtype}`;
  $("part-cache").cells[0].textContent = `KV cache ${state.kv}, ${grouped(batch)} × ${grouped(context)} tokens`;
  for (const unit of DATA.units) {
    const { need } = found.parts[unit.engine], budget = BigInt(unit.budget), gap = budget - need;
    const lacks = unit.lacks.includes(state.dtype), kind = lacks ? "none" : gap >= 0n ? "yes" : "no";
    Object.assign(unit.item.dataset, { gap, fits: kind });
    unit.item.className = kind;
    unit.fill.style.width = `${lacks ? 0 : Math.min(100, 100 * ratio(need, budget))}%`;
    say(unit.words, lacks ? `no ${state.dtype} arithmetic`
      : gap >= 0n ? `fits, ${percent(need, budget)} of its budget` : `short by ${sized(-gap, 1000n)}`);
  }
}

// 1, 2 or 5 times a power of ten, so that an axis has at most so many steps.
function tickStep(last, most) {
  for (let size = 1n; ; size *= 10n) {
    for (const step of [size, 2n * size, 5n * size]) if (last / step <= most) return step;
  }
}

function showCurve(found) {
  const wide = Math.max(280, $("curve").clientWidth || 640), high = 250;
  const [left, right, top, bottom] = [8, 8, 44, 42];
  const context = found.filled.context, cross = found.crossing;
  const most = cross ? (2n * cross > context + context / 4n ? 2n * cross : context + context / 4n) : 4n * context;
  const last = most < 8n ? 8n : most;
  const steps = 48n, lengths = [];
  for (let i = 1n; i <= steps; i++) lengths.push((last * i + steps - 1n) / steps);
  const attention = attentionAt(lengths), matmuls = found.matmul_flops_per_token;
  const peak = [...attention, matmuls].reduce((a, b) => (a > b ? a : b)) || 1n;
  const x = (n) => left + (wide - left - right) * ratio(n, last);
  const y = (v) => high - bottom - (high - top - bottom) * ratio(v, peak);
  const points = lengths.map((n, i) => `${x(n).toFixed(1)},${y(attention[i]).toFixed(1)}`);
  const said = cross === undefined ? "" : cross === null ? "attention stays below the matmuls"
    : `attention equals the matmuls at ${grouped(cross)} tokens`;
  const svg = drawn("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": `FLOPs of one token by context: ${said}` });
  const base = high - bottom;
  svg.append(drawn("line", { class: "axis", x1: left, x2: wide - right, y1: base, y2: base }));
  for (let n = 0n, step = tickStep(last, wide < 480 ? 3n : 5n); n <= last; n += step) {
    const words = grouped(n), half = 4 * words.length;
    const anchor = x(n) < half ? "start" : x(n) > wide - half ? "end" : "middle";
    svg.append(drawn("line", { class: "axis", x1: x(n), x2: x(n), y1: base, y2: base + 4 }));
    svg.append(drawn("text", { class: "tick", x: x(n), y: base + 18, "text-anchor": anchor }, words));
  }
  svg.append(drawn("text", { x: wide / 2, y: high - 6, "text-anchor": "middle" }, "context, tokens"));
  svg.append(drawn("line", { class: "here", x1: x(context), x2: x(context), y1: 18, y2: base }));
  const side = ratio(context, last) > 0.5 ? "end" : "start";
  svg.append(drawn("text", { x: x(context) + (side === "end" ? -5 : 5), y: 20, "text-anchor": side }, "context"));
  svg.append(drawn("line", { class: "flat", x1: left, x2: wide - right, y1: y(matmuls), y2: y(matmuls) }));
  svg.append(drawn("polyline", { class: "rising", points: `${x(0n)},${base} ${points.join(" ")}` }));
  const end = attention[attention.length - 1], below = cross && base - y(matmuls) > 30;
  svg.append(drawn("text", { class: "named", x: wide - right, y: y(matmuls) + (below ? 18 : -8), "text-anchor": "end" }, `matmuls ${short(matmuls)}`));
  const under = !cross && y(end) - y(matmuls) < 24; // no room between the two lines
  svg.append(drawn("text", { class: "accent", x: wide - right, y: y(end) + (under ? 18 : -8), "text-anchor": "end" }, `attention ${short(end)}`));
  if (cross) {
    svg.append(drawn("circle", { class: "mark", cx: x(cross), cy: y(matmuls), r: 6 }));
    const [gap, anchor] = x(cross) > 130 ? [-10, "end"] : [30, "start"]; // before the line, or under it
    svg.append(drawn("text", { class: "accent", x: x(cross) + gap, y: y(matmuls) - 8, "text-anchor": anchor }, `${grouped(cross)} tokens`));
  }
  $("curve").replaceChildren(svg);
}

function showPublished(found) {
  const { model } = state, own = BigInt(model.params), gap = found.params - own;
  $("change").hidden = gap === 0n;
  $("change").textContent = `${gap > 0n ? "+" : ""}${grouped(gap)} against ${model.name} (${grouped(own)})`;
  $("published").hidden = !model.published;
  $("published").textContent = model.published ?? "";
  $("notes").replaceChildren(...model.notes.map((line) => make("li", {}, line)));
}

// The shape in words, for paper: the controls are not printed.
function showCounted(filled) {
  const there = structure().fields.filter(({ name }) => filled[name] > 0n);
  const sizes = there.map(({ name }) => `${LABELS[name] ?? name} ${grouped(filled[name])}`);
  const flags = DATA.switches.map((name, i) => name in SWITCH_LABELS && state.on[i] ? SWITCH_LABELS[name] : null);
  const words = [state.model.name, ...sizes, ...flags.filter(Boolean), `weights ${state.dtype}`, `KV cache ${state.kv}`];
  say($("counted"), words.join(" · "));
}

function show(found) {
  for (const element of document.querySelectorAll("output[data-figure]")) {
    const value = found[element.dataset.figure];
    say(element, grouped(value));
    element.dataset.value = value;
  }
  for (const element of document.querySelectorAll("td[data-of]")) {
    say(element, sized(found[element.dataset.of], BigInt(element.dataset.step)));
  }
  for (const name of DATA.dtypes) $(`row-weight_bytes_${name}`).hidden = !hasFormat(name);
  const notes = Object.entries(DATA.notes).filter(([name]) => hasFormat(name));
  say($("format-notes"), notes.map(([name, note]) => `${name}: ${note}.`).join(" "));
  $("active-line").hidden = found.active_params === found.params;
  const states = found.flops_mixer > 0n ? ", states" : "";
  say($("label-attention_flops_per_token"), `one token: attention scores and values${states}`);
  showPublished(found);
  showParts("params", found, found.params);
  showParts("flops", found, found.flops_per_token);
  const matrices = found.ffn_matrices + found.attention_matrices;
  $("ffn-share").textContent = percent(found.ffn_matrices, matrices);
  const cross = found.crossing;
  $("crossing").dataset.value = String(cross);
  $("crossing").textContent = cross === undefined ? "Where attention costs as much as the matmuls is not solved here; paramcalc show does."
    : cross === null ? "Attention never costs as much as the matmuls."
    : `Attention costs as much as the matmuls from a context of ${grouped(cross)} tokens.`;
  showFit(found);
  showCurve(found);
  showCounted(found.filled);
  $("now").replaceChildren(make("strong", {}, grouped(found.params)), ` ${state.model.name}`);
}
