// Numbers as people read them.

const threeDigits = (value) => {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
};

function scaled(value, base, units) {
  let unit = 0;
  while (Math.abs(value) >= base * 0.9995 && unit + 1 < units.length) {
    value /= base;
    unit += 1;
  }
  return `${unit === 0 && Number.isInteger(value) ? value : threeDigits(value)} ${units[unit]}`.trimEnd();
}

export const bytes = (value) => scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);
export const short = (value) => scaled(value, 1000, ["", "k", "M", "G", "T", "P"]);
/** Of at least a trillionth: joules, watts. */
function withUnit(value, unit) {
  if (value === 0) return `0 ${unit}`;
  const prefixes = ["p", "n", "µ", "m", "", "k", "M", "G", "T", "P", "E"];
  const step = Math.min(Math.max(Math.floor(Math.log10(Math.abs(value) * 1.0005) / 3 + 1e-12), -4), 6);
  return `${threeDigits(value / 1000 ** step)} ${prefixes[step + 4]}${unit}`;
}

export const joules = (value) => withUnit(value, "J");
export const watts = (value) => withUnit(value, "W");
export const count = (value) => Math.round(value).toLocaleString("en-US");

export function percent(share) {
  if (share === 0) return "0 %";
  const value = share * 100;
  return Math.abs(value) < 0.1 ? (value < 0 ? "> −0.1 %" : "< 0.1 %") : `${value.toFixed(1)} %`;
}

export function seconds(value) {
  if (value === 0) return "0 s";
  const units = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"], [0, "ps"]];
  const [size, unit] = units.find(([least]) => Math.abs(value) >= least * 0.9995);
  return `${threeDigits(value / (size || 1e-12))} ${unit}`;
}

/** Cycles as time, with which people think, and as cycles, with which the simulator counts. */
export const timeOf = (run, cycles) => seconds(cycles / run.clock);
export const timeAndCycles = (run, cycles) => `${timeOf(run, cycles)} (${count(cycles)} cycles)`;

const entities = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
/** Text that is put into HTML: names are the user's. */
export const escaped = (text) => String(text).replace(/[&<>"']/g, (character) => entities[character]);

/** The scenario in the form that scenario files have. */
export function yaml(value, indent = "") {
  if (Array.isArray(value)) return value.length === 0 ? "[]" : `[${value.map((each) => yaml(each)).join(", ")}]`;
  if (value === null) return "null";
  if (typeof value === "object") {
    return Object.entries(value)
      .map(([key, each]) => {
        const nested = each !== null && typeof each === "object" && !Array.isArray(each);
        return nested ? `${indent}${key}:\n${yaml(each, `${indent}  `)}` : `${indent}${key}: ${yaml(each)}`;
      })
      .join("\n");
  }
  if (typeof value !== "string") return String(value);
  return /^[\w./+-]+( [\w./+-]+)*$/.test(value) ? value : JSON.stringify(value);
}
