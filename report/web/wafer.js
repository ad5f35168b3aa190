// Section: the wafer, tile by tile and link by link, over the whole run or window by window.

import { axisStyle, chart } from "./charts.js";
import { kindNames, sum } from "./data.js";
import { choice, element, note } from "./dom.js";
import * as format from "./format.js";
import { groupings, membersOf } from "./groups.js";
import { linkMeasures, range, tileMeasures } from "./measures.js";
import { onTheme, theme } from "./theme.js";
import { WaferMap } from "./wafer_map.js";

export const id = "wafer";
export const title = "Wafer";

const framesPerSecond = 8;

export function render(section, run) {
  const tiles = tileMeasures(run);
  const links = linkMeasures(run);
  const groups = groupings(run);
  const { windows } = run;
  const outline = groups.stages && !groups.stages.scattered ? "stages" : "none";
  const state = { tile: "compute", link: "busy", outline, window: null, playing: null };

  const canvas = element("canvas", {
    tabindex: "0", role: "img",
    "aria-label": "Map of the wafer. Arrow keys move from tile to tile; the text beside it tells the numbers.",
  });
  const frame = element("div", { class: "map" }, canvas);
  const tip = element("div", { class: "tip", hidden: true });
  const detail = element("div", { class: "detail", "aria-live": "polite" });
  const legend = element("div", { class: "legend" });
  const map = new WaferMap(run, canvas, frame);
  const load = element("div", {});

  const inWindow = (measure) => state.window !== null && measure.window;
  const nameOf = (measure) => (state.window !== null && !measure.window ? `${measure.name}, whole run` : measure.name);
  const valueOf = (measure) => (item) => (inWindow(measure) ? measure.window(item, state.window) : measure.whole(item));
  const ranges = new Map();
  const rangeOf = (measure, items) => {
    const windowed = Boolean(inWindow(measure));
    const key = `${measure.name} ${items} ${windowed}`;
    if (!ranges.has(key)) ranges.set(key, range(measure, items, windowed ? windows.count : 0));
    return ranges.get(key);
  };

  const redraw = () => {
    const tile = tiles[state.tile];
    const link = links[state.link];
    const linkRange = link && [0, rangeOf(link, run.links.id.length)[1]];
    const drawn = link?.root ? Math.sqrt : (value) => value;
    map.show({
      tileValue: valueOf(tile), tileRange: rangeOf(tile, run.tiles.id.length),
      linkValue: link && ((item) => drawn(valueOf(link)(item))), linkRange: linkRange?.map(drawn),
      ...grouped(groups[state.outline]),
    });
    legend.replaceChildren(...legendOf(tile, rangeOf(tile, run.tiles.id.length), link, linkRange));
    showDetail();
  };
  /** Outlines, and the members of one group: the chosen tile's, or an example where outlines would tell nothing. */
  const grouped = (grouping) => {
    if (!grouping) return {};
    const row = map.selected === null ? (grouping.scattered ? 0 : null) : run.tileAt.get(map.selected);
    return { outline: grouping.scattered ? null : grouping.of, members: row === null ? [] : membersOf(run, grouping, row) };
  };
  const showDetail = () => detail.replaceChildren(...detailOf(run, map.selected, tiles, valueOf, nameOf));

  const select = (tile) => {
    map.selected = tile;
    redraw();
    loadChart?.redraw();
  };
  const set = (key) => (value) => {
    state[key] = value;
    redraw();
  };

  const controls = element("div", { class: "controls" },
    choice("Tiles", Object.entries(tiles).map(([key, measure]) => [key, measure.name]), state.tile, set("tile")),
    choice("Links", [...Object.entries(links).map(([key, measure]) => [key, measure.name]), ["none", "not drawn"]], state.link, set("link")),
    Object.keys(groups).length > 0 && choice("Outline",
      [["none", "no groups"], ...Object.entries(groups).map(([key, { name }]) => [key, name])], state.outline, set("outline")));
  section.append(controls);
  if (windows) section.append(timeControls(run, state, () => { redraw(); loadChart?.redraw(); }));
  const wide = run.mesh.cols > 32 && run.mesh.cols > 1.4 * run.mesh.rows;
  section.append(element("div", { class: wide ? "below" : "beside" }, element("div", {}, frame, legend), element("div", { class: "side" }, detail, load)), tip);
  section.append(note(windows
    ? "Each square is a tile, each arrow a link, the thicker the larger its value. Tiles that are marked belong to one group. Crossed squares are dead tiles, empty ones are not used."
    : "Each square is a tile, each arrow a link. Crossed squares are dead tiles, empty ones are not used. Run with --report to see how the load moves over time."));

  const loadChart = windows ? loadOverTime(load, run, state, map) : null;
  section.dataset.map = "ready";

  canvas.addEventListener("mousemove", (event) => {
    const found = map.at(event.offsetX, event.offsetY);
    tip.hidden = found === null;
    if (found === null) return;
    tip.innerHTML = found.tile === undefined ? linkText(run, found.link, links, valueOf, nameOf) : tileText(run, found.tile, tiles, valueOf, nameOf);
    placeTip(tip, event);
  });
  canvas.addEventListener("mouseleave", () => { tip.hidden = true; });
  canvas.addEventListener("click", (event) => {
    const found = map.at(event.offsetX, event.offsetY);
    select(found?.tile === undefined || found.tile === map.selected || !run.tileAt.has(found.tile) ? null : found.tile);
  });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -run.mesh.cols, ArrowDown: run.mesh.cols }[event.key];
    if (event.key === "Escape") select(null);
    if (step === undefined) return;
    event.preventDefault();
    let to = (map.selected ?? run.tiles.id[0] - step) + step;
    while (to >= 0 && to < run.mesh.rows * run.mesh.cols && !run.tileAt.has(to)) to += step;
    if (run.tileAt.has(to)) select(to);
  });
  onTheme(redraw);
  new ResizeObserver(() => map.draw()).observe(frame);
  redraw();
}

const line = (name, value) => `<tr><td>${format.escaped(name)}</td><td>${format.escaped(value)}</td></tr>`;

function ranksText(run, row) {
  return run.axes.map((axis) => `${axis} ${run.ranks[axis][row]}`).join(", ");
}

function tileText(run, tile, measures, valueOf, nameOf) {
  const row = run.tileAt.get(tile);
  const name = run.tileName(tile);
  if (row === undefined) return `<b>${name}</b><br>${run.mesh.dead_tiles.includes(name) ? "dead" : "not used by the plan"}`;
  const lines = Object.values(measures).map((measure) => line(nameOf(measure), measure.text(valueOf(measure)(row))));
  const wafer = run.wafers > 1 ? `wafer ${run.waferOf(tile)}, ` : "";
  return `<b>${name}</b> ${wafer}stage ${run.tiles.stage[row]}${run.axes.length > 0 ? `<br>ranks: ${ranksText(run, row)}` : ""}<table>${lines.join("")}</table>`;
}

function linkText(run, link, measures, valueOf, nameOf) {
  const lines = Object.values(measures).map((measure) => line(nameOf(measure), measure.text(valueOf(measure)(link))));
  const byAxis = Object.entries(run.links.by_axis)
    .filter(([, values]) => values[link] > 0)
    .map(([axis, values]) => line(`of ${axis}`, format.percent(values[link] / run.links.bytes[link])));
  return `<b>${run.linkName(link)}</b><table>${lines.join("")}${line("packets", format.count(run.links.packets[link]))}${byAxis.join("")}</table>`;
}

export function placeTip(tip, event) {
  const room = document.documentElement.clientWidth - event.clientX;
  tip.style.left = `${event.pageX + (room < tip.offsetWidth + 30 ? -tip.offsetWidth - 14 : 14)}px`;
  const below = document.documentElement.clientHeight - event.clientY;
  tip.style.top = `${event.pageY + (below < tip.offsetHeight + 30 ? -tip.offsetHeight - 10 : 14)}px`;
}

function detailOf(run, tile, measures, valueOf, nameOf) {
  const body = element("div", {});
  if (tile === null) {
    const rows = run.tiles.id.map((_, row) => row);
    const mean = (measure) => sum(rows.map(valueOf(measure))) / rows.length;
    body.innerHTML = `<h3>Mean of ${format.count(rows.length)} tiles</h3><table>${Object.values(measures).map((measure) => line(nameOf(measure), measure.text(mean(measure)))).join("")}</table><p class="note">Choose a tile on the map to see its numbers here.</p>`;
  } else {
    body.innerHTML = tileText(run, tile, measures, valueOf, nameOf).replace(/<b>(.*?)<\/b>/, "<h3>$1</h3>");
  }
  return [body];
}

export const scale = (what, measure, [low, high], stops) => element("div", { class: "scale" },
  element("span", { title: measure.explanation }, `${what}: ${measure.name}${measure.root ? ", square root" : ""}`),
  element("span", { class: "end" }, measure.text(low)),
  element("span", { class: "ramp", style: `background:linear-gradient(to right, ${stops.join(",")})` }),
  element("span", { class: "end" }, measure.text(high)));

function legendOf(tile, tileRange, link, linkRange) {
  const colours = theme();
  return [scale("Tiles", tile, tileRange, colours.tileRamp), link && scale("Links", link, linkRange, colours.linkRamp)].filter(Boolean);
}

/** Whole run or one window; the window moves by hand or by itself. */
function timeControls(run, state, changed) {
  const { windows } = run;
  const slider = element("input", {
    type: "range", min: "0", max: String(windows.count - 1), value: "0", "aria-label": "Window of the run",
    input: () => go(Number(slider.value)),
  });
  const label = element("output", { class: "when" });
  const play = element("button", { type: "button", class: "button", click: () => (state.playing ? stop() : start()) }, "▶ Play");
  const whole = element("button", { type: "button", class: "button", click: () => { stop(); go(null); } }, "Whole run");

  const go = (window) => {
    state.window = window;
    if (window !== null) slider.value = String(window);
    whole.setAttribute("aria-pressed", String(window === null));
    const start = (window ?? 0) * windows.length;
    label.textContent = window === null
      ? `whole run, ${format.timeOf(run, run.cycles)}`
      : `window ${window + 1} of ${windows.count}: ${format.timeOf(run, start)} to ${format.timeOf(run, Math.min(start + windows.length, run.cycles))}`;
    changed();
  };
  const stop = () => {
    clearInterval(state.playing);
    state.playing = null;
    play.textContent = "▶ Play";
  };
  const start = () => {
    play.textContent = "❚❚ Pause";
    state.playing = setInterval(() => go(((state.window ?? -1) + 1) % windows.count), 1000 / framesPerSecond);
  };
  // The first call comes before the map is there.
  whole.setAttribute("aria-pressed", "true");
  label.textContent = `whole run, ${format.timeOf(run, run.cycles)}`;
  return element("div", { class: "controls time" }, whole, play, slider, label);
}

/** What the chosen tile, or all tiles, did window by window. */
function loadOverTime(parent, run, state, map) {
  const { windows } = run;
  const rows = run.tiles.id.map((_, row) => row);
  const shareIn = (kind, window) => {
    const of = map.selected === null ? rows : [run.tileAt.get(map.selected)];
    return sum(of.map((row) => windows.tileShare(kind, row, window))) / of.length;
  };
  return chart(parent, "load", "What the chosen tile, or all tiles, did over time, as stacked shares", 290, (colours) => ({
    legend: { itemWidth: 10, itemGap: 8, textStyle: { color: colours.text, fontSize: 11 } },
    grid: { left: 40, right: 12, top: 58, bottom: 40 },
    tooltip: { trigger: "axis", valueFormatter: format.percent },
    xAxis: axisStyle(colours, {
      type: "category", boundaryGap: false, data: Array.from({ length: windows.count }, (_, w) => format.timeOf(run, w * windows.length)),
      name: map.selected === null ? "mean of all tiles" : run.tileName(map.selected), nameLocation: "middle", nameGap: 26,
    }),
    yAxis: axisStyle(colours, { type: "value", max: 1, axisLabel: { formatter: (value) => `${value * 100} %` } }),
    series: run.kinds.map((kind, index) => ({
      name: kindNames[kind], type: "line", stack: "load", symbol: "none", lineStyle: { width: 0 }, color: colours.kinds[kind],
      areaStyle: { opacity: 1, color: colours.kinds[kind] },
      data: Array.from({ length: windows.count }, (_, window) => shareIn(kind, window)),
      markLine: index > 0 || state.window === null ? undefined : {
        silent: true, symbol: "none", label: { show: false }, lineStyle: { color: colours.text, type: "solid" }, data: [{ xAxis: state.window }],
      },
    })),
  }));
}
