// What the wafer map can show: a value for each tile or link, over the whole run or in one window of it. Where `root` is set values
// differ by orders of magnitude, and the map draws their square roots.

import * as format from "./format.js";
import { kindNames, sum } from "./data.js";

const share = (name, explanation, whole, window) => ({ name, explanation, whole, window, text: format.percent, isShare: true });

function kindMeasure(run, kind, explanation) {
  return share(kindNames[kind] ?? kind, explanation,
    (tile) => (run.tiles.cycles[kind]?.[tile] ?? 0) / run.cycles,
    run.windows && ((tile, window) => run.windows.tileShare(kind, tile, window)));
}

const explanations = {
  memory_stall: "share of the time in which an operation waits for SRAM or DRAM",
  bubble: "share of the time in which the tile waits for another pipeline stage",
  idle: "share of the time in none of the other states",
};

export function tileMeasures(run) {
  const of = (column) => (tile) => run.tiles[column][tile];
  const measures = { compute: kindMeasure(run, "compute", "share of the time in which an operation computes") };
  measures.compute.name = "compute utilization";
  if (run.exposedKinds.length > 0) {
    measures.exposed = share("exposed communication", "share of the time in which the tile waits for a message on its way",
      (tile) => sum(run.exposedKinds.map((kind) => run.tiles.cycles[kind][tile])) / run.cycles,
      run.windows && ((tile, window) => sum(run.exposedKinds.map((kind) => run.windows.tileShare(kind, tile, window)))));
  }
  if (run.exposedKinds.length > 1) {
    for (const kind of run.exposedKinds) {
      measures[kind] = kindMeasure(run, kind, `the same, for messages of ${kind.replace("exposed_", "")} alone`);
    }
  }
  for (const kind of ["bubble", "memory_stall", "idle"]) {
    if (run.tiles.cycles[kind]) measures[kind] = kindMeasure(run, kind, explanations[kind]);
  }
  measures.communicating = share("messages in flight", "share of the time with a message on its way to or from the tile",
    (tile) => run.tiles.communicating[tile] / run.cycles);
  measures.matrix = share("matrix engine", "share of the time in which the engine has an operation",
    (tile) => run.tiles.matrix_busy[tile] / run.cycles);
  measures.vector = share("vector engine", "share of the time in which the engine has an operation",
    (tile) => run.tiles.vector_busy[tile] / run.cycles);
  measures.peak = { name: "peak memory", explanation: "largest amount held at the end of a cycle", whole: of("peak"), text: format.bytes };
  measures.sent = { name: "bytes sent", explanation: "by the tile itself, not what passes through", whole: of("bytes_sent"), text: format.bytes };
  if (run.tiles.energy) {
    measures.energy = { name: "energy", explanation: "of the tile, its router and the links that leave it, over the whole run", whole: of("energy"), text: format.joules };
  }
  return measures;
}

export function linkMeasures(run) {
  const { links, windows } = run;
  const cycles = (value) => `${format.short(value)} cycles`;
  return {
    busy: {
      name: "utilization", explanation: "share of the time in which a packet holds the link", text: format.percent, isShare: true,
      whole: (link) => links.busy[link] / run.cycles, window: windows && windows.linkBusy,
    },
    queue: {
      name: "queueing", explanation: "cycles in which packets waited for the link, all packets together", text: cycles, root: true,
      whole: (link) => links.queue[link], window: windows && windows.linkQueue,
    },
    bytes: { name: "bytes", explanation: "carried", text: format.bytes, whole: (link) => links.bytes[link] },
    ...(links.energy && { energy: { name: "energy", explanation: "of the bits carried", text: format.joules, whole: (link) => links.energy[link] } }),
  };
}

/** Values that differ by less, as a share of the whole or of the largest, look alike: colours are for differences that matter. */
const smallestSpread = 0.01;

/** The range of a measure's colours: from its smallest to its largest value over items and, where it has them, windows. */
export function range(measure, items, windows) {
  const [low, high] = extent(measure, items, windows);
  const least = smallestSpread * (measure.isShare ? 1 : high);
  if (high - low >= least) return [low, high];
  const middle = Math.max((low + high) / 2, least / 2);
  return [middle - least / 2, middle + least / 2];
}

function extent(measure, items, windows) {
  let low = Infinity;
  let high = -Infinity;
  for (let item = 0; item < items; item += 1) {
    for (let window = 0; window < Math.max(windows, 1); window += 1) {
      const value = windows > 0 ? measure.window(item, window) : measure.whole(item);
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  return items === 0 ? [0, 0] : [low, high];
}
