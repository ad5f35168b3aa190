// Section: who did what when, by pipeline stage or by tile.

import { kindNames } from "./data.js";
import { choice, element, note } from "./dom.js";
import * as format from "./format.js";
import { gantt } from "./gantt.js";
import { theme } from "./theme.js";

export const id = "timeline";
export const title = "Timeline";

const passNames = { F: "forward", B: "backward", W: "weight gradients", R: "recomputed forward", "-": "" };
/** Steps that run beside others: below them in the row. */
const beside = new Set(["gradient_sync", "parameter_gather"]);

export function render(section, run) {
  const { steps } = run;
  const hasTiles = run.spans !== null && run.spans.tiles.length > 0;
  const state = { view: "stages", replica: 0 };
  const key = element("div", { class: "key" });
  const views = [["stages", "pipeline stages"], ...(hasTiles ? [["tiles", "chosen tiles"]] : [])];
  const replicas = Array.from({ length: steps.replicas }, (_, replica) => [String(replica), `replica ${replica}`]);
  const again = () => {
    drawn.box.style.height = `${heightOf(run, state)}px`;
    drawn.instance.resize();
    drawn.redraw();
    key.replaceChildren(...keyOf(run, state));
  };
  const replicaChoice = choice("Replica", replicas, "0", (value) => { state.replica = Number(value); again(); });
  section.append(element("div", { class: "controls" },
    hasTiles && choice("Rows", views, state.view, (value) => { state.view = value; replicaChoice.hidden = value === "tiles"; again(); }),
    replicas.length > 1 && replicaChoice, key));
  const drawn = gantt(section, run, "timeline", "Steps of each pipeline stage over time", heightOf(run, state), () => viewOf(run, state));
  key.replaceChildren(...keyOf(run, state));
  section.append(note(notes(run, hasTiles)));
}

const heightOf = (run, state) => {
  const rows = state.view === "tiles" ? run.spans.tiles.length : run.stages;
  return 64 + Math.max(rows * (state.view === "tiles" ? 64 : 26), 110);
};

const viewOf = (run, state) => (state.view === "tiles" ? tileView(run) : stageView(run, state.replica));

function colourOfStep(kind, pass) {
  return (colours) => (kind === "layer" ? colours.passes[pass] : colours.steps[kind]);
}

function stageView(run, replica) {
  const { columns, kinds, passes } = run.steps;
  const bars = [];
  for (let i = 0; i < columns.start.length; i += 1) {
    if (Math.floor(columns.group[i] / run.summary.plan.pp) !== replica) continue;
    const kind = kinds[columns.kind[i]];
    const pass = passes[columns.pass[i]];
    const from = columns.start[i];
    const to = from + columns.cycles[i];
    const computes = columns.compute[i];
    const text = () => stepText(run, i, kind, pass);
    const lane = beside.has(kind) ? { top: 0.74, height: 0.2 } : { top: 0.06, height: 0.62 };
    const row = columns.stage[i];
    if (beside.has(kind) || computes < 0) {
      bars.push({ row, from, to, ...lane, colour: colourOfStep(kind, pass), text });
      continue;
    }
    if (computes > from) bars.push({ row, from, to: computes, top: 0.34, height: 0.06, colour: (colours) => colours.muted, text });
    bars.push({ row, from: computes, to, ...lane, colour: colourOfStep(kind, pass), text });
  }
  if (run.bubbles) bars.push(...bubbleBars(run, replica));
  return { rows: Array.from({ length: run.stages }, (_, stage) => `stage ${stage}`), bars };
}

/** Over the steps: when the stage waited for another one, also inside a step. */
function bubbleBars(run, replica) {
  const { group, from, cycles } = run.bubbles;
  const { pp } = run.summary.plan;
  return group.flatMap((each, i) => {
    if (Math.floor(each / pp) !== replica) return [];
    const to = from[i] + cycles[i];
    return [{ row: each % pp, from: from[i], to, top: 0.06, height: 0.62, colour: (colours) => colours.kinds.bubble,
      text: () => `<b>bubble</b>, stage ${each % pp}<br>${format.timeOf(run, from[i])} to ${format.timeOf(run, to)}` }];
  });
}

function stepText(run, i, kind, pass) {
  const { columns } = run.steps;
  const lines = [`<b>${kind} ${passNames[pass] ?? pass}</b>, stage ${columns.stage[i]}`];
  if (columns.layer[i] >= 0) lines.push(`layer ${columns.layer[i]}`);
  if (columns.microbatch[i] >= 0) lines.push(`microbatch ${columns.microbatch[i]}`);
  lines.push(`${format.timeOf(run, columns.start[i])} to ${format.timeOf(run, columns.start[i] + columns.cycles[i])}`);
  const waited = columns.compute[i] - columns.start[i];
  if (waited > 0) lines.push(`waited ${format.timeOf(run, waited)} before its first operation`);
  return lines.join("<br>");
}

function tileView(run) {
  const { words, tiles } = run.spans;
  const used = [...new Set(tiles.flatMap((tile) => tile.messages.what))].sort((a, b) => a - b);
  const height = 0.36 / Math.max(used.length, 1);
  const bars = [];
  tiles.forEach((tile, row) => {
    const name = run.tileName(tile.tile);
    const add = (lane, place, colour, named) => lane.what.forEach((what, i) => {
      const from = lane.from[i];
      const to = from + lane.cycles[i];
      bars.push({ row, from, to, ...place(what), colour: colour(words[what]),
        text: () => `<b>${named(words[what])}</b>, ${name}<br>${format.timeOf(run, from)} to ${format.timeOf(run, to)}<br>${format.count(lane.cycles[i])} cycles` });
    });
    add(tile.core, () => ({ top: 0.06, height: 0.48 }), (kind) => (colours) => colours.kinds[kind], (kind) => kindNames[kind]);
    add(tile.messages, (what) => ({ top: 0.58 + used.indexOf(what) * height, height: height * 0.85 }),
      (axis) => (colours) => colours.axes[axis], (axis) => `messages of ${axis}`);
  });
  return { rows: tiles.map((tile) => run.tileName(tile.tile)), bars };
}

function keyOf(run, state) {
  const colours = theme();
  const entry = ([name, colour]) => element("span", { class: "entry" }, element("i", { style: `background:${colour}` }), name);
  if (state.view === "tiles") return run.kinds.map((kind) => entry([kindNames[kind], colours.kinds[kind]]));
  const { columns, kinds, passes } = run.steps;
  const present = new Map();
  columns.kind.forEach((kind, i) => {
    const layer = kinds[kind] === "layer";
    const name = layer ? passNames[passes[columns.pass[i]]] || "layer" : kinds[kind].replace("_", " ");
    present.set(name, colourOfStep(kinds[kind], passes[columns.pass[i]])(colours));
  });
  return [...[...present].map(entry), ...(run.bubbles?.group.length > 0 ? [entry(["bubble", colours.kinds.bubble])] : [])];
}

function notes(run, hasTiles) {
  const { steps } = run;
  const parts = [`A bar is a step of a stage, from the first operation of its tiles to the end of the last; a thin grey line leads to it from where it could have begun. Gradient synchronization and parameter gathers run below.${run.bubbles ? " Grey is a bubble, also inside a step: the stage's first tile waits for another stage." : ""} Wheel or slider zoom, dragging moves.`];
  if (hasTiles) parts.push("Chosen tiles show what their cycles went to above, and the messages on their way by axis below.");
  if (!steps.whole_replica) parts.push(`Of ${format.count(steps.all)} steps the first ${format.count(steps.columns.start.length)} of replica 0 are drawn; all are in steps.csv.`);
  return parts.join(" ");
}
