// The wafer on a canvas: tiles as squares, links as arrows between them, two for each pair of neighbours.

import { spotOf } from "./data.js";
import { rampColours, theme } from "./theme.js";

const largestCell = 96;
const smallestCell = 5;
const tallest = 780;

/** Below that arrows have no tips that could be seen. */
const arrowCell = 26;

/** Share of a cell that a tile's square takes; links have the rest. */
const tileShare = 0.62;

/** Between wafers that lie side by side, in cells. */
const waferGap = 0.8;

/** Where line `index` of `all` begins and the one before it ends, in cells, when `each` of them are a wafer's. */
const begin = (index, all, each) => index + waferGap * Math.min(Math.floor(index / each), all / each - 1);
const endBefore = (index, all, each) => (index === 0 ? 0 : begin(index - 1, all, each) + 1);

/** The line at a place counted in cells, the nearest where that is between two wafers, and how far from its middle. */
function lineAt(place, all, each) {
  const wafer = Math.floor((place + waferGap / 2) / (each + waferGap));
  const within = place - wafer * (each + waferGap);
  const index = wafer * each + Math.min(Math.max(Math.floor(within), 0), each - 1);
  return { index, from: place - begin(index, all, each) - 0.5 };
}

export class WaferMap {
  /** `canvas` in `frame`, whose width it takes. `view`: tileValue(row), linkValue(row), their ranges,
   * outline(row), equal within a group, and `members`, tiles to mark; tileRamp and linkRamp instead of the usual colours. A range
   * from below 0 is of differences. */
  constructor(run, canvas, frame) {
    this.run = run;
    this.canvas = canvas;
    this.frame = frame;
    this.dead = new Set(run.mesh.dead_tiles);
    this.selected = null;
    this.view = null;
  }

  show(view) {
    this.view = view;
    this.draw();
  }

  /** The side of a cell in CSS pixels, for the width that there is. */
  measure() {
    const { rows, cols, wafer } = this.run.mesh;
    const width = this.frame.clientWidth;
    const across = endBefore(cols, cols, wafer.cols);
    const down = endBefore(rows, rows, wafer.rows);
    this.cell = Math.max(smallestCell, Math.min(largestCell, width / across, Math.max(tallest / down, 12)));
    return { width: Math.ceil(across * this.cell), height: Math.ceil(down * this.cell) };
  }

  /** The west edge of a column and the north edge of a row, in pixels. */
  west(column) { return begin(column, this.run.mesh.cols, this.run.mesh.wafer.cols) * this.cell; }
  north(row) { return begin(row, this.run.mesh.rows, this.run.mesh.wafer.rows) * this.cell; }

  draw() {
    if (!this.view) return;
    const { width, height } = this.measure();
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    this.drawLinks(context);
    this.drawTiles(context);
    this.drawOutlines(context);
    this.drawSelection(context);
  }

  drawTiles(context) {
    const { run, cell, view } = this;
    const colours = theme();
    const ramp = rampColours(view.tileRamp ?? colours.tileRamp);
    const side = cell * (view.linkValue ? tileShare : 0.9);
    const inset = (cell - side) / 2;
    for (let id = 0; id < run.mesh.rows * run.mesh.cols; id += 1) {
      const x = this.west(id % run.mesh.cols) + inset;
      const y = this.north(Math.floor(id / run.mesh.cols)) + inset;
      const row = run.tileAt.get(id);
      if (row !== undefined) {
        context.fillStyle = ramp[place(view.tileValue(row), view.tileRange)];
        context.fillRect(x, y, side, side);
      } else if (this.dead.has(run.tileName(id))) {
        drawCross(context, x, y, side, colours.dead);
      } else {
        context.strokeStyle = colours.unused;
        context.lineWidth = 1;
        context.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1);
      }
    }
  }

  drawLinks(context) {
    const { run, view } = this;
    if (!view.linkValue) return;
    const ramp = rampColours(view.linkRamp ?? theme().linkRamp);
    for (let row = 0; row < run.links.id.length; row += 1) {
      const value = view.linkValue(row);
      if (value === 0) continue;
      const step = place(value, view.linkRange);
      context.fillStyle = ramp[step];
      this.drawLink(context, run.link(row), view.linkRange[0] < 0 ? Math.abs(value) / view.linkRange[1] : step / 255);
    }
  }

  /** An arrow in the gap between two tiles; of a pair each lies on the traveller's right. Express links cross tiles, farther out. */
  drawLink(context, { x, y, right, down, express, length }, strength) {
    const { cell } = this;
    const { wafer } = this.run.mesh;
    const crosses = (at, by, each) => by !== 0 && Math.floor(at / each) !== Math.floor((at + by) / each);
    const between = crosses(x, right, wafer.cols) || crosses(y, down, wafer.rows) ? waferGap : 0;
    const gap = cell * ((express ? length : 1) - tileShare + between);
    const lane = cell * (express ? 0.3 : 0.12);
    const half = Math.max(cell * (0.02 + 0.075 * strength), 0.4);
    const tip = cell < arrowCell ? 0 : Math.min(gap * 0.4, half * 1.6);
    // From the edge of the square, (along the way, to its right).
    const startX = this.west(x) + (0.5 + (right * tileShare) / 2) * cell - down * lane;
    const startY = this.north(y) + (0.5 + (down * tileShare) / 2) * cell + right * lane;
    const at = (along, side) => [startX + right * along - down * side, startY + down * along + right * side];
    context.beginPath();
    for (const [along, side] of [[0, -half], [gap - tip, -half], [gap, 0], [gap - tip, half], [0, half]]) context.lineTo(...at(along, side));
    context.fill();
  }

  drawOutlines(context) {
    const { run, cell, view } = this;
    if (!view.outline) return;
    const { rows, cols, wafer } = run.mesh;
    const groupAt = (x, y) => {
      if (x < 0 || y < 0 || x >= cols || y >= rows) return null;
      const row = run.tileAt.get(y * cols + x);
      return row === undefined ? null : view.outline(row);
    };
    context.beginPath();
    for (let y = 0; y <= rows; y += 1) {
      for (let x = 0; x <= cols; x += 1) {
        const here = groupAt(x, y);
        const left = this.west(x);
        const top = this.north(y);
        if (here !== groupAt(x, y - 1)) for (const edge of edges(top, endBefore(y, rows, wafer.rows) * cell)) line(context, left, edge, left + cell, edge);
        if (here !== groupAt(x - 1, y)) for (const edge of edges(left, endBefore(x, cols, wafer.cols) * cell)) line(context, edge, top, edge, top + cell);
      }
    }
    context.strokeStyle = theme().outline;
    context.lineWidth = Math.max(1, cell * 0.05);
    context.stroke();
  }

  drawSelection(context) {
    const thick = Math.max(2, this.cell * 0.08);
    for (const id of this.view.members ?? []) this.frameTile(context, id, thick * 0.6);
    if (this.selected !== null) this.frameTile(context, this.selected, thick * 1.4);
  }

  frameTile(context, id, width) {
    const { cell, run } = this;
    context.strokeStyle = theme().mark;
    context.lineWidth = width;
    const x = this.west(id % run.mesh.cols);
    const y = this.north(Math.floor(id / run.mesh.cols));
    context.strokeRect(x + width / 2, y + width / 2, cell - width, cell - width);
  }

  /** What lies below a place on the canvas: {tile: id}, {link: row} or null. */
  at(x, y) {
    const { run, cell } = this;
    const { rows, cols, wafer } = run.mesh;
    const { index: column, from: fromX } = lineAt(x / cell, cols, wafer.cols);
    const { index: line, from: fromY } = lineAt(y / cell, rows, wafer.rows);
    if (x < 0 || y < 0 || column >= cols || line >= rows) return null;
    const tile = line * cols + column;
    if (!this.view.linkValue || Math.max(Math.abs(fromX), Math.abs(fromY)) <= tileShare / 2) return { tile };
    const link = run.linkAt.get(linkBelow(column, line, fromX, fromY));
    return link === undefined ? { tile } : { link };
  }
}

/** One where both edges of a border are the same. */
const edges = (one, other) => (one === other ? [one] : [one, other]);

/** The link in whose half of the gap a place of a cell lies, measured in cells from its middle. */
function linkBelow(column, line, x, y) {
  if (Math.abs(x) >= Math.abs(y)) {
    const east = x > 0 ? column : column - 1;
    return y > 0 ? spotOf(east, line, { right: 1, down: 0 }) : spotOf(east + 1, line, { right: -1, down: 0 });
  }
  const south = y > 0 ? line : line - 1;
  return x < 0 ? spotOf(column, south, { right: 0, down: 1 }) : spotOf(column, south + 1, { right: 0, down: -1 });
}

/** 0..255 between the ends of a range. */
export function place(value, [low, high]) {
  if (high <= low) return high > 0 ? 255 : 0;
  return Math.max(0, Math.min(255, Math.round(((value - low) / (high - low)) * 255)));
}

function line(context, x1, y1, x2, y2) {
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
}

function drawCross(context, x, y, side, colour) {
  context.strokeStyle = colour;
  context.lineWidth = Math.max(1, side * 0.08);
  context.beginPath();
  line(context, x, y, x + side, y + side);
  line(context, x + side, y, x, y + side);
  context.stroke();
  context.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1);
}
