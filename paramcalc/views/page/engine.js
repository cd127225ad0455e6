// What is counted: the state, what it breaks, its figures. No arithmetic of a model stands here;
// f(i) gives formula i of the formulas above, and every integer is a BigInt.
const EXPERTS_ON = 1, DEFAULT_HEAD_DIM = 2;
const EXPERTS = DATA.switches.indexOf("experts");
const state = { model: DATA.models[0], values: {}, on: [], dtype: "bf16", kv: "bf16", texts: {} };

for (const own of DATA.structures) {
  own.fields = own.fields.map((i) => DATA.fields[i]);
  own.laws = own.laws.map((i) => DATA.laws[i]);
}

const structure = () => DATA.structures[state.model.structure];
const fieldOf = (name) => structure().fields.find((field) => field.name === name);
const canSwitch = (place) => structure().switches.includes(place);
const least = (field) => field.name === "n_experts" && canSwitch(EXPERTS) ? 0n : 1n;

function take(model) {
  state.model = model;
  state.values = {};
  state.texts = {};
  structure().fields.forEach((field, i) => {
    const value = model.values[i];
    state.values[field.name] = value === null ? null : BigInt(value);
  });
  state.on = model.on.map(Boolean);
  state.dtype = model.dtype;
}

// A size as it is typed: 4096, 4,096, 8k, 1.5M. A step is 1,024 for tokens and 1,000 otherwise.
function parse(text, tokens) {
  const plain = text.trim().replaceAll("_", "").replace(/^\d{1,3}(,\d{3})+$/, (t) => t.replaceAll(",", ""));
  const found = /^(\d{1,30})(?:\.(\d{1,12}))?([kmbgt]?)$/i.exec(plain);
  if (!found) return null;
  const step = { "": 0n, k: 1n, m: 2n, b: 3n, g: 3n, t: 4n }[found[3].toLowerCase()];
  const part = found[2] ?? "";
  const scaled = BigInt(found[1] + part) * (tokens ? 1024n : 1000n) ** step;
  const whole = 10n ** BigInt(part.length);
  return scaled % whole === 0n ? scaled / whole : null;
}

// Puts the state into the variables of the formulas. What is left out gets its default.
function apply(values) {
  forget();
  const experts = canSwitch(EXPERTS) ? values.n_experts > 0n : state.on[EXPERTS];
  DATA.switches.forEach((name, i) => SET[name]?.(BigInt(i === EXPERTS ? experts : state.on[i])));
  SET.kv_bits(BigInt(DATA.kv[state.kv]));
  const filled = { ...values };
  const left = [];
  for (const field of structure().fields) {
    if (values[field.name] === null && field.fallback !== null) left.push(field);
    else SET[field.name](filled[field.name] ??= 0n);
  }
  for (const field of left) SET[field.name]((filled[field.name] = f(field.fallback)));
  return { filled, experts };
}

// The first broken rule among those that hold now, else undefined.
function broken(values, experts) {
  const now = (experts ? EXPERTS_ON : 0) | (values.head_dim === null ? DEFAULT_HEAD_DIM : 0);
  return structure().laws.find((law) => (law.when & now) === law.when && f(law.excess) > 0n);
}

function isPossible(values) {
  try {
    const { experts } = apply(values);
    return broken(values, experts) === undefined;
  } catch {
    return false; // a division by 0
  }
}

// The values of a field just below and above which break no rule.
function near(name) {
  const value = state.values[name], found = [];
  if (value === undefined || value === null) return found;
  for (const way of [-1n, 1n]) {
    for (let i = 1n; i <= 2000n; i++) {
      const other = value + way * i;
      if (other < 1n) break;
      if (isPossible({ ...state.values, [name]: other })) {
        found.push(grouped(other));
        break;
      }
    }
  }
  return found;
}

// One line for what cannot be counted, else an empty text.
function problem() {
  for (const [name, text] of Object.entries(state.texts)) {
    return `${name} = ${text.slice(0, 40)}: must be a whole number; write it as 4096 or 8k`;
  }
  for (const field of structure().fields) {
    const value = state.values[field.name];
    if (value === null) continue;
    const [low, high] = [least(field), BigInt(field.most)];
    if (value < low) return `${field.name} = ${grouped(value)}: must be at least ${grouped(low)}; raise it`;
    if (value > high) return `${field.name} = ${grouped(value)}: must be at most ${grouped(high)}; lower it`;
  }
  const { filled, experts } = apply(state.values);
  const law = broken(state.values, experts);
  if (!law) return "";
  const close = near(law.field);
  const fix = close.length ? `take ${close.join(" or ")}` : "change one of them";
  const value = filled[law.field];
  return `${law.field}${value === undefined ? "" : ` = ${grouped(value)}`}: ${law.rule}; ${fix}`;
}

function figures() {
  const { filled, experts } = apply(state.values);
  const found = { filled, experts };
  DATA.figures.forEach((key, i) => {
    const place = structure().figures[i];
    found[key] = place === null ? null : f(place);
  });
  found.crossing = crossing(found);
  apply(state.values);
  found.parts = DATA.engines.map((engine) => partsOn(engine, found));
  apply(state.values);
  return found;
}

// What one GPU holds under an engine's settings, in bytes.
function partsOn(engine, found) {
  forget();
  SET.step_tokens?.(BigInt(engine.tokens));
  SET.step_requests?.(BigInt(engine.requests));
  const parts = {
    weights: found[`gpu_weight_bytes_${state.dtype}`] ?? found[`weight_bytes_${state.dtype}`],
    cache: found.kv_bytes_paged,
    workspace: f(structure().figures[DATA.figures.indexOf("workspace")]),
    reserve: BigInt(DATA.reserve),
  };
  return { ...parts, need: Object.values(parts).reduce((a, b) => a + b) };
}

const hasFormat = (name) => structure().figures[DATA.figures.indexOf(`weight_bytes_${name}`)] !== null;

// A figure of a token at a length; apply() must follow.
function figureAt(key, n) {
  forget();
  SET.context(n);
  return f(structure().figures[DATA.figures.indexOf(key)]);
}

// Attention FLOPs of the token at each length.
function attentionAt(lengths) {
  const found = lengths.map((n) => figureAt("attention_flops_per_token", n));
  apply(state.values);
  return found;
}

// The smallest context at which attention costs as much as the matmuls: a number, null for never,
// undefined where the formulas do not tell.
function crossing(found) {
  if (found.attention_flops_at_ends === null) return undefined;
  const matmuls = found.matmul_flops_per_token, chunk = found.chunk_size;
  const halved = (key, low, high) => {
    while (high - low > 1n) {
      const middle = (low + high) / 2n;
      if (figureAt(key, middle) >= matmuls) high = middle;
      else low = middle;
    }
    return high;
  };
  // as if each token were the last of its chunk: attention that stands still once never grows again
  const key = "attention_flops_at_ends";
  let high = 1n, cost = figureAt(key, high);
  while (cost < matmuls) {
    const before = cost;
    cost = figureAt(key, (high *= 2n));
    if (cost === before) return null;
  }
  const start = halved(key, high / 2n, high);
  if (chunk === 1n) return start;
  const own = "attention_flops_per_token", end = (start + chunk - 1n) / chunk * chunk;
  return figureAt(own, end) < matmuls ? null : halved(own, start - 1n, end);
}

const LOCALE = new Intl.NumberFormat("en-US");
const grouped = (value) => LOCALE.format(value);
function percent(part, whole) {
  if (whole === 0n || part === 0n) return "0%";
  const tenths = (part * 2000n + whole) / (2n * whole);
  return tenths === 0n ? "<0.1%" : `${tenths / 10n}.${tenths % 10n}%`;
}
const ratio = (part, whole) => whole === 0n ? 0 : Number((part * 100000n) / whole) / 100000;
// Bytes with two decimals in the largest unit that they (or the whole they are part of) fill.
function sized(value, step, whole = value) {
  const names = step === 1000n ? ["B", "kB", "MB", "GB"] : ["B", "KiB", "MiB", "GiB"];
  let unit = 1n, place = 0;
  while (place < 3 && whole >= unit * step) {
    unit *= step;
    place += 1;
  }
  if (place === 0) return `${grouped(value)} B`;
  const hundredths = (value * 200n + unit) / (2n * unit);
  return `${grouped(hundredths / 100n)}.${String(hundredths % 100n).padStart(2, "0")} ${names[place]}`;
}
// A number in its largest unit, rounded to a tenth below 100 of it.
function short(value) {
  const letters = ["", "k", "M", "G", "T", "P", "E", "Z", "Y"];
  let size = 1n, place = 0;
  while (place < letters.length - 1 && value >= size * 1000n) {
    size *= 1000n;
    place += 1;
  }
  const tenths = value < 100n * size ? (value * 20n + size) / (2n * size) : (value * 2n + size) / (2n * size) * 10n;
  const digits = tenths % 10n && tenths < 1000n ? `${tenths / 10n}.${tenths % 10n}` : `${tenths / 10n}`;
  return digits + letters[place];
}
