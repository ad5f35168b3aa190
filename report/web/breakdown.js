// Section: where the cycles went, as shares that sum to one.

import { axisStyle, chart } from "./charts.js";
import { cyclesOf, kindNames, sum } from "./data.js";
import { element, note, table } from "./dom.js";
import * as format from "./format.js";

export const id = "breakdown";
export const title = "Breakdown";

export function render(section, run) {
  const whole = wholeOf(run);
  const columns = element("div", { class: "columns" });
  const left = element("div", {}, element("h3", {}, "Whole run and pipeline stages"));
  const right = element("div", {});
  columns.append(left, right);
  section.append(columns);

  const rows = [["all tiles", whole], ...(run.stages > 1 ? stagesOf(run) : [])];
  stacked(left, run, "breakdown", "Share of cycles by cause, of all tiles and by stage", rows);

  right.append(element("h3", {}, "Communication: hidden and exposed"));
  hiding(right, run);

  if (run.step_cycles) {
    const kinds = stepsOf(run);
    const below = element("div", {}, element("h3", {}, "By kind of step, as shares of all cycles"));
    section.append(below);
    stacked(below, run, "steps", "Share of all cycles by kind of step and cause", kinds);
  }
  section.append(element("details", {}, element("summary", {}, "Numbers"), table(["cause", "share", "cycles of all tiles"],
    run.kinds.map((kind) => [kindNames[kind], `${(whole[kind] * 100).toFixed(3)} %`, format.count(sum(run.tiles.cycles[kind]))]),
    { id: "shares" })));
  section.append(note("Every cycle of every used tile has exactly one cause: an operation computes; one runs but waits for memory; the tile waits for a message that is on its way (exposed, by plan axis), or for another pipeline stage (bubble); anything else is idle."));
}

const shares = (cycles, total) => Object.fromEntries(Object.entries(cycles).map(([kind, value]) => [kind, value / total]));

function wholeOf(run) {
  return shares(cyclesOf(run, run.tiles.id.map((_, row) => row)), run.cycles * run.tiles.id.length);
}

function stagesOf(run) {
  return Array.from({ length: run.stages }, (_, stage) => {
    const rows = run.tiles.stage.flatMap((of, row) => (of === stage ? [row] : []));
    return [`stage ${stage}`, shares(cyclesOf(run, rows), run.cycles * rows.length)];
  });
}

function stepsOf(run) {
  const { kind, pass, cycles } = run.step_cycles;
  const total = run.cycles * run.tiles.id.length;
  const rows = new Map();
  kind.forEach((each, i) => {
    const name = each === "none" ? "no step open" : `${each.replace("_", " ")}${pass[i] === "-" ? "" : ` ${pass[i]}`}`;
    if (!rows.has(name)) rows.set(name, Object.fromEntries(run.kinds.map((cause) => [cause, 0])));
    for (const cause of Object.keys(cycles)) rows.get(name)[cause] += cycles[cause][i] / total;
  });
  const share = ([, causes]) => sum(Object.values(causes));
  return [...rows].sort((a, b) => share(b) - share(a));
}

function stacked(parent, run, name, label, rows) {
  chart(parent, name, label, 62 + rows.length * (rows.length > 12 ? 20 : 30), (colours) => ({
    legend: { data: run.kinds.map((kind) => kindNames[kind]) },
    grid: { left: 120, right: 30, top: 36, bottom: 20 },
    tooltip: { trigger: "axis", axisPointer: { type: "shadow" }, valueFormatter: format.percent },
    xAxis: axisStyle(colours, { type: "value", max: name === "breakdown" ? 1 : undefined, axisLabel: { formatter: (value) => `${Math.round(value * 100)} %` } }),
    yAxis: axisStyle(colours, { type: "category", inverse: true, data: rows.map(([row]) => row) }),
    series: run.kinds.map((kind) => ({
      name: kindNames[kind], type: "bar", stack: "all", barCategoryGap: "25%", color: colours.kinds[kind],
      itemStyle: { borderColor: colours.panel, borderWidth: 0.5 }, data: rows.map(([, values]) => values[kind]),
    })),
  }));
}

/** Time with a message in flight, cut into what other work hides and what tiles wait for. */
function hiding(parent, run) {
  const of = (rows) => {
    const flight = sum(rows.map((row) => run.tiles.communicating[row]));
    const exposed = sum(run.exposedKinds.map((kind) => sum(rows.map((row) => run.tiles.cycles[kind][row]))));
    const total = run.cycles * rows.length;
    return { hidden: Math.max(flight - exposed, 0) / total, exposed: exposed / total };
  };
  const all = run.tiles.id.map((_, row) => row);
  const rows = [["all tiles", of(all)]];
  for (let stage = 0; run.stages > 1 && stage < run.stages; stage += 1) {
    rows.push([`stage ${stage}`, of(all.filter((row) => run.tiles.stage[row] === stage))]);
  }
  chart(parent, "hidden", "Share of the time with messages in flight, hidden and exposed", 62 + rows.length * (rows.length > 12 ? 20 : 30), (colours) => ({
    legend: {},
    grid: { left: 76, right: 30, top: 36, bottom: 20 },
    tooltip: { trigger: "axis", axisPointer: { type: "shadow" }, valueFormatter: format.percent },
    xAxis: axisStyle(colours, { type: "value", axisLabel: { formatter: (value) => format.percent(value) } }),
    yAxis: axisStyle(colours, { type: "category", inverse: true, data: rows.map(([row]) => row) }),
    series: [["hidden behind other work", "hidden", colours.kinds.exposed_pp], ["exposed", "exposed", colours.kinds.exposed_tatp]].map(([name, key, color]) => ({
      name, type: "bar", stack: "all", barCategoryGap: "25%", color, data: rows.map(([, values]) => values[key]),
    })),
  }));
}
