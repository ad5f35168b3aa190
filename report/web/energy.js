// Section: what the energy was spent on, and where.

import { axisStyle, chart } from "./charts.js";
import { sum } from "./data.js";
import { element, note, table } from "./dom.js";
import * as format from "./format.js";

export const id = "energy";
export const title = "Energy";

const names = {
  matrix: "matrix engine", vector: "vector engine", sram: "SRAM", dram: "DRAM", link: "links", router: "routers", nic: "network interfaces",
  static: "static",
};

export function render(section, run) {
  const { energy } = run.summary;
  const parts = Object.entries(energy.by_part);
  const share = (joules) => (energy.total_joules > 0 ? joules / energy.total_joules : 0);
  const columns = element("div", { class: "columns" });
  section.append(columns);
  const left = element("div", {}, element("h3", {}, "By part"));
  columns.append(left);
  bars(left, "energy", "Energy by part", parts.map(([part, joules]) => [names[part] ?? part, joules, share(joules)]));
  if (run.tiles.energy && run.stages > 1) {
    const right = element("div", {}, element("h3", {}, "By pipeline stage"));
    columns.append(right);
    bars(right, "energy-stages", "Energy of the tiles of each stage", stagesOf(run).map(([name, joules]) => [name, joules, share(joules)]));
  }
  section.append(element("details", {}, element("summary", {}, "Numbers"), table(["part", "energy", "share", "figure"],
    parts.map(([part, joules]) => [names[part] ?? part, format.joules(joules), format.percent(share(joules)), figureOf(run, part)]), { id: "energy-parts" })));
  const notes = [`${format.joules(energy.total_joules)} in all, ${run.tiles.id.length} tiles with their links and routers`];
  if (energy.unused_tiles_joules > 0) notes.push(`of it ${format.joules(energy.unused_tiles_joules)} where messages pass through tiles that run nothing`);
  if (energy.not_modelled.length > 0) notes.push(`not modelled, and not in the sum: ${energy.not_modelled.map((part) => names[part] ?? part).join(", ")}`);
  section.append(note(`${notes.join("; ")}. The map of the wafer shows it tile by tile.`));
}

/** As the scenario has it. */
function figureOf(run, part) {
  const figures = run.summary.scenario.wafer.energy ?? {};
  return figures[part] ?? "–";
}

function stagesOf(run) {
  return Array.from({ length: run.stages }, (_, stage) =>
    [`stage ${stage}`, sum(run.tiles.energy.filter((_, row) => run.tiles.stage[row] === stage))]);
}

/** Rows of [name, joules, share of the total]. */
function bars(parent, name, label, rows) {
  chart(parent, name, label, 44 + rows.length * (rows.length > 12 ? 20 : 30), (colours) => ({
    grid: { left: 130, right: 70, top: 8, bottom: 28 },
    tooltip: { trigger: "axis", axisPointer: { type: "shadow" }, formatter: ([{ dataIndex }]) => {
      const [row, joules, share] = rows[dataIndex];
      return `<b>${format.escaped(row)}</b><br>${format.joules(joules)}, ${format.percent(share)}`;
    } },
    xAxis: axisStyle(colours, { type: "value", axisLabel: { formatter: format.joules, hideOverlap: true } }),
    yAxis: axisStyle(colours, { type: "category", inverse: true, data: rows.map(([row]) => row) }),
    series: [{
      name: "energy", type: "bar", barCategoryGap: "25%", color: colours.kinds.compute, data: rows.map(([, joules]) => joules),
      label: { show: rows.length <= 12, position: "right", color: colours.muted, formatter: ({ dataIndex }) => format.percent(rows[dataIndex][2]) },
    }],
  }));
}
