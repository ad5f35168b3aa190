// Colours. Categories are those of Okabe and Ito, told apart with every common kind of colour blindness; ramps go through one
// hue by lightness, blue for tiles and orange for links.

const light = {
  dark: false,
  text: "#1c2430", muted: "#5b6675", line: "#d5dbe3", panel: "#ffffff", page: "#f4f6f9",
  accent: "#0b62a8",
  tileRamp: ["#dbe8f4", "#b0d0e8", "#6aaed6", "#2e7ebc", "#0b4d94", "#08244f"],
  difference: ["#08407e", "#4f97cf", "#e9edf2", "#f59a4a", "#a13300"],
  linkRamp: ["#f3dcc6", "#fdae6b", "#f16913", "#c03b02", "#7f2704"],
  unused: "#dfe4ea", dead: "#9aa4b1", outline: "#111827", mark: "#b5179e",
  kinds: {
    compute: "#0072b2", exposed_tp: "#e69f00", exposed_tatp: "#d55e00", exposed_sp: "#cc79a7", exposed_ep: "#8c510a",
    exposed_dp: "#009e73", exposed_pp: "#56b4e9", memory_stall: "#f0e442", bubble: "#b8c0cb", idle: "#e3e7ec",
  },
};

const dark = {
  dark: true,
  text: "#e6ebf2", muted: "#9ba7b6", line: "#313b48", panel: "#171d26", page: "#0f141b",
  accent: "#6db8f2",
  tileRamp: ["#203042", "#1d4468", "#1f669f", "#3f93d1", "#86c4f0", "#d9efff"],
  difference: ["#86c4f0", "#2a72ad", "#2a333f", "#c4640f", "#ffc48a"],
  linkRamp: ["#3a2a1e", "#7d4312", "#c4640f", "#f99a3d", "#ffd9a8"],
  unused: "#232c38", dead: "#57616f", outline: "#ffffff", mark: "#ff6ad5",
  kinds: {
    compute: "#3b9bd8", exposed_tp: "#f0b429", exposed_tatp: "#e8743b", exposed_sp: "#d88fb8", exposed_ep: "#b9803a",
    exposed_dp: "#2bbf93", exposed_pp: "#8fd3f7", memory_stall: "#f2ea6b", bubble: "#5d6876", idle: "#2f3945",
  },
};

const axisOf = (kind) => kind.replace("exposed_", "");

for (const theme of [light, dark]) {
  const { kinds } = theme;
  theme.axes = { none: theme.muted };
  for (const kind of Object.keys(kinds)) if (kind.startsWith("exposed_")) theme.axes[axisOf(kind)] = kinds[kind];
  theme.passes = { F: kinds.compute, B: kinds.exposed_sp, W: kinds.exposed_tp, R: kinds.exposed_pp, "-": kinds.compute };
  theme.steps = {
    embedding: kinds.exposed_ep, head: kinds.exposed_tatp, optimizer: kinds.memory_stall, gradient_sync: kinds.exposed_dp,
    parameter_gather: theme.dark ? "#8fe3c6" : "#005c43", custom: theme.muted,
  };
  theme.classes = {
    parameters: kinds.compute, gradients: kinds.exposed_dp, optimizer: kinds.exposed_tp, activations: kinds.exposed_pp,
    stream_buffers: kinds.exposed_sp, communication_buffers: kinds.exposed_tatp,
  };
}

const key = "wafersim-theme";
const system = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = [];
let chosen = null;

/** Pages that are opened from a file may have no storage. */
function remembered() {
  try {
    return window.localStorage.getItem(key);
  } catch {
    return null;
  }
}

const isDark = () => (chosen ?? (system.matches ? "dark" : "light")) === "dark";

export const theme = () => (isDark() ? dark : light);
export const onTheme = (listener) => listeners.push(listener);

function apply() {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  for (const listener of listeners) listener();
}

export function toggleTheme() {
  chosen = isDark() ? "light" : "dark";
  try {
    window.localStorage.setItem(key, chosen);
  } catch {
    // Then the choice lasts as long as the page.
  }
  apply();
}

export function startTheme() {
  const before = remembered();
  chosen = before === "dark" || before === "light" ? before : null;
  system.addEventListener("change", apply);
  apply();
}

const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

/** 256 colours of a ramp, as CSS. */
export function rampColours(stops) {
  const parts = stops.map(channels);
  return Array.from({ length: 256 }, (_, i) => {
    const place = (i / 255) * (parts.length - 1);
    const from = Math.min(Math.floor(place), parts.length - 2);
    const mixed = parts[from].map((value, c) => Math.round(value + (parts[from + 1][c] - value) * (place - from)));
    return `rgb(${mixed.join(",")})`;
  });
}
