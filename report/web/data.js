// The run, as report/page_data.cpp tells it, deflated, in base64. Columns are arrays of one value for each row.
//
//   summary       summary.json
//   mesh          rows, cols, dead_tiles (names)
//   tiles         by used tile: id (y * cols + x), stage, group, cycles.<kind>, busy cycles, bytes, peak, peak_by_class.<class>
//   ranks         <axis>: rank of each used tile; null when unknown
//   links         by live link: id (tile * 4 + direction: north, east, south, west), bytes, packets, busy, queue, by_axis.<axis>
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
  run.linkAt = new Map(run.links.id.map((id, row) => [id, row]));
  run.tileName = (id) => `tile_${id % run.mesh.cols}_${Math.floor(id / run.mesh.cols)}`;
  run.linkName = (id) => {
    const { rows, cols } = run.mesh;
    const tile = Math.floor(id / 4);
    const [right, down] = [[0, -1], [1, 0], [0, 1], [-1, 0]][id % 4];
    const x = ((tile % cols) + right + cols) % cols;
    const y = (Math.floor(tile / cols) + down + rows) % rows;
    return `${run.tileName(tile)} → ${run.tileName(y * cols + x)}`;
  };
  if (run.windows) unpackWindows(run);
  return run;
}

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
