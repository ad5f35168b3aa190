// Section: links, queues, hotspots and the flows across them, and how long messages take.

import { axisStyle, chart } from "./charts.js";
import { sum } from "./data.js";
import { element, note, table } from "./dom.js";
import * as format from "./format.js";

export const id = "network";
export const title = "Network";

const bins = 24;
const hottest = 15;

export function render(section, run) {
  const columns = element("div", { class: "columns" });
  section.append(columns);
  const left = element("div", {}, element("h3", {}, "Utilization of links"));
  const right = element("div", {});
  columns.append(left, right);
  histogram(left, run);
  if (run.latency) {
    right.append(element("h3", {}, "Latency of messages by axis"));
    latencies(right, run);
  }
  const below = element("div", { class: "columns uneven" });
  below.append(element("div", {}, element("h3", {}, "Hottest links"), hotspots(run)),
    element("div", {}, element("h3", {}, "Queueing and latency"), percentiles(run)));
  section.append(below);
  section.append(note(run.flows
    ? "Open a link to see the heaviest flows whose routes cross it: source, destination, axis, and their share of the link's bytes."
    : "Run with --report to see the flows that cross each of them, and the latency of messages."));
}

function histogram(parent, run) {
  const used = run.links.busy.map((busy) => busy / run.cycles);
  const most = Math.max(...used, 1e-9);
  const counts = new Array(bins).fill(0);
  for (const value of used) counts[Math.min(bins - 1, Math.floor((value / most) * bins))] += 1;
  const edge = (bin) => format.percent((bin / bins) * most);
  chart(parent, "links", "Number of links by utilization", 260, (colours) => ({
    grid: { left: 60, right: 16, top: 16, bottom: 44 },
    tooltip: { trigger: "axis", formatter: ([{ dataIndex, value }]) => `${edge(dataIndex)} to ${edge(dataIndex + 1)}: ${format.count(value)} links` },
    xAxis: axisStyle(colours, { type: "category", data: counts.map((_, bin) => edge(bin)), name: "utilization", nameLocation: "middle", nameGap: 28 }),
    yAxis: axisStyle(colours, { type: "value", name: "links", nameLocation: "middle", nameGap: 40 }),
    series: [{ name: "links", type: "bar", barCategoryGap: "8%", color: colours.linkRamp[2], data: counts }],
  }));
}

/** Share of messages that took at most so long. */
function latencies(parent, run) {
  const axes = Object.keys(run.latency);
  const curve = (classes) => {
    const all = sum(classes.map(([, , messages]) => messages));
    let reached = 0;
    return [[Math.max(classes[0][0], 1), 0], ...classes.map(([, to, messages]) => {
      reached += messages;
      return [Math.max(to, 1), reached / all];
    })];
  };
  const shortest = Math.max(1, Math.min(...axes.map((axis) => run.latency[axis].latency[0][0])));
  chart(parent, "latency", "Share of messages by latency and axis", 260, (colours) => ({
    legend: {},
    grid: { left: 60, right: 24, top: 34, bottom: 44 },
    tooltip: { trigger: "item", formatter: ({ seriesName, value }) => `${seriesName}: ${format.percent(value[1])} of messages take at most ${format.timeAndCycles(run, value[0])}` },
    xAxis: axisStyle(colours, { type: "log", min: 10 ** Math.floor(Math.log10(shortest)), name: "latency", nameLocation: "middle", nameGap: 28, axisLabel: { formatter: (value) => format.timeOf(run, value), hideOverlap: true } }),
    yAxis: axisStyle(colours, { type: "value", min: 0, max: 1, axisLabel: { formatter: (value) => `${value * 100} %` } }),
    series: axes.map((axis) => ({ name: axis, type: "line", step: "end", symbol: "circle", symbolSize: 4, color: colours.axes[axis], data: curve(run.latency[axis].latency) })),
  }));
}

/** The value that a share of the messages does not pass: the end of its class. */
function quantile(classes, share) {
  const wanted = sum(classes.map(([, , messages]) => messages)) * share;
  let reached = 0;
  for (const [, to, messages] of classes) {
    reached += messages;
    if (reached >= wanted) return to;
  }
  return 0;
}

const quantiles = [0.5, 0.9, 0.99, 1];

function percentiles(run) {
  const { links } = run;
  const waits = links.packets.flatMap((packets, row) => (packets > 0 ? [links.queue[row] / packets] : [])).sort((a, b) => a - b);
  const ofLinks = quantiles.map((share) => (waits.length === 0 ? 0 : waits[Math.ceil(share * waits.length) - 1]));
  const cells = (values) => values.map((value) => format.timeOf(run, value));
  const rows = [["mean wait of a packet for a link, over links", ...cells(ofLinks)]];
  for (const [axis, measures] of Object.entries(run.latency ?? {})) {
    rows.push([`latency of messages of ${axis}`, ...cells(quantiles.map((share) => quantile(measures.latency, share)))]);
    rows.push([`of it, queueing, all packets and links`, ...cells(quantiles.map((share) => quantile(measures.queue, share)))]);
  }
  return table(["", "median", "90 %", "99 %", "largest"], rows, { id: "percentiles" });
}

function hotspots(run) {
  const { links } = run;
  const order = links.busy.map((_, row) => row).filter((row) => links.packets[row] > 0)
    .sort((a, b) => links.busy[b] - links.busy[a] || links.bytes[b] - links.bytes[a] || links.id[a] - links.id[b]).slice(0, hottest);
  if (order.length === 0) return note("No link carried a packet.");
  const flows = new Map((run.flows ?? []).map((each) => [each.link, each]));
  return table(["link", "utilization", "bytes", "queue cycles", "traffic by axis"],
    order.map((row) => [linkCell(run, row, flows.get(row)), format.percent(links.busy[row] / run.cycles), format.bytes(links.bytes[row]),
      format.count(links.queue[row]), byAxis(run, row)]), { id: "hotspots" });
}

function byAxis(run, row) {
  return Object.entries(run.links.by_axis)
    .map(([axis, bytes]) => [axis, bytes[row] / run.links.bytes[row]])
    .filter(([, share]) => share >= 0.0005)
    .sort((a, b) => b[1] - a[1])
    .map(([axis, share]) => `${axis} ${format.percent(share)}`.replaceAll(" ", "\u00a0"))
    .join(", ");
}

function linkCell(run, row, crossing) {
  const name = run.linkName(row);
  if (!crossing) return name;
  const named = sum(crossing.heaviest.map(([, , , bytes]) => bytes));
  const lines = crossing.heaviest.map(([source, destination, axis, bytes]) =>
    element("li", {}, `${run.tileName(source)} → ${run.tileName(destination)}, ${axis}: ${format.bytes(bytes)}, ${format.percent(bytes / crossing.bytes)}`));
  const others = crossing.flows - crossing.heaviest.length;
  if (others > 0) lines.push(element("li", {}, `${format.count(others)} others: ${format.percent(1 - named / crossing.bytes)}`));
  return element("details", {}, element("summary", { title: `${format.count(crossing.flows)} flows` }, name), element("ul", {}, ...lines));
}
