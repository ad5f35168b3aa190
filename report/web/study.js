// The overview of a study: all its points at once, two keys against each other, and what cannot be had without giving up
// something else.

import { axisStyle, chart } from "./charts.js";
import { choice, element, note, table } from "./dom.js";
import * as format from "./format.js";
import { toggleButton } from "./header.js";
import { onTheme, rampColours, theme } from "./theme.js";

const sections = [["points", "All points", parallel], ["keys", "Two keys", twoKeys], ["pareto", "Trade-offs", pareto], ["failed", "Failed points", failed]];

/** Measures of which more is better; of all others less is. */
const moreIsBetter = /tokens_per_second|mfu|hfu|accepted|throughput|compute_utilization|hidden|fits|stable|saturation/;
const isBetter = (measure, a, b) => (moreIsBetter.test(measure) ? a > b : a < b);

const texts = [[/joules|^energy\.by_part/, format.joules], [/watts/, format.watts], [/bytes/, format.bytes], [/seconds/, format.seconds], [/^(mfu|hfu|mfu_wafer|compute_utilization|communication_share|hidden_communication|breakdown\.)/, format.percent]];
const textOf = (measure) => texts.find(([names]) => names.test(measure))?.[1] ?? format.short;

/** The settings of a point, a line each. */
function described(study, row) {
  const lines = Object.entries(study.settings).filter(([, values]) => values[row] !== null).map(([key, values]) => `${format.escaped(key)}: ${format.escaped(values[row])}`);
  return [`<b>point ${study.points.number[row]}</b>`, ...lines].join("<br>");
}

export function overview(page, { study }) {
  study.done = study.points.status.flatMap((status, row) => (status === "done" ? [row] : []));
  // Of use are measures that differ between points.
  study.names = Object.keys(study.measures).filter((name) => new Set(study.done.map((row) => study.measures[name][row])).size > 1);
  const preferred = study.command === "traffic" ? ["mean_packet_latency", "accepted_load"] : ["seconds", "memory.peak_bytes"];
  study.first = preferred.find((name) => study.names.includes(name)) ?? study.names[0];
  study.second = preferred.findLast((name) => study.names.includes(name) && name !== study.first) ?? study.names.find((name) => name !== study.first);
  const counts = ["done", "failed", "pending"].map((status) => [status, study.points.status.filter((each) => each === status).length]);
  const shown = sections.filter(([id]) => (id === "failed" ? study.points.status.includes("failed") : study.done.length > 0 && study.names.length > 0));
  page.append(element("header", {},
    element("div", { class: "bar" },
      element("strong", {}, "wafersim"),
      element("nav", { "aria-label": "Sections" }, ...shown.map(([id, title]) => element("a", { href: `#${id}` }, title))),
      toggleButton()),
    element("h1", {}, study.name),
    element("p", { class: "plan" }, `${study.points.number.length} points of ${study.command}: ${counts.filter(([, count]) => count > 0).map(([status, count]) => `${count} ${status}`).join(", ")}`),
    study.fixed.length > 0 && note(`All points: ${study.fixed.map(([key, value]) => `${key}: ${value}`).join(", ")}`)));
  for (const [id, title, render] of shown) {
    const section = element("section", { id, "aria-labelledby": `${id}-title` }, element("h2", { id: `${id}-title` }, title));
    page.append(section);
    render(section, study);
  }
}

const measureChoice = (study, label, chosen, change) => choice(label, study.names.map((name) => [name, name]), chosen, change);

function rangeOf(study, measure) {
  const values = study.done.map((row) => study.measures[measure][row]).filter((value) => value !== null);
  return [Math.min(...values), Math.max(...values)];
}

/** 0..255, 255 for the best. */
function shadeOf(measure, [low, high], value) {
  const share = high === low ? 0.5 : (value - low) / (high - low);
  return Math.round(255 * (moreIsBetter.test(measure) ? share : 1 - share));
}

/** Values of a key in the order of their first point, numbers with equal units by size. */
function valuesOf(study, key) {
  const found = [...new Set(study.done.map((row) => study.settings[key][row] ?? "–"))];
  const parts = found.map((value) => /^(-?[\d.]+)( ?\S*)$/.exec(value));
  if (parts.some((part) => part === null || part[2] !== parts[0]?.[2])) return found;
  return found.toSorted((a, b) => parseFloat(a) - parseFloat(b));
}

function parallel(section, study) {
  const keys = Object.keys(study.settings).filter((key) => valuesOf(study, key).length > 1);
  const state = { measure: study.first };
  const box = element("div", {});
  section.append(note("A line is a point; dark ones are the best."), element("div", { class: "controls" },
    measureChoice(study, "Measure", state.measure, (measure) => { state.measure = measure; drawn.redraw(); })), box);
  const drawn = chart(box, "points", "Parallel coordinates of all points", 420, (colours) => {
    const { measure } = state;
    const range = rangeOf(study, measure);
    const ramp = rampColours(colours.tileRamp);
    const ordered = study.done.filter((row) => study.measures[measure][row] !== null)
      .toSorted((a, b) => (isBetter(measure, study.measures[measure][a], study.measures[measure][b]) ? 1 : -1));
    const axes = keys.map((key, dim) => ({ dim, name: key, type: "category", data: valuesOf(study, key) }));
    axes.push({ dim: keys.length, name: measure, min: range[0], max: range[1], inverse: !moreIsBetter.test(measure), axisLabel: { formatter: textOf(measure) } });
    return {
      parallel: { left: 60, right: 110, top: 50, bottom: 30, parallelAxisDefault: {
        nameLocation: "start", nameGap: 18, nameTextStyle: { color: colours.text }, axisLine: { lineStyle: { color: colours.line } },
        axisTick: { show: false },
      } },
      parallelAxis: axes.map((axis) => ({ ...axis, axisLabel: { color: colours.text, backgroundColor: colours.panel, padding: [1, 3], ...axis.axisLabel } })),
      tooltip: { formatter: ({ dataIndex }) => `${described(study, ordered[dataIndex])}<br>${measure}: ${textOf(measure)(study.measures[measure][ordered[dataIndex]])}` },
      series: [{
        type: "parallel", smooth: 0.05, lineStyle: { width: 1.5, opacity: 0.75 },
        data: ordered.map((row) => ({
          value: [...keys.map((key) => study.settings[key][row] ?? "–"), study.measures[measure][row]],
          lineStyle: { color: ramp[shadeOf(measure, range, study.measures[measure][row])] },
        })),
      }],
    };
  });
}

function twoKeys(section, study) {
  const keys = Object.keys(study.settings).filter((key) => valuesOf(study, key).length > 1);
  if (keys.length < 2) return section.append(note("Only one key differs between the points."));
  const state = { across: keys[0], down: keys[1], measure: study.first, of: "best" };
  const box = element("div", {});
  const redraw = () => {
    const { across, down, measure } = state;
    const columns = valuesOf(study, across), rows = valuesOf(study, down);
    const valueAt = (row, column) => {
      const values = study.done.filter((point) => (study.settings[across][point] ?? "–") === column && (study.settings[down][point] ?? "–") === row)
        .map((point) => study.measures[measure][point]).filter((value) => value !== null);
      if (values.length === 0) return null;
      if (state.of === "mean") return values.reduce((sum, value) => sum + value, 0) / values.length;
      return values.reduce((best, value) => (isBetter(measure, value, best) ? value : best));
    };
    const cells = rows.map((row) => columns.map((column) => valueAt(row, column)));
    const known = cells.flat().filter((value) => value !== null);
    const range = [Math.min(...known), Math.max(...known)];
    const ramp = rampColours(theme().tileRamp);
    const cell = (value) => {
      if (value === null) return element("span", { class: "muted" }, "–");
      const shade = shadeOf(measure, range, value);
      const pale = theme().dark ? shade < 128 : shade > 150;
      return element("span", { class: "shade", style: `background:${ramp[shade]};color:${pale ? "#fff" : "#10161f"}` }, textOf(measure)(value));
    };
    box.replaceChildren(table([`${down} \\ ${across}`, ...columns], rows.map((row, i) => [row, ...cells[i].map(cell)]), { id: "two-keys" }));
  };
  const set = (name) => (value) => { state[name] = value; redraw(); };
  const options = keys.map((key) => [key, key]);
  section.append(element("div", { class: "controls" },
    choice("Across", options, state.across, set("across")), choice("Down", options, state.down, set("down")),
    measureChoice(study, "Measure", state.measure, set("measure")), choice("Of the points of a cell", [["best", "the best"], ["mean", "the mean"]], "best", set("of"))), box);
  redraw();
  onTheme(redraw);
}

/** Points that no other point beats in one measure without being worse in the other, from the best in the first on. */
export function frontOf(study, first, second) {
  const at = (measure, row) => study.measures[measure][row];
  const rows = study.done.filter((row) => at(first, row) !== null && at(second, row) !== null).toSorted((a, b) => {
    if (at(first, a) !== at(first, b)) return isBetter(first, at(first, a), at(first, b)) ? -1 : 1;
    return isBetter(second, at(second, a), at(second, b)) ? -1 : 1;
  });
  const front = [];
  for (const row of rows) if (front.length === 0 || isBetter(second, at(second, row), at(second, front.at(-1)))) front.push(row);
  return front;
}

function pareto(section, study) {
  if (!study.second) return section.append(note("Only one measure differs between the points."));
  const state = { first: study.first, second: study.second };
  const box = element("div", {});
  const list = element("div", {});
  const redrawList = () => {
    const front = frontOf(study, state.first, state.second);
    const keys = Object.keys(study.settings);
    list.replaceChildren(table(["point", state.first, state.second, ...keys], front.map((row) => [
      String(study.points.number[row]), textOf(state.first)(study.measures[state.first][row]), textOf(state.second)(study.measures[state.second][row]),
      ...keys.map((key) => study.settings[key][row] ?? "–")]), { id: "front" }));
  };
  const set = (name) => (value) => { state[name] = value; drawn.redraw(); redrawList(); };
  section.append(note("Dark points are the Pareto front: no other is better in one measure without being worse in the other."), element("div", { class: "controls" },
    measureChoice(study, "Across", state.first, set("first")), measureChoice(study, "Up", state.second, set("second"))), box, list);
  const drawn = chart(box, "pareto", "Two measures of all points", 380, (colours) => {
    const { first, second } = state;
    const front = frontOf(study, first, second);
    const point = (row) => ({ value: [study.measures[first][row], study.measures[second][row]], row });
    const axis = (measure, more) => axisStyle(colours, { type: "value", scale: true, name: measure, nameLocation: "middle", axisLabel: { formatter: textOf(measure), hideOverlap: true }, ...more });
    return {
      grid: { left: 90, right: 30, top: 20, bottom: 50 },
      tooltip: { formatter: ({ data }) => `${described(study, data.row)}<br>${first}: ${textOf(first)(data.value[0])}<br>${second}: ${textOf(second)(data.value[1])}` },
      xAxis: axis(first, { nameGap: 30 }), yAxis: axis(second, { nameGap: 70 }),
      series: [
        { name: "points", type: "scatter", symbolSize: 8, itemStyle: { color: colours.tileRamp[2], opacity: 0.7 }, data: study.done.filter((row) => study.measures[first][row] !== null && study.measures[second][row] !== null).map(point) },
        { name: "front", type: "line", symbol: "circle", symbolSize: 10, lineStyle: { color: colours.accent, width: 1.5 }, itemStyle: { color: colours.accent }, data: front.map(point) },
      ],
    };
  });
  redrawList();
}

function failed(section, study) {
  const rows = study.points.status.flatMap((status, row) => (status === "failed" ? [row] : []));
  section.append(table(["point", "settings", "message"], rows.map((row) => [
    String(study.points.number[row]), Object.entries(study.settings).filter(([, values]) => values[row] !== null).map(([key, values]) => `${key}: ${values[row]}`).join(", "),
    study.points.message[row]]), { id: "failed-table" }));
}
