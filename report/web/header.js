// What the run was and what came out of it.

import { element } from "./dom.js";
import * as format from "./format.js";
import { toggleTheme } from "./theme.js";

const absent = "–";

function figure(name, value, more, state) {
  return element("div", { class: `figure ${state ?? ""}`, "data-figure": name },
    element("div", { class: "name" }, name), element("div", { class: "value" }, value), element("div", { class: "more" }, more));
}

function figures(run) {
  const { summary } = run;
  const { memory, iterations, energy } = summary;
  const iteration = iterations.mean_cycles ?? summary.cycles;
  const used = memory.peak_bytes / memory.capacity_bytes;
  return element("div", { class: "figures" },
    figure(iterations.completed > 0 ? "Iteration" : "Time simulated", format.timeOf(run, iteration), `${format.count(iteration)} cycles`),
    figure("Tokens/s", summary.tokens_per_second === null ? absent : format.count(summary.tokens_per_second), "of simulated time"),
    figure("MFU", summary.mfu === null ? absent : format.percent(summary.mfu), `HFU ${format.percent(summary.hfu)}`),
    figure("Compute", format.percent(summary.compute_utilization), "of the time of used tiles"),
    figure("Exposed communication", format.percent(summary.communication_share),
      summary.hidden_communication === null ? "no messages" : `${format.percent(summary.hidden_communication)} of the time in flight is hidden`),
    figure(memory.fits ? "Memory fits" : "Memory does not fit", format.percent(used),
      `${format.bytes(memory.peak_bytes)} of ${format.bytes(memory.capacity_bytes)} in ${memory.peak_tile}`, memory.fits ? "good" : "bad"),
    energy && figure("Energy", format.joules(energy.total_joules),
      [energy.average_watts !== null && `${format.watts(energy.average_watts)} in the mean`,
        energy.joules_per_token !== null && `${format.joules(energy.joules_per_token)} a token`].filter(Boolean).join(", ")));
}

const meshText = ({ mesh, wafers }) => (wafers?.grid ? `${wafers.grid} wafers of ${mesh}` : `${mesh} mesh`);

function planText({ summary }) {
  const { plan, scenario } = summary;
  const degrees = ["dp", "pp", "tp", "tatp", "ep"].filter((axis) => plan[axis] > 1).map((axis) => `${axis} ${plan[axis]}`);
  const more = [plan.sp !== "none" && `sp ${plan.sp}${plan.sp_degree > 1 ? ` ${plan.sp_degree}` : ""}`, plan.zero > 0 && `zero ${plan.zero}`];
  const parts = [
    scenario.model.name || `${scenario.model.layers} layers of ${scenario.model.hidden}`,
    `${format.count(summary.tiles_used)} of ${format.count(summary.tiles_total)} tiles (${meshText(scenario.wafer)})`,
    degrees.join(" × ") || "one tile", ...more, plan.pp > 1 ? `${plan.schedule}, ${plan.microbatches} microbatches` : null,
  ];
  return parts.filter(Boolean).join(" · ");
}

function partialNotice({ summary }) {
  if (!summary.partial) return null;
  const { planned, completed } = summary.iterations;
  return element("p", { class: "notice", role: "alert" },
    `Partial results: stopped by ${summary.stopped_by}, ${completed} of ${planned} iterations completed.`);
}

export const toggleButton = () => element("button", { type: "button", class: "button", id: "theme", click: toggleTheme }, "Light / dark");

/** The top of the page; `contents` are [id, title] of the sections. */
export function header(run, contents) {
  const { summary } = run;
  return element("header", {},
    element("div", { class: "bar" },
      element("strong", {}, "wafersim"),
      element("nav", { "aria-label": "Sections" }, ...contents.map(([id, title]) => element("a", { href: `#${id}` }, title))),
      toggleButton()),
    element("h1", {}, summary.name),
    element("p", { class: "plan" }, planText(run)),
    partialNotice(run),
    figures(run),
    element("details", {}, element("summary", {}, "Resolved scenario"),
      element("pre", { id: "scenario" }, format.yaml(summary.scenario))),
    element("details", {}, element("summary", {}, "Simulator"),
      element("p", { class: "note" }, `wafersim ${summary.wafersim_version}, network fidelity ${summary.engine.fidelity}, ` +
        `${format.seconds(summary.engine.wall_seconds)} wall, ${format.seconds(summary.engine.cpu_seconds)} CPU, ` +
        `${format.count(summary.engine.events)} events, ${format.bytes(summary.engine.peak_rss_bytes)} of memory`)));
}
