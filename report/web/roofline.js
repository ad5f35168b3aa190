// Section: how close operations come to what the engines and the memory can do.

import { axisStyle, chart } from "./charts.js";
import { sum } from "./data.js";
import { element, note, table } from "./dom.js";
import * as format from "./format.js";

export const id = "roofline";
export const title = "Roofline";

const listed = 10;

export function render(section, run) {
  const { machine } = run.summary;
  const operations = run.operations.rows.map(([kind, steps, batch, m, k, n, flops, bytes, count, cycles]) => {
    const peak = kind === "matrix" ? machine.matrix_flops_per_cycle : machine.vector_flops_per_cycle;
    const intensity = flops / Math.max(bytes, 1);
    const slope = machine.sram_bytes_per_cycle;
    return {
      kind, steps, count, cycles, flops, bytes, intensity,
      name: kind === "matrix" ? `${batch > 1 ? `${batch} × ` : ""}${m}×${k} · ${k}×${n}` : kind,
      rate: (flops * count) / Math.max(cycles, 1),
      roof: slope === null ? peak : Math.min(peak, intensity * slope),
    };
  }).filter(({ flops, cycles }) => flops > 0 && cycles > 0);
  const all = sum(operations.map(({ cycles }) => cycles));

  drawRoofs(section, run, operations, all);
  section.append(element("h3", {}, "Operations that take longest"), table(
    ["operation", "steps", "times", "share of engine time", "rate", "of its roof"],
    operations.slice(0, listed).map((each) => [each.name, each.steps, format.count(each.count), format.percent(each.cycles / all),
      `${format.short(each.rate * run.clock)}FLOP/s`, format.percent(each.rate / each.roof)]), { id: "operations" }));
  const rest = run.operations.all - run.operations.rows.length;
  section.append(note("Each circle is one shape of operation; its area is the engine time that all of them take. Below the roofs: fill and drain of the systolic array, ragged shapes, launch overhead, and waits for memory." +
    (machine.sram_bytes_per_cycle === null ? " The SRAM's bandwidth is unlimited in this scenario." : "") +
    (rest > 0 ? ` ${format.count(rest)} shapes that take least are left out; all are in operations.csv.` : "")));
}

function drawRoofs(section, run, operations, all) {
  const { machine } = run.summary;
  const intensities = operations.map(({ intensity }) => intensity);
  const left = 10 ** Math.floor(Math.log10(Math.min(...intensities) / 1.5));
  const right = 10 ** Math.ceil(Math.log10(Math.max(...intensities) * 1.5));
  const lowest = Math.min(...operations.map(({ rate }) => rate)) * run.clock;
  const roof = (peak, slope) => {
    const corner = slope === null ? left : peak / slope;
    const points = slope === null || corner <= left ? [[left, peak]] : [[left, left * slope], [Math.min(corner, right), Math.min(peak, right * slope)]];
    return [...points, [right, slope === null ? peak : Math.min(peak, right * slope)]].map(([x, y]) => [x, y * run.clock]);
  };
  const line = (name, color, type, points) => ({ name, type: "line", symbol: "none", color, lineStyle: { width: 2, type }, data: points, silent: true });
  const kinds = ["matrix", "vector", "reduce"].filter((kind) => operations.some((each) => each.kind === kind));
  chart(section, "roofline", "Rate of operations over their arithmetic intensity, below the roofs of the machine", 420, (colours) => {
    const tint = { matrix: colours.kinds.compute, vector: colours.kinds.exposed_tp, reduce: colours.kinds.exposed_dp };
    const roofs = [line("matrix roof", colours.kinds.compute, "solid", roof(machine.matrix_flops_per_cycle, machine.sram_bytes_per_cycle)),
      line("vector roof", colours.kinds.exposed_tp, "solid", roof(machine.vector_flops_per_cycle, machine.sram_bytes_per_cycle))];
    if (machine.dram_bytes_per_cycle !== null) {
      roofs.push(line("matrix roof when all bytes come from DRAM", colours.muted, "dashed",
        roof(machine.matrix_flops_per_cycle, machine.dram_bytes_per_cycle / machine.dram_die_tiles)));
    }
    return {
      legend: {},
      grid: { left: 84, right: 30, top: 36, bottom: 48 },
      tooltip: { trigger: "item", formatter: ({ data }) => data.each ? operationText(run, data.each, all) : "" },
      xAxis: axisStyle(colours, { type: "log", min: left, max: right, name: "FLOP for each byte of SRAM traffic", nameLocation: "middle", nameGap: 30 }),
      yAxis: axisStyle(colours, { type: "log", min: 10 ** Math.floor(Math.log10(lowest)), axisLabel: { formatter: (value) => `${format.short(value)}FLOP/s` } }),
      series: [...roofs, ...kinds.map((kind) => ({
        name: kind, type: "scatter", color: tint[kind], itemStyle: { opacity: 0.75, borderColor: colours.panel },
        symbolSize: ([, , share]) => 5 + 40 * Math.sqrt(share),
        data: operations.filter((each) => each.kind === kind).map((each) => ({ value: [each.intensity, each.rate * run.clock, each.cycles / all], each })),
      }))],
    };
  });
}

function operationText(run, each, all) {
  return [`<b>${format.escaped(each.name)}</b>`, format.escaped(each.steps), `${format.count(each.count)} times, ${format.percent(each.cycles / all)} of engine time`,
    `${format.short(each.flops)}FLOP and ${format.bytes(each.bytes)} each`,
    `${format.short(each.rate * run.clock)}FLOP/s, ${format.percent(each.rate / each.roof)} of its roof`].join("<br>");
}
