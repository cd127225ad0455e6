// The left side, and what keeps both sides, the address and a screen reader in step.
const LABELS = {
  d_model: "d_model", n_layers: "layers", n_heads: "heads", n_kv_heads: "KV heads", head_dim: "head_dim", d_ff: "d_ff",
  vocab_size: "vocabulary", n_experts: "experts", top_k: "top k", context: "context", batch: "batch",
};
const HINTS = { n_experts: "0 is dense", top_k: "experts a token", context: "tokens", batch: "sequences" };
const SWITCH_LABELS = {
  gated_ffn: "Gated FFN (SwiGLU)", tie_embeddings: "Head tied to the embedding", gpt2: "GPT-2 mode: biases, LayerNorm, learned positions",
};
const TOPS = {
  d_model: 65536, n_layers: 256, n_heads: 256, n_kv_heads: 256, head_dim: 1024, d_ff: 262144, vocab_size: 1048576,
  n_experts: 1024, top_k: 64, context: 4194304, batch: 4096,
};
let boxes = {}, last = null, timers = {}, first = true;

// Where a slider stops: every number to 32, then 16 an octave, and the model's own.
function stopsOf(field, own) {
  const value = own ?? 1n, usual = TOPS[field.name];
  let top = usual === undefined ? 16n * value : BigInt(usual);
  if (top < 64n) top = 64n;
  if (top < value) top = 2n * value;
  if (top > BigInt(field.most)) top = BigInt(field.most);
  const found = new Set([value]);
  for (let n = least(field); n <= 32n && n <= top; n++) found.add(n);
  for (let octave = 32n; octave < top; octave *= 2n) {
    for (let i = 1n; i <= 16n && octave + (octave * i) / 16n <= top; i++) found.add(octave + (octave * i) / 16n);
  }
  return [...found].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
}

function placeOf(stops, value) {
  let best = 0;
  const away = (i) => (stops[i] > value ? stops[i] - value : value - stops[i]);
  stops.forEach((_, i) => { if (away(i) < away(best)) best = i; });
  return best;
}

// A slider passes over what cannot be: the nearest stop that breaks no rule, else the stop itself.
function settle(name, stops, place) {
  for (let gap = 0; gap < stops.length; gap++) {
    for (const i of gap ? [place + gap, place - gap] : [place]) {
      if (i in stops && isPossible({ ...state.values, [name]: stops[i] })) return stops[i];
    }
  }
  return stops[place];
}

function buildField(field, i) {
  const label = LABELS[field.name] ?? field.name, hint = HINTS[field.name];
  const box = make("input", { type: "text", inputmode: "numeric", id: `box-${i}`, autocomplete: "off", spellcheck: "false", "data-field": field.name });
  const slider = make("input", { type: "range", id: `slider-${i}`, min: 0, "aria-label": `${label} slider`, "data-slider": field.name });
  const words = make("label", { for: `box-${i}` }, ...label.split(/(?<=\.)/).flatMap((part) => [part, make("wbr")]), ...(hint ? [" ", make("small", {}, hint)] : []));
  const entry = { field, box, slider, stops: stopsOf(field, state.values[field.name]) };
  slider.max = entry.stops.length - 1;
  boxes[field.name] = entry;
  box.addEventListener("input", () => {
    const text = box.value.trim(), value = parse(text, field.tokens);
    delete state.texts[field.name];
    if (text === "" && field.fallback !== null) state.values[field.name] = null;
    else if (value === null) state.texts[field.name] = text || "nothing";
    else put(field.name, value);
    update();
  });
  slider.addEventListener("input", () => {
    delete state.texts[field.name];
    put(field.name, settle(field.name, entry.stops, Number(slider.value)));
    update(slider);
  });
  return make("div", { class: "field" }, words, box, slider);
}

function put(name, value) {
  state.values[name] = value;
  if (name === "n_experts" && value > 0n && state.values.top_k === null) {
    const usual = BigInt(DATA.experts.top_k);
    state.values.top_k = usual < value ? usual : value;
  }
}

function buildControls() {
  boxes = {};
  const made = structure().fields.map((field, i) => [field.name in LABELS, buildField(field, i)]);
  $("fields").replaceChildren(...made.filter(([card]) => card).map(([, element]) => element));
  $("more").replaceChildren(...made.filter(([card]) => !card).map(([, element]) => element));
  $("more-section").hidden = made.every(([card]) => card);
  const shown = DATA.switches.map((name, i) => [name, i]).filter(([name, i]) => name in SWITCH_LABELS && canSwitch(i));
  $("switches").replaceChildren(...shown.map(([name, i]) => {
    const box = make("input", { type: "checkbox", role: "switch", "data-switch": name });
    box.addEventListener("change", () => { state.on[i] = box.checked; update(); });
    return make("label", { class: "switch" }, box, SWITCH_LABELS[name]);
  }));
  $("switches").parentElement.hidden = shown.length === 0;
  for (const option of $("dtype").options) option.hidden = option.disabled = !hasFormat(option.value);
}

function showControls(filled, busy) {
  for (const [name, { field, box, slider, stops }] of Object.entries(boxes)) {
    const value = state.values[name], full = filled[name] ?? value ?? 1n;
    box.placeholder = field.fallback === null ? "" : `${full} (default)`;
    if (document.activeElement !== box) box.value = name in state.texts ? state.texts[name] : value ?? "";
    if (slider !== busy) slider.value = placeOf(stops, full);
    slider.setAttribute("aria-valuetext", grouped(full));
    box.disabled = slider.disabled = name === "top_k" && filled.n_experts === 0n;
    box.setAttribute("aria-invalid", String(name in state.texts));
  }
  for (const box of document.querySelectorAll("[data-switch]")) box.checked = state.on[DATA.switches.indexOf(box.dataset.switch)];
  $("dtype").value = state.dtype;
  $("kv").value = state.kv;
}

// Counts and shows; an impossible shape says why and leaves the last result, marked stale.
function update(busy, unread = []) {
  const began = performance.now();
  let line = problem(), found = last;
  if (!line) {
    try {
      found = last = figures();
      show(found);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      line = "this shape divides by 0; change it";
    }
  }
  $("unread").hidden = unread.length === 0;
  say($("unread"), unread.join("\n"));
  $("problem").hidden = $("stale").hidden = !line;
  if ($("problem").textContent !== line) $("problem").textContent = line;
  $("results").classList.toggle("stale", Boolean(line));
  let filled = found?.filled ?? {};
  try {
    ({ filled } = apply(state.values));
  } catch { /* a division by 0: what was filled in last stays */ }
  showControls(filled, busy);
  document.documentElement.dataset.milliseconds = (performance.now() - began).toFixed(2);
  later("speak", 500, () => { $("spoken").textContent = line ? "" : `${grouped(found.params)} parameters`; });
  if (!first) later("address", 250, () => history.replaceState(null, "", `#${written()}`));
}

function later(name, wait, act) {
  clearTimeout(timers[name]);
  timers[name] = setTimeout(act, wait);
}

// The state as the part of an address behind #: the model, and what differs from it.
function written() {
  const { model } = state, found = new URLSearchParams({ model: model.name });
  structure().fields.forEach((field, i) => {
    const value = state.values[field.name], own = model.values[i];
    if (String(value) !== String(own)) found.set(field.name, value ?? "");
  });
  DATA.switches.forEach((name, i) => {
    if (canSwitch(i) && i !== EXPERTS && Number(state.on[i]) !== model.on[i]) found.set(name, Number(state.on[i]));
  });
  if (state.dtype !== model.dtype) found.set("dtype", state.dtype);
  if (state.kv !== "bf16") found.set("kv_dtype", state.kv);
  return found.toString();
}

// What the address says of a state, and a line for each part of it that means nothing here.
function read(text) {
  let given = new URLSearchParams(text);
  const unread = [], named = given.get("model"), own = DATA.models.find((model) => model.name === named);
  take(own ?? DATA.models[DATA.first]);
  if (named !== null && !own) {
    unread.push(`model = ${named.slice(0, 40)}: is not on this page; ${state.model.name} is shown as it is`);
    given = new URLSearchParams();
  }
  const choose = (key, list, usual) => {
    const name = given.get(key) ?? usual;
    if (list.includes(name)) return name;
    unread.push(`${key} = ${name.slice(0, 40)}: is no format of ${state.model.name} here; ${usual} is taken`);
    return usual;
  };
  state.dtype = choose("dtype", DATA.dtypes.filter(hasFormat), state.model.dtype);
  state.kv = choose("kv_dtype", Object.keys(DATA.kv), "bf16");
  show(last = figures()); // what stays, marked stale, where the address holds a shape that cannot be
  for (const field of structure().fields) {
    if (!given.has(field.name)) continue;
    const typed = given.get(field.name), value = parse(typed, field.tokens);
    if (typed === "" && field.fallback !== null) state.values[field.name] = null;
    else if (value === null) state.texts[field.name] = typed || "nothing";
    else put(field.name, value);
  }
  const switches = DATA.switches.filter((_, i) => canSwitch(i) && i !== EXPERTS);
  for (const name of switches) {
    const typed = given.get(name), i = DATA.switches.indexOf(name);
    if (typed === "0" || typed === "1") state.on[i] = typed === "1";
    else if (typed !== null) unread.push(`${name} = ${typed.slice(0, 40)}: must be 0 or 1; ${Number(state.on[i])} is taken`);
  }
  const known = new Set(["model", "dtype", "kv_dtype", ...switches, ...structure().fields.map((field) => field.name)]);
  for (const name of new Set(given.keys())) {
    if (!known.has(name)) unread.push(`${name.slice(0, 40)}: is nothing to change in ${state.model.name} here; left out`);
    else if (given.getAll(name).length > 1) unread.push(`${name}: is given twice; the first is taken`);
  }
  buildControls();
  $("model").value = state.model.name;
  update(undefined, unread);
}

function listModels(words) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const found = DATA.models.filter((m) => wanted.every((word) => m.words.includes(word)));
  $("model").replaceChildren(...found.map((m) => make("option", { value: m.name }, m.name)));
  $("matches").textContent = words ? `${found.length} of ${DATA.models.length} models` : "";
  $("model").value = state.model.name;
}

function isDark() {
  const own = document.documentElement.dataset.theme;
  return own ? own === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
function nameTheme() { $("theme").textContent = isDark() ? "Light" : "Dark"; }

buildResults();
for (const [id, names] of [["dtype", DATA.dtypes], ["kv", Object.keys(DATA.kv)]]) {
  $(id).append(...names.map((name) => make("option", {}, name)));
}
$("dtype").addEventListener("change", () => { state.dtype = $("dtype").value; update(); });
$("kv").addEventListener("change", () => { state.kv = $("kv").value; update(); });
$("search").addEventListener("input", () => listModels($("search").value));
$("model").addEventListener("change", () => read(new URLSearchParams({ model: $("model").value }).toString()));
$("controls").addEventListener("submit", (event) => event.preventDefault());
$("controls").addEventListener("focusout", () => { if (last) showControls(apply(state.values).filled); });
$("reset").addEventListener("click", () => read(new URLSearchParams({ model: state.model.name }).toString()));
$("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  nameTheme();
});
$("link").addEventListener("click", async () => {
  history.replaceState(null, "", `#${written()}`);
  try {
    await navigator.clipboard.writeText(location.href);
    $("link").textContent = "Copied";
  } catch {
    $("link").textContent = "It is in the address bar";
  }
  later("link", 2000, () => { $("link").textContent = "Copy link"; });
});
// A hash without = is a place in the page, not a state.
const isPlace = () => location.hash.length > 1 && !location.hash.includes("=");
addEventListener("hashchange", () => {
  if (!isPlace() && location.hash.slice(1) !== written()) read(location.hash.slice(1));
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address keeps the state
  $("results").focus();
});
addEventListener("resize", () => later("curve", 100, () => { if (last) showCurve(last); }));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameTheme);
nameTheme();
read(isPlace() ? "" : location.hash.slice(1));
listModels("");
first = false;
