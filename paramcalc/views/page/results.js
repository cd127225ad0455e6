// The right side: tables that are built once and then only get new text.
const ROLE_NAMES = { ffn: "FFN", norm: "norms", router: "routers", position: "positions", mixer: "mixers" };
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
        make("th", { scope: "row" }, ROLE_NAMES[role] ?? role),
        make("td", {}, cell(`${what}_${role}`)),
        make("td", { class: "share" }, line),
      );
      bars[what][role] = { row, fill, share };
      $(table).tBodies[0].append(row);
    }
  }
  for (const [key, label, sum] of [
    ["matmul_flops_per_token", "one token: matmuls"],
    ["attention_flops_per_token", "one token: attention"],
    ["flops_per_token", "one token: forward", true],
    ["prefill_flops", "prefill, causal sum"],
    ["prefill_flops_all_pairs", "prefill, all pairs"],
    ["training_flops", "training, 3 × forward", true],
    ["training_flops_6n", "training, 6 N n"],
  ]) {
    const row = make("tr", sum ? { class: "sum" } : {}, make("th", { scope: "row" }, label), make("td", {}, cell(key)));
    $("flops").tBodies[0].append(row);
  }
  const memory = DATA.dtypes.map((name) => [`weight_bytes_${name}`, `weights ${name}`]);
  memory.push(["kv_bytes_per_token", "KV cache, first token"], ["kv_bytes", "KV cache, whole batch"]);
  for (const [key, label] of memory) {
    const own = [1000, 1024].map((step) => make("td", { "data-of": key, "data-step": step }));
    const row = make("tr", { id: `row-${key}` }, make("th", { scope: "row" }, label), make("td", {}, cell(key)), ...own);
    $("memory").tBodies[0].append(row);
  }
  for (const unit of DATA.units) {
    const fill = make("span", { class: "fill" }), words = make("span");
    unit.item = make(
      "li", {},
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
  const weights = found[`weight_bytes_${state.dtype}`], cache = found.kv_bytes;
  const need = weights + cache;
  $("need").textContent = `${sized(need, 1000n)}: weights ${state.dtype} ${sized(weights, 1000n)}`
    + ` + KV cache ${state.kv} ${sized(cache, 1000n)}`
    + ` (batch ${grouped(found.filled.batch)} × ${grouped(found.filled.context)} tokens)`;
  for (const unit of DATA.units) {
    const bytes = BigInt(unit.bytes), fits = need <= bytes;
    unit.item.className = fits ? "yes" : "no";
    unit.fill.style.width = `${Math.min(100, 100 * ratio(need, bytes))}%`;
    const least = (need + bytes - 1n) / bytes;
    say(unit.words, fits ? `fits, ${percent(need, bytes)}` : `no, ${grouped(least)} at least`);
  }
}

function showCurve(found) {
  const wide = Math.max(280, $("curve").clientWidth || 640), high = 250;
  const [left, right, top, bottom] = [8, 8, 26, 24];
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
  const words = cross === undefined ? "" : cross === null ? "attention stays below the matmuls"
    : `attention equals the matmuls at ${grouped(cross)} tokens`;
  const svg = drawn("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": `FLOPs of one token by context: ${words}` });
  const base = high - bottom;
  svg.append(drawn("line", { class: "axis", x1: left, x2: wide - right, y1: base, y2: base }));
  for (const quarter of [0n, 1n, 2n, 3n, 4n]) {
    const n = (last * quarter) / 4n, anchor = quarter === 0n ? "start" : quarter === 4n ? "end" : "middle";
    svg.append(drawn("text", { x: x(n), y: high - 6, "text-anchor": anchor }, short(n, 1024n)));
  }
  svg.append(drawn("line", { class: "here", x1: x(context), x2: x(context), y1: top - 8, y2: base }));
  const side = ratio(context, last) > 0.5 ? "end" : "start";
  svg.append(drawn("text", { x: x(context) + (side === "end" ? -5 : 5), y: top, "text-anchor": side }, "context"));
  svg.append(drawn("line", { class: "flat", x1: left, x2: wide - right, y1: y(matmuls), y2: y(matmuls) }));
  svg.append(drawn("polyline", { class: "rising", points: `${x(0n)},${base} ${points.join(" ")}` }));
  const above = y(matmuls) > 60 ? -8 : 18;
  svg.append(drawn("text", { class: "named", x: wide - right, y: y(matmuls) + (cross ? 18 : above), "text-anchor": "end" }, `matmuls ${short(matmuls)}`));
  const end = attention[attention.length - 1], low = y(end) > 60 ? -10 : 16;
  svg.append(drawn("text", { class: "accent", x: wide - right - (cross ? 24 : 0), y: cross ? y(end) + 4 : y(end) + low, "text-anchor": "end" }, `attention ${short(end)}`));
  if (cross) {
    svg.append(drawn("circle", { class: "mark", cx: x(cross), cy: y(matmuls), r: 6 }));
    svg.append(drawn("text", { class: "accent", x: x(cross) - 10, y: y(matmuls) - 10, "text-anchor": "end" }, `${grouped(cross)} tokens`));
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

function show(found) {
  for (const element of document.querySelectorAll("output[data-figure]")) {
    const value = found[element.dataset.figure];
    say(element, grouped(value));
    element.dataset.value = value;
  }
  for (const element of document.querySelectorAll("td[data-of]")) {
    say(element, sized(found[element.dataset.of], BigInt(element.dataset.step)));
  }
  $("active-line").hidden = found.active_params === found.params;
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
  $("now").replaceChildren(make("strong", {}, grouped(found.params)), ` ${state.model.name}`);
}
