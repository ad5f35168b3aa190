// Section: the chain of last arrivals that decided when the run ended, and what other machines could gain.

import { axisStyle, chart } from "./charts.js";
import { sum } from "./data.js";
import { element, note, table } from "./dom.js";
import * as format from "./format.js";
import { gantt } from "./gantt.js";
import { theme } from "./theme.js";

export const id = "path";
export const title = "Critical path";

const names = {
  matrix: "matrix", vector: "vector", reduce: "reduce", memory_stall: "memory stall", memory_wait: "waiting for shared memory",
  overhead: "message overhead", serialization: "serialization", link: "link latency", router: "router pipelines", wire: "wires",
  injection_queue: "behind others at the NIC", injection_room: "for room in the router", link_queue: "behind others for a link",
  link_room: "for room behind a link", ejection_queue: "for the ejection port",
};
const operations = ["matrix", "vector", "reduce"];
const waits = ["injection_queue", "injection_room", "link_queue", "link_room", "ejection_queue"];
const mostLinks = 10;

const isWait = (kind) => waits.includes(kind);

/** Operations in the colours of computation, messages in those of their axis, lighter where they wait. */
const colourOf = (kind, axis) => (colours) => {
  if (kind === "matrix") return colours.kinds.compute;
  if (operations.includes(kind)) return colours.kinds.exposed_pp;
  if (kind.startsWith("memory")) return colours.kinds.memory_stall;
  return colours.axes[axis || "none"];
};

export function render(section, run) {
  const { path } = run;
  const key = element("div", { class: "key" });
  section.append(element("div", { class: "controls" }, key));
  gantt(section, run, "path", "The critical path over time, by pipeline stage", 64 + Math.max(run.stages * 26, 90), () => view(run));
  key.replaceChildren(...keyOf(run));

  const columns = element("div", { class: "columns" });
  const left = element("div", {}, element("h3", {}, "What it consists of"));
  const right = element("div", {}, element("h3", {}, "What other machines could gain"));
  columns.append(left, right);
  section.append(columns);
  parts(left, run);
  right.append(whatIf(run), note("The bound is what is left of the path's operations and wires on such a machine when it waits for nobody: no run with the same operations and messages, in the same order on each engine, is shorter. Behind it what is left with the path's waits kept."));

  const below = element("div", { class: "columns" });
  below.append(element("div", {}, element("h3", {}, "Messages by axis"), axes(run)), element("div", {}, element("h3", {}, "Links on which it waits"), links(run)));
  section.append(below);
  section.append(note(`Each operation started because of the last thing that it waited for: an operation before it, or a message, which was held up by the network. The path follows these back from the end of the run to its start, over ${format.count(path.segment_count)} segments without a gap (critical_path.json)${path.in_slots ? "; a bar here is what most of its time went to" : ""}.`));
}

function view(run) {
  const bars = run.path.bars.map(([stage, kind, axis, from, to]) => ({
    row: stage, from, to, top: isWait(kind) ? 0.3 : 0.1, height: isWait(kind) ? 0.4 : 0.8, colour: colourOf(kind, axis),
    text: () => `stage ${stage}: ${names[kind]}${axis ? `, ${axis}` : ""}<br>${format.timeAndCycles(run, to - from)} from ${format.timeOf(run, from)}`,
  }));
  return { rows: Array.from({ length: run.stages }, (_, stage) => `stage ${stage}`), bars };
}

function keyOf(run) {
  const colours = theme();
  const entries = new Map();
  for (const [, kind, axis] of run.path.bars) {
    const name = kind === "matrix" ? "matrix" : operations.includes(kind) ? "vector, reduce" : kind.startsWith("memory") ? "memory" : `message of ${axis || "no axis"}`;
    if (!entries.has(name)) entries.set(name, colourOf(kind, axis)(colours));
  }
  const swatches = [...entries].map(([name, colour]) => element("span", { class: "entry" }, element("i", { style: `background:${colour}` }), name));
  return [...swatches, element("span", {}, "half as high: waiting for other messages")];
}

function parts(parent, run) {
  const shown = Object.entries(run.path.by_kind).filter(([, cycles]) => cycles > 0).sort((a, b) => b[1] - a[1]);
  chart(parent, "path_parts", "Parts of the critical path", 40 + shown.length * 24, (colours) => ({
    grid: { left: 190, right: 64, top: 6, bottom: 22 },
    tooltip: { trigger: "item", formatter: ({ name, value }) => `${name}: ${format.timeAndCycles(run, value)}` },
    xAxis: axisStyle(colours, { type: "value", axisLabel: { formatter: (value) => format.timeOf(run, value), hideOverlap: true } }),
    yAxis: axisStyle(colours, { type: "category", inverse: true, data: shown.map(([kind]) => names[kind]) }),
    series: [{
      type: "bar", barCategoryGap: "25%",
      label: { show: true, position: "right", color: colours.text, formatter: ({ value }) => format.percent(value / run.path.cycles) },
      data: shown.map(([kind, value]) => ({ value, itemStyle: { color: operations.includes(kind) || kind.startsWith("memory") ? colourOf(kind)(colours) : isWait(kind) ? colours.linkRamp[2] : colours.muted } })),
    }],
  }));
}

function bound(cycles, base) {
  if (cycles === base) return "no shorter";
  return cycles < base ? `at most ${format.percent(1 - cycles / base)} shorter` : `at least ${format.percent(cycles / base - 1)} longer`;
}

function estimate(cycles, base) {
  return cycles === base ? "as long" : `${format.percent(Math.abs(1 - cycles / base))} ${cycles < base ? "shorter" : "longer"}`;
}

function whatIf(run) {
  const { path } = run;
  return table(["change", "bound", "with waits"], path.what_if.map((each) =>
    [each.change, bound(each.at_least_cycles, path.cycles), estimate(each.with_waits_cycles, path.cycles)]), { id: "what-if" });
}

function axes(run) {
  const rows = Object.entries(run.path.by_axis).sort((a, b) => sum(Object.values(b[1])) - sum(Object.values(a[1])))
    .map(([axis, { wire, queueing }]) => [axis, format.percent((wire + queueing) / run.path.cycles), format.timeOf(run, wire), format.timeOf(run, queueing)]);
  return rows.length === 0 ? note("No message is on it.") : table(["axis", "of the path", "wires", "waiting"], rows, { id: "path-axes" });
}

function links(run) {
  const rows = run.path.links.slice(0, mostLinks).map(({ link, queue, room }) =>
    [link.replace(">", " → "), format.percent((queue + room) / run.path.cycles), format.timeOf(run, queue), format.timeOf(run, room)]);
  return rows.length === 0 ? note("On none.") : table(["link", "of the path", "behind others", "for room behind it"], rows, { id: "path-links" });
}
