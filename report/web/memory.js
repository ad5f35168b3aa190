// Section: what tiles hold, over time and at most.

import { axisStyle, chart, zoomStyle } from "./charts.js";
import { sum } from "./data.js";
import { choice, element, note } from "./dom.js";
import * as format from "./format.js";

export const id = "memory";
export const title = "Memory";

const readable = (name) => name.replace("_", " ");

export function render(section, run) {
  const { memory } = run.summary;
  if (run.memory) {
    const columns = element("div", { class: "columns" });
    section.append(columns);
    const peak = (recorded) => Math.max(...recorded.total);
    const order = [...run.memory].sort((a, b) => peak(b) - peak(a));
    const top = limitOf(run, peak(order[0]));
    overTime(columns, run, "memory", order, 0, top);
    overTime(columns, run, "memory2", order, order.length - 1, top);
  }
  section.append(element("h3", {}, "Peak of every tile, fullest first"));
  imbalance(section, run);
  const peaks = run.tiles.peak;
  const mean = sum(peaks) / peaks.length;
  const parts = [
    `The fullest tile, ${memory.peak_tile}, holds ${format.bytes(memory.peak_bytes)} of ${format.bytes(memory.capacity_bytes)}` +
    `${memory.dram_capacity_bytes > 0 ? ` (${format.bytes(memory.sram_capacity_bytes)} SRAM and ${format.bytes(memory.dram_capacity_bytes)} DRAM)` : ""}; ` +
    `the mean is ${format.bytes(mean)}, so the fullest has ${(memory.peak_bytes / mean).toFixed(2)} times as much.`,
  ];
  if (!run.memory) parts.push("Run with --report or --memory to see memory over time.");
  section.append(note(parts.join(" ")));
}

/** The top of the scale: with the capacity when it is not far above what is held. */
const limitOf = (run, peak) => {
  const capacity = run.summary.memory.capacity_bytes;
  return capacity < 3 * peak ? Math.max(capacity, peak) * 1.04 : peak * 1.08;
};

/** Ticks at round binary amounts. */
const ticks = (top) => ({ type: "value", min: 0, max: top, interval: 2 ** Math.floor(Math.log2(top / 3)), axisLabel: { formatter: format.bytes, showMaxLabel: false } });

function capacityLine(run, colours, top) {
  const capacity = run.summary.memory.capacity_bytes;
  if (capacity > top) return undefined;
  return {
    silent: true, symbol: "none", lineStyle: { color: colours.kinds.exposed_tatp, width: 2, type: "dashed" },
    label: { formatter: `capacity ${format.bytes(capacity)}`, color: colours.text, position: "insideStartTop" }, data: [{ yAxis: capacity }],
  };
}

/** Rows to draw: ECharts leaves out a last point that is too close to the one before it, and its area then ends in a slope. */
function apart(recorded, run) {
  const last = recorded.cycle.length - 1;
  return recorded.cycle.flatMap((cycle, i) => (i === last || recorded.cycle[last] - cycle > run.cycles / 300 ? [i] : []));
}

/** One recorded tile, which the reader chooses; first the `first` of them. */
function overTime(parent, run, name, order, first, top) {
  let shown = order[first];
  const box = element("div", {});
  const roleOf = (recorded) => (recorded === order[0] ? ", fullest" : recorded === order[order.length - 1] ? ", emptiest" : "");
  const options = order.map((recorded, i) => [String(i), `${run.tileName(recorded.tile)}${roleOf(recorded)}`]);
  box.append(element("div", { class: "controls" }, choice("Tile", options, String(first), (value) => {
    shown = order[Number(value)];
    drawn.redraw();
  })));
  parent.append(box);
  const used = (recorded) => Object.keys(recorded.bytes).filter((each) => recorded.bytes[each].some((value) => value > 0));
  const drawn = chart(box, name, "Memory of one tile over time by class", 320, (colours) => ({
    legend: { data: used(shown).map(readable) },
    grid: { left: 70, right: 16, top: 36, bottom: 56 },
    tooltip: { trigger: "axis", valueFormatter: format.bytes, axisPointer: { label: { formatter: ({ value }) => format.timeOf(run, value) } } },
    dataZoom: zoomStyle(colours, { labelFormatter: (value) => format.timeOf(run, value) }),
    xAxis: axisStyle(colours, { type: "value", min: 0, max: run.cycles, axisLabel: { formatter: (value) => format.timeOf(run, value), hideOverlap: true } }),
    yAxis: axisStyle(colours, ticks(top)),
    series: used(shown).map((each, index) => ({
      name: readable(each), type: "line", step: "end", stack: "held", symbol: "none", lineStyle: { width: 0 }, color: colours.classes[each],
      areaStyle: { opacity: 0.9, color: colours.classes[each] }, data: apart(shown, run).map((i) => [shown.cycle[i], shown.bytes[each][i]]),
      markLine: index === 0 ? capacityLine(run, colours, top) : undefined,
    })),
  }));
}

const mostPeaks = 500;

function imbalance(parent, run) {
  const order = run.tiles.peak.map((_, row) => row).sort((a, b) => run.tiles.peak[b] - run.tiles.peak[a]);
  const top = limitOf(run, run.tiles.peak[order[0]]);
  const drawn = Math.min(order.length, mostPeaks);
  const places = Array.from({ length: drawn }, (_, i) => Math.round((i * (order.length - 1)) / Math.max(drawn - 1, 1)));
  const text = ([{ value: [place, peak] }]) => `<b>${run.tileName(run.tiles.id[order[place - 1]])}</b>, number ${format.count(place)} of ${format.count(order.length)}<br>${format.bytes(peak)}`;
  chart(parent, "peaks", "Peak memory of every tile, fullest first", 220, (colours) => ({
    grid: { left: 70, right: 16, top: 16, bottom: 42 },
    tooltip: { trigger: "axis", formatter: text },
    xAxis: axisStyle(colours, { type: "value", min: 1, max: Math.max(order.length, 2), splitLine: { show: false }, name: "tiles", nameLocation: "middle", nameGap: 24 }),
    yAxis: axisStyle(colours, ticks(top)),
    series: [{
      name: "peak", type: "line", step: "middle", symbol: "none", color: colours.kinds.compute, areaStyle: { opacity: 0.35 },
      data: places.map((place) => [place + 1, run.tiles.peak[order[place]]]), markLine: capacityLine(run, colours, top),
    }],
  }));
}
