// The run, as report/page_data.cpp tells it, deflated, in base64. Columns are arrays of one value for each row.
//
//   summary       summary.json
//   mesh          rows, cols, dead_tiles (names), wafer: rows and cols of one of those that lie side by side
//   tiles         by used tile: id (y * cols + x), stage, group, cycles.<kind>, busy cycles, bytes, peak, peak_by_class.<class>, energy (joules; null when not modelled)
//   ranks         <axis>: rank of each used tile; null when unknown
//   links         by live link: id (tile * 8 + direction: north, east, south, west, express links after these), to (tile), bytes, packets, busy, queue, energy, by_axis.<axis>
//   steps         columns of the steps shown, with kinds and passes as words
//   memory        by recorded tile: cycle, total, bytes.<class>
//   windows       tiles.<kind>: 255ths of the window's cycles by tile and window, base64; links likewise, by `row` of links
//   path          critical_path.json, with bars [stage, kind, axis, from, to] instead of segments
//   step_cycles, operations, latency, spans, bubbles, flows
// A part that the run did not record is null. Of a comparison: comparison (labels, measures, keys) and runs, each with summary,
// mesh, tiles and links.

const bytesOf = (base64) => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));

const sum = (values) => values.reduce((total, value) => total + value, 0);

/** The causes of cycles, in the order in which they are stacked. */
export const kinds = [
  "compute", "exposed_tp", "exposed_tatp", "exposed_sp", "exposed_ep", "exposed_dp", "exposed_pp", "memory_stall", "bubble", "idle",
];

export const kindNames = {
  compute: "compute", memory_stall: "memory stall", bubble: "bubble", idle: "idle",
  exposed_tp: "exposed tp", exposed_tatp: "exposed tatp", exposed_sp: "exposed sp", exposed_ep: "exposed ep",
  exposed_dp: "exposed dp", exposed_pp: "exposed pp",
};

/** `packed` is base64 of the deflated JSON. */
export async function read(packed) {
  const stream = new Blob([bytesOf(packed)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

/** What the sections ask of a run besides its columns. */
export function prepare(run) {
  run.cycles = run.summary.cycles;
  run.clock = run.summary.machine.clock_hz;
  run.kinds = kinds.filter((kind) => run.tiles.cycles[kind]);
  run.exposedKinds = run.kinds.filter((kind) => kind.startsWith("exposed_"));
  run.axes = Object.keys(run.ranks ?? {});
  run.stages = Math.max(...run.tiles.stage, 0) + 1;
  run.tileAt = new Map(run.tiles.id.map((id, row) => [id, row]));
  run.link = (row) => placeOf(run, row);
  run.linkAt = new Map(run.links.id.map((_, row) => run.link(row)).map((link, row) => [link.express ? null : spotOf(link.x, link.y, link), row]));
  const { cols, wafer } = run.mesh;
  run.wafers = (run.mesh.rows / wafer.rows) * (cols / wafer.cols);
  run.waferOf = (id) => Math.floor(id / cols / wafer.rows) * (cols / wafer.cols) + Math.floor((id % cols) / wafer.cols);
  run.tileName = (id) => `tile_${id % run.mesh.cols}_${Math.floor(id / run.mesh.cols)}`;
  run.linkName = (row) => `${run.tileName(Math.floor(run.links.id[row] / 8))} → ${run.tileName(run.links.to[row])}`;
  if (run.windows) unpackWindows(run);
  return run;
}

const ways = [[0, -1], [1, 0], [0, 1], [-1, 0]];

/**
 * Where a link is drawn: the way it leads, and the tile (x, y) beside which its gap lies: the last before its target, which is
 * another than its source where tiles share routers; of a link round the edge the source. An express link goes from tile to tile.
 */
function placeOf(run, row) {
  const { cols } = run.mesh;
  const id = run.links.id[row];
  const to = run.links.to[row];
  const from = Math.floor(id / 8);
  const [right, down] = ways[id % 4];
  const source = { x: from % cols, y: Math.floor(from / cols) };
  const target = { x: to % cols, y: Math.floor(to / cols) };
  const ahead = (target.x - source.x) * right + (target.y - source.y) * down;
  const express = id % 8 >= 4;
  const beside = ahead > 0 && !express ? { x: target.x - right, y: target.y - down } : source;
  return { ...beside, right, down, express, length: Math.abs(ahead) };
}

/** Names the gap beside a tile on the way of a link. */
export const spotOf = (x, y, { right, down }) => `${x},${y},${right},${down}`;

function unpackWindows(run) {
  const { windows } = run;
  for (const kind of Object.keys(windows.tiles)) windows.tiles[kind] = bytesOf(windows.tiles[kind]);
  windows.links.busy = bytesOf(windows.links.busy);
  windows.links.queueRoot = bytesOf(windows.links.queue_root);
  windows.linkItem = new Map(windows.links.row.map((row, item) => [row, item]));
  /** Share of the window's cycles, 0..1. */
  windows.tileShare = (kind, tile, window) => (windows.tiles[kind]?.[tile * windows.count + window] ?? 0) / 255;
  windows.linkBusy = (link, window) => {
    const item = windows.linkItem.get(link);
    return item === undefined ? 0 : windows.links.busy[item * windows.count + window] / 255;
  };
  windows.linkQueue = (link, window) => {
    const item = windows.linkItem.get(link);
    return item === undefined ? 0 : (windows.links.queueRoot[item * windows.count + window] / 255) ** 2 * windows.links.queue_most;
  };
}

/** Cycles of some tiles by kind. */
export function cyclesOf(run, rows) {
  return Object.fromEntries(run.kinds.map((kind) => [kind, sum(rows.map((row) => run.tiles.cycles[kind][row]))]));
}

export { sum };
