// The page of `wafersim compare --html`: finished runs side by side, and the map of the difference of two of them.

import { axisStyle, chart } from "./charts.js";
import { cyclesOf, kindNames, kinds, prepare } from "./data.js";
import { choice, element, note, table } from "./dom.js";
import * as format from "./format.js";
import { toggleButton } from "./header.js";
import { linkMeasures, tileMeasures } from "./measures.js";
import { onTheme, theme } from "./theme.js";
import { placeTip, scale } from "./wafer.js";
import { WaferMap } from "./wafer_map.js";

const sections = [["measures", "Measures", measures], ["keys", "Keys that differ", keys], ["breakdown", "Where the time goes", breakdown], ["difference", "Difference of two runs", difference]];

export function compare(page, data) {
  const runs = data.runs.map((run) => prepare({ ...run, ranks: null, windows: null }));
  const { labels } = data.comparison;
  page.append(element("header", {},
    element("div", { class: "bar" },
      element("strong", {}, "wafersim"),
      element("nav", { "aria-label": "Sections" }, ...sections.map(([id, title]) => element("a", { href: `#${id}` }, title))),
      toggleButton()),
    element("h1", {}, labels.join(" and ")),
    element("p", { class: "plan" }, `${labels.length} runs; the others are compared with the first, ${labels[0]}`),
    ...runs.map(({ summary }, i) => (summary.partial ? element("p", { class: "notice" }, `${labels[i]} is partial: stopped by ${summary.stopped_by}.`) : null)).filter(Boolean)));
  for (const [id, title, render] of sections) {
    const section = element("section", { id, "aria-labelledby": `${id}-title` }, element("h2", { id: `${id}-title` }, title));
    page.append(section);
    render(section, data, runs);
  }
}

function measures(section, { comparison }) {
  const cell = ({ text, difference: change }) => element("span", {}, text, change ? element("span", { class: "change" }, ` ${change}`) : "");
  section.append(table(["measure", ...comparison.labels], comparison.measures.map(({ title, values }) => [title, ...values.map(cell)]), { id: "measure-table" }));
}

function keys(section, { comparison }) {
  if (comparison.keys.length === 0) return section.append(note("None: the scenarios are the same."));
  section.append(table(["key", ...comparison.labels], comparison.keys.map(({ key, values }) => [key, ...values.map((value) => value ?? "–")]), { id: "key-table" }));
}

function breakdown(section, { comparison }, runs) {
  const state = { scale: "time" };
  const shown = kinds.filter((kind) => runs.some((run) => run.tiles.cycles[kind]));
  const all = (run) => run.tiles.id.map((_, row) => row);
  const value = (run, kind) => {
    const cycles = run.tiles.cycles[kind] ? cyclesOf(run, all(run))[kind] / run.tiles.id.length : 0;
    return state.scale === "time" ? cycles / run.clock : cycles / run.cycles;
  };
  const text = (number) => (state.scale === "time" ? format.seconds(number) : format.percent(number));
  const bars = element("div", {});
  section.append(element("div", { class: "controls" },
    choice("Bars", [["time", "time of a tile, mean"], ["share", "share of the run"]], "time", (chosen) => { state.scale = chosen; drawn.redraw(); })), bars);
  const drawn = chart(bars, "breakdown", "Cycles of the tiles of each run by cause", 70 + runs.length * 40, (colours) => ({
    legend: { data: shown.map((kind) => kindNames[kind]) },
    grid: { left: 170, right: 30, top: 36, bottom: 20 },
    tooltip: { trigger: "axis", axisPointer: { type: "shadow" }, valueFormatter: text },
    xAxis: axisStyle(colours, { type: "value", axisLabel: { formatter: text, hideOverlap: true } }),
    yAxis: axisStyle(colours, { type: "category", inverse: true, data: comparison.labels, axisLabel: { width: 158, overflow: "truncate" } }),
    series: shown.map((kind) => ({
      name: kindNames[kind], type: "bar", stack: "all", barCategoryGap: "25%", color: colours.kinds[kind],
      itemStyle: { borderColor: colours.panel, borderWidth: 0.5 }, data: runs.map((run) => value(run, kind)),
    })),
  }));
}

const sameMesh = (a, b) => a.mesh.rows === b.mesh.rows && a.mesh.cols === b.mesh.cols;

/** Of two measures of the same name: what the second run has more. */
function differenceOf(a, b, at) {
  return { name: a.name, first: a.whole, second: (item) => (at(item) === undefined ? undefined : b.whole(at(item))), text: a.text };
}

const signed = (text, value) => (value > 0 ? `+${text(value)}` : value < 0 ? `−${text(-value)}` : text(0));

function difference(section, { comparison }, runs) {
  const [first, ...others] = runs;
  const partners = others.map((run, i) => [String(i), comparison.labels[i + 1], run]).filter(([, , run]) => sameMesh(first, run));
  if (partners.length === 0) return section.append(note("The meshes of the runs are not the same."));
  const state = { partner: 0, tile: "compute", link: "busy" };
  const canvas = element("canvas", { role: "img", "aria-label": "Map of the difference of two runs, tile by tile and link by link" });
  const frame = element("div", { class: "map" }, canvas);
  const legend = element("div", { class: "legend" });
  const tip = element("div", { class: "tip", hidden: true });
  const map = new WaferMap(first, canvas, frame);
  let shown = null;

  const redraw = () => {
    const [, , second] = partners[state.partner];
    const tileOf = (row) => second.tileAt.get(first.tiles.id[row]);
    const linkOf = (row) => second.linkAt.get(first.links.id[row]);
    const tile = differenceOf(tileMeasures(first)[state.tile], tileMeasures(second)[state.tile], tileOf);
    const link = state.link === "none" ? null : differenceOf(linkMeasures(first)[state.link], linkMeasures(second)[state.link], linkOf);
    const delta = (measure) => (item) => (measure.second(item) === undefined ? 0 : measure.second(item) - measure.first(item));
    const most = (measure, items) => Math.max(1e-12, ...Array.from({ length: items }, (_, item) => Math.abs(delta(measure)(item))));
    const ramp = theme().difference;
    const tileMost = most(tile, first.tiles.id.length);
    const linkMost = link && most(link, first.links.id.length);
    map.show({
      tileValue: delta(tile), tileRange: [-tileMost, tileMost], tileRamp: ramp,
      linkValue: link && delta(link), linkRange: link && [-linkMost, linkMost], linkRamp: ramp,
    });
    legend.replaceChildren(...[["Tiles", tile, tileMost], link && ["Links", link, linkMost]].filter(Boolean).map(([what, measure, end]) =>
      scale(what, { ...measure, text: (value) => signed(measure.text, value) }, [-end, end], ramp)));
    shown = { second, tile, link };
    section.dataset.map = "ready";
  };
  const text = (found) => {
    const measure = found.tile === undefined ? shown.link : shown.tile;
    const item = found.tile === undefined ? found.link : first.tileAt.get(found.tile);
    const name = found.tile === undefined ? first.linkName(item) : first.tileName(found.tile);
    if (item === undefined) return `<b>${name}</b><br>not used by ${format.escaped(comparison.labels[0])}`;
    const [before, after] = [measure.first(item), measure.second(item)];
    if (after === undefined) return `<b>${name}</b><br>only in ${format.escaped(comparison.labels[0])}`;
    const lines = [[comparison.labels[0], measure.text(before)], [partners[state.partner][1], measure.text(after)], ["difference", signed(measure.text, after - before)]];
    return `<b>${name}</b><br>${measure.name}<table>${lines.map(([label, value]) => `<tr><td>${format.escaped(label)}</td><td>${format.escaped(value)}</td></tr>`).join("")}</table>`;
  };
  const shared = (of) => Object.entries(of(first)).filter(([key]) => partners.every(([, , run]) => of(run)[key])).map(([key, measure]) => [key, measure.name]);
  const set = (key, read = (value) => value) => (value) => { state[key] = read(value); redraw(); };
  section.append(element("div", { class: "controls" },
    partners.length > 1 && choice("Run", partners.map(([, label], i) => [String(i), `${label} − ${comparison.labels[0]}`]), "0", set("partner", Number)),
    choice("Tiles", shared(tileMeasures), state.tile, set("tile")),
    choice("Links", [...shared(linkMeasures), ["none", "not drawn"]], state.link, set("link"))),
    frame, legend, tip,
    note(`What ${partners.length > 1 ? "the chosen run" : partners[0][1]} has more (orange) or less (blue) than ${comparison.labels[0]}. Shares are of each run's own length.`));
  canvas.addEventListener("mousemove", (event) => {
    const found = map.at(event.offsetX, event.offsetY);
    tip.hidden = found === null;
    if (found === null) return;
    tip.innerHTML = text(found);
    placeTip(tip, event);
  });
  canvas.addEventListener("mouseleave", () => { tip.hidden = true; });
  onTheme(redraw);
  new ResizeObserver(() => map.draw()).observe(frame);
  redraw();
}
