// The report page in headless Chromium, opened from a file: what it shows is what the run wrote, and it needs nothing else.
//
// Environment: WAFERSIM the program, PACKAGES a directory with playwright-core in its node_modules. Without Chromium, or with a
// Node.js that is too old for playwright-core, the status is 77: skipped.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const browserPath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
if (!browserPath || Number(process.versions.node.split(".")[0]) < 18) {
  console.log(`skipped: ${browserPath ? `Node.js ${process.versions.node} is below 18` : "no Chromium"}`);
  process.exit(77);
}
const { chromium } = createRequire(join(process.env.PACKAGES, "package.json"))("playwright-core");

const place = mkdtempSync(join(tmpdir(), "wafersim-page-"));
const hostile = `a </script><b id="injected">"&'`;
const scenario = `name: '${hostile.replaceAll("'", "''")}'
wafer:
  mesh: 3x3
  clock: 1 GHz
  dead_tiles: [tile_2_2]
  sram: {capacity: 64 MiB, bandwidth: 64 B/cycle}
  link: {bandwidth: 64 B/cycle, latency: 1 cycles}
  energy: {matrix: 0.5 pJ/FLOP, link: 2 pJ/bit, router: 0.1 pJ/bit, static: 1 mW}
router: {routing: table}
network: {packet_bytes: 4 KiB}
model: {layers: 2, hidden: 64, heads: 4, ffn: 256, vocab: 128, context: 32, sequence: 32}
training: {global_batch: 4, microbatch: 1}
plan: {tp: 2, pp: 2}
`;
writeFileSync(join(place, "s.yaml"), scenario);
const wafersim = (...words) => execFileSync(process.env.WAFERSIM, words, { cwd: place, encoding: "utf8" });
const csv = (file) => {
  const [head, ...rows] = readFileSync(join(place, file), "utf8").trimEnd().split("\n").map((line) => line.split(","));
  return rows.map((row) => Object.fromEntries(row.map((cell, column) => [head[column], cell])));
};

const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox", "--disable-gpu"] });

/** A page with what went wrong in it. */
async function open(run, options = {}, file = "report.html") {
  const page = await browser.newPage({ viewport: { width: 1300, height: 900 }, ...options });
  page.troubles = [];
  page.on("console", (message) => message.type() !== "log" && page.troubles.push(message.text()));
  page.on("pageerror", (error) => page.troubles.push(error.message));
  page.on("request", (request) => /^(file|data):/.test(request.url()) || page.troubles.push(request.url()));
  await page.goto(pathToFileURL(join(place, run, file)).href);
  await page.waitForFunction(() => window.wafersim);
  return page;
}

const text = (page, selector) => page.locator(selector).innerText();
const picture = (page) => page.evaluate(() => document.querySelector(".map canvas").toDataURL());
const percent = (share) => (share === 0 ? "0 %" : share < 0.001 ? "< 0.1 %" : `${(share * 100).toFixed(1)} %`);
/** The middle of a tile's square. */
async function overTile(page, x, y) {
  await page.locator(".map canvas").scrollIntoViewIfNeeded();
  const box = await page.locator(".map canvas").boundingBox();
  await page.mouse.move(box.x + ((x + 0.5) * box.width) / 3, box.y + ((y + 0.5) * box.height) / 3);
}

const tests = {
  async "shows the numbers of summary.json"(page, summary) {
    assert.equal(await text(page, "h1"), hostile);
    assert.equal(await page.locator("#injected").count(), 0);
    const figure = (name) => text(page, `[data-figure="${name}"] .value`);
    assert.equal(await figure("MFU"), percent(summary.mfu));
    assert.equal(await figure("Compute"), percent(summary.compute_utilization));
    assert.equal(await figure("Exposed communication"), percent(summary.communication_share));
    assert.equal(await figure("Tokens/s"), Math.round(summary.tokens_per_second).toLocaleString("en-US"));
    assert.equal(await figure("Memory fits"), percent(summary.memory.peak_bytes / summary.memory.capacity_bytes));
    assert.match(await page.locator("#scenario").textContent(), /mesh: 3x3/);
  },

  async "has data in every chart"(page) {
    const points = await page.evaluate(() => Object.fromEntries([...window.wafersim.charts].map(([name, chart]) => [
      name, chart.getOption().series.map((series) => series.data.length)])));
    assert.deepEqual(Object.keys(points).sort(),
      ["breakdown", "energy", "energy-stages", "hidden", "latency", "links", "load", "memory", "memory2", "path", "path_parts", "peaks", "roofline", "steps", "timeline"]);
    for (const [name, series] of Object.entries(points)) {
      assert.ok(series.length > 0 && series.every((length) => length > 0), `${name}: ${series}`);
    }
  },

  async "tells the energy of the summary by part, stage and tile"(page, summary) {
    const { energy } = summary;
    assert.deepEqual(Object.keys(energy.by_part), ["matrix", "link", "router", "static"]);
    const data = (name) => page.evaluate((of) => window.wafersim.charts.get(of).getOption().series[0].data, name);
    assert.deepEqual(await data("energy"), Object.values(energy.by_part));
    const near = (a, b) => assert.ok(Math.abs(a - b) <= 1e-9 * b, `${a} and ${b}`);
    const sum = (values) => values.reduce((a, b) => a + b);
    const tiles = csv("full/tiles.csv");
    near(sum(await data("energy-stages")), sum(tiles.map((row) => Number(row.energy_joules))));
    near(sum(tiles.map((row) => Number(row.energy_joules))) + energy.unused_tiles_joules, energy.total_joules);
    near(sum(csv("full/links.csv").map((row) => Number(row.energy_joules))), energy.by_part.link);
    assert.match(await text(page, "#energy .note"), /not modelled, and not in the sum: vector engine, SRAM, network interfaces/);
    assert.match(await text(page, '[data-figure="Energy"] .value'), /^[\d.]+ .J$/);
    await page.locator("#energy details summary").click();
    assert.match(await text(page, "#energy-parts"), /links.*2 pJ\/bit/);
    await page.locator("#wafer select").nth(0).selectOption("energy");
    await page.locator("#wafer select").nth(1).selectOption("energy");
    await overTile(page, 1, 0);
    assert.match(await text(page, ".tip"), /energy\s+[\d.]+ .J/);
    await page.locator("#wafer select").nth(0).selectOption("compute");
    await page.locator("#wafer select").nth(1).selectOption("busy");
  },

  async "tells shares that sum to one and are the summary's"(page, summary) {
    const shares = await page.evaluate(() => {
      const { series, yAxis } = window.wafersim.charts.get("breakdown").getOption();
      return yAxis[0].data.map((row, i) => [row, Object.fromEntries(series.map((each) => [each.name, each.data[i]]))]);
    });
    assert.deepEqual(shares.map(([row]) => row), ["all tiles", "stage 0", "stage 1"]);
    for (const [row, causes] of shares) {
      assert.ok(Math.abs(Object.values(causes).reduce((a, b) => a + b) - 1) < 1e-12, row);
    }
    const whole = shares[0][1];
    assert.ok(Math.abs(whole.compute - summary.breakdown.compute) < 1e-12);
    assert.ok(Math.abs((whole["exposed tp"] ?? 0) - summary.breakdown.exposed_communication.tp) < 1e-12);
    assert.ok(Math.abs((whole.bubble ?? 0) - summary.breakdown.bubble) < 1e-12);
    const steps = await page.evaluate(() => window.wafersim.charts.get("steps").getOption().series.flatMap((series) => series.data));
    assert.ok(Math.abs(steps.reduce((a, b) => a + b) - 1) < 1e-12);
  },

  async "tells the numbers of a tile and of a link under the pointer"(page, summary) {
    const tile = csv("full/tiles.csv").find((row) => row.tile === "tile_1_0");
    await overTile(page, 1, 0);
    const told = await text(page, ".tip");
    assert.match(told, /tile_1_0/);
    assert.ok(told.includes(percent(Number(tile.compute_cycles) / summary.cycles)), told);
    await overTile(page, 2, 2);
    assert.match(await text(page, ".tip"), /tile_2_2\s+dead/);
    await overTile(page, 0.5, 0.12);
    const link = csv("full/links.csv").find((row) => row.link === "tile_0_0>tile_1_0");
    const ofLink = await text(page, ".tip");
    assert.match(ofLink, /tile_0_0 → tile_1_0/);
    assert.ok(ofLink.includes(percent(Number(link.busy_cycles) / summary.cycles)), ofLink);
    await overTile(page, 0.5, -0.12);
    assert.match(await text(page, ".tip"), /tile_1_0 → tile_0_0/);
  },

  async "selects tiles by keyboard"(page) {
    await page.locator(".map canvas").focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    assert.match(await text(page, ".detail"), /tile_1_0/);
    await page.keyboard.press("Escape");
    assert.match(await text(page, ".detail"), /Mean of 4 tiles/);
  },

  async "moves through the windows of the run"(page) {
    const whole = await picture(page);
    const count = await page.evaluate(() => window.wafersim.run.windows.count);
    await page.locator("input[type=range]").fill(String(count - 1));
    assert.match(await text(page, ".when"), new RegExp(`window ${count} of ${count}`));
    assert.notEqual(await picture(page), whole);
    await page.getByRole("button", { name: "Whole run" }).click();
    assert.equal(await picture(page), whole);
    await page.getByRole("button", { name: "Play" }).click();
    await page.waitForFunction(() => /window [3-9] of/.test(document.querySelector(".when").textContent));
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Whole run" }).click();
  },

  async "outlines groups and colours by every measure"(page) {
    const seen = new Set([await picture(page)]);
    const choices = page.locator("#wafer select");
    await choices.nth(2).selectOption("tp");
    seen.add(await picture(page));
    for (const measure of await choices.nth(0).locator("option").evaluateAll((all) => all.map((each) => each.value))) {
      await choices.nth(0).selectOption(measure);
      seen.add(await picture(page));
    }
    for (const measure of ["queue", "bytes", "none"]) {
      await choices.nth(1).selectOption(measure);
      seen.add(await picture(page));
    }
    assert.ok(seen.size > 8, `${seen.size} different pictures`);
  },

  async "names the flows across hot links"(page) {
    const flows = csv("full/flows.csv");
    const first = page.locator("#hotspots details").first();
    await first.locator("summary").click();
    const lines = await first.locator("li").allInnerTexts();
    const link = (await first.locator("summary").innerText()).replace(" → ", ">").trim();
    const heaviest = flows.find((row) => row.link === link);
    assert.ok(lines[0].startsWith(`${heaviest.source} → ${heaviest.destination}, ${heaviest.axis}: `), lines[0]);
  },

  async "follows the critical path from end to end"(page, summary) {
    const path = JSON.parse(readFileSync(join(place, "full/critical_path.json"), "utf8"));
    const bars = await page.evaluate(() => window.wafersim.charts.get("path").getOption().series[0].data);
    let at = 0;
    for (const [, from, to] of bars) {
      assert.equal(from, at);
      at = to;
    }
    assert.equal(at, summary.cycles);
    const { names, values } = await page.evaluate(() => {
      const { series, yAxis } = window.wafersim.charts.get("path_parts").getOption();
      return { names: yAxis[0].data, values: series[0].data.map((each) => each.value) };
    });
    assert.equal(values.reduce((a, b) => a + b), path.cycles);
    assert.equal(values[names.indexOf("serialization")], path.by_kind.serialization);
    const rows = await page.locator("#what-if tbody tr").allInnerTexts();
    assert.equal(rows.length, path.what_if.length);
    const links = path.what_if.find(({ change }) => change === "links 2x");
    assert.ok(rows.some((row) => row.startsWith("links 2x") && row.includes(`at most ${percent(1 - links.at_least_cycles / path.cycles)} shorter`)), rows.join("\n"));
  },

  async "has rows for chosen tiles, too"(page) {
    await page.locator("#timeline select").first().selectOption("tiles");
    const rows = await page.evaluate(() => window.wafersim.charts.get("timeline").getOption().yAxis[0].data);
    assert.deepEqual(rows, ["tile_0_0", "tile_0_1"]);
  },

  async "changes between light and dark"(page) {
    const state = () => page.evaluate(() => [document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor]);
    const before = await state();
    await page.locator("#theme").click();
    const after = await state();
    assert.notEqual(after[0], before[0]);
    assert.notEqual(after[1], before[1]);
  },
};

let failed = 0;
async function check(name, body) {
  try {
    await body();
    console.log(`ok: ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED: ${name}\n${error.stack}`);
  }
}

try {
  wafersim("run", "s.yaml", "-o", "full", "--quiet", "--report", "--critical-path");
  wafersim("run", "s.yaml", "-o", "plain", "--quiet");
  wafersim("report", "plain");
  wafersim("run", "s.yaml", "-o", "partial", "--quiet", "--report", "--max-cycles", "2000");
  const summary = JSON.parse(readFileSync(join(place, "full/summary.json"), "utf8"));

  const page = await open("full");
  for (const [name, test] of Object.entries(tests)) await check(`the page ${name}`, () => test(page, summary));
  await check("the page logs nothing and asks for nothing", () => assert.deepEqual(page.troubles, []));

  await check("without records the page has what is always written", async () => {
    const plain = await open("plain", { colorScheme: "dark" });
    assert.deepEqual(plain.troubles, []);
    assert.equal(await plain.evaluate(() => document.documentElement.dataset.theme), "dark");
    assert.deepEqual(await plain.evaluate(() => [...window.wafersim.charts.keys()].sort()), ["breakdown", "energy", "energy-stages", "hidden", "links", "peaks", "timeline"]);
    assert.equal(await plain.locator("input[type=range]").count(), 0);
  });
  wafersim("run", "s.yaml", "-o", "slow", "--quiet", "--set", "wafer.link.bandwidth=16 B/cycle", "--set", "training.global_batch=8");
  wafersim("run", "s.yaml", "-o", "wide", "--quiet", "--set", "wafer.mesh=3x4", "--set", "wafer.dead_tiles=[]");
  wafersim("compare", "full", "slow", "--html", "two.html");
  wafersim("compare", "full", "wide", "slow", "--html", "three.html");
  const pair = await open(".", {}, "two.html");
  await check("a comparison has the measures and keys of the command", async () => {
    assert.deepEqual(pair.troubles, []);
    assert.equal(await text(pair, "h1"), "full and slow");
    const other = JSON.parse(readFileSync(join(place, "slow/summary.json"), "utf8"));
    const rows = await pair.locator("#measure-table tbody tr").allInnerTexts();
    const cycles = rows.find((row) => row.startsWith("cycles")).split("\t");
    assert.equal(cycles[1], summary.cycles.toLocaleString("en-US"));
    assert.equal(cycles[2], `${other.cycles.toLocaleString("en-US")} (+${((other.cycles / summary.cycles - 1) * 100).toFixed(1)} %)`);
    const told = await pair.locator("#key-table tbody tr").allInnerTexts();
    assert.deepEqual(told.map((row) => row.split("\t")), [["wafer.link.bandwidth", "64 B/cycle", "16 B/cycle"], ["training.global_batch", "4", "8"]]);
    const bars = await pair.evaluate(() => window.wafersim.charts.get("breakdown").getOption().series.map((series) => series.data));
    for (const [run, { seconds }] of [[0, summary], [1, other]]) {
      assert.ok(Math.abs(bars.reduce((all, data) => all + data[run], 0) - seconds) < 1e-12);
    }
  });
  await check("its map tells the difference of tiles and links", async () => {
    const of = (run) => csv(`${run}/tiles.csv`).find((row) => row.tile === "tile_1_0");
    const share = (run) => Number(of(run).compute_utilization);
    await overTile(pair, 1, 0);
    const told = await text(pair, ".tip");
    assert.ok(told.includes(percent(share("full"))) && told.includes(percent(share("slow"))), told);
    const change = share("slow") - share("full");
    assert.ok(told.includes(`${change < 0 ? "−" : "+"}${percent(Math.abs(change))}`), told);
    await overTile(pair, 0.5, 0.12);
    assert.match(await text(pair, ".tip"), /tile_0_0 → tile_1_0/);
    const seen = new Set([await picture(pair)]);
    for (const measure of ["peak", "idle"]) {
      await pair.locator("#difference select").first().selectOption(measure);
      seen.add(await picture(pair));
    }
    await pair.locator("#difference select").last().selectOption("bytes");
    seen.add(await picture(pair));
    assert.ok(seen.size > 2, `${seen.size} different pictures`);
    await pair.locator("#breakdown select").selectOption("share");
    await pair.locator("#theme").click();
    assert.deepEqual(pair.troubles, []);
  });
  await check("it compares maps of equal meshes only", async () => {
    const three = await open(".", {}, "three.html");
    assert.deepEqual(three.troubles, []);
    assert.equal(await three.locator("#measure-table thead th").count(), 4);
    assert.match(await text(three, "#difference .note"), /^What slow has more/);
  });
  writeFileSync(join(place, "study.yaml"), `name: links
scenario: s.yaml
set: {training.iterations: 1}
vary:
  wafer.link.bandwidth: [16 B/cycle, 64 B/cycle, 256 B/cycle]
  training.microbatch: [1, 2]
list: [{plan.tp: 64}]
`);
  wafersim("sweep", "study.yaml", "-o", "study", "--quiet");
  const study = await open("study", {}, "overview.html");
  await check("a study's overview has all points", async () => {
    assert.deepEqual(study.troubles, []);
    assert.match(await text(study, ".plan"), /7 points of run: 6 done, 1 failed/);
    const rows = csv("study/results.csv").filter((row) => row.status === "done");
    const chart = (name) => study.evaluate((of) => window.wafersim.charts.get(of).getOption().series.map((series) => series.data), name);
    const [lines] = await chart("points");
    assert.deepEqual(lines.map((line) => line.value.at(-1)).toSorted(), rows.map((row) => Number(row.seconds)).toSorted());
    const [points, front] = await chart("pareto");
    assert.equal(points.length, rows.length);
    // Nobody beats a point of the front in both measures, and somebody beats every other one or equals it.
    const beats = (a, b) => a[0] <= b[0] && a[1] <= b[1] && (a[0] < b[0] || a[1] < b[1]);
    for (const { value } of front) assert.ok(!points.some((point) => beats(point.value, value)));
    assert.equal(await study.locator("#front tbody tr").count(), front.length);
    const onFront = new Set(front.map(({ row }) => row));
    for (const point of points) {
      const same = front.some(({ value }) => value[0] === point.value[0] && value[1] === point.value[1]);
      assert.ok(onFront.has(point.row) || same || points.some((other) => beats(other.value, point.value)));
    }
    assert.match(await text(study, "#failed-table"), /plan\.tp: 64/);
  });
  await check("it puts two keys against each other", async () => {
    const rows = csv("study/results.csv").filter((row) => row.status === "done");
    await study.locator("#keys select").nth(0).selectOption("wafer.link.bandwidth");
    await study.locator("#keys select").nth(1).selectOption("training.microbatch");
    await study.locator("#keys select").nth(2).selectOption("cycles");
    const cells = (await study.locator("#two-keys tbody tr").allInnerTexts()).map((row) => row.split("\t"));
    assert.deepEqual(cells.map(([name]) => name), ["1", "2"]);
    assert.equal(cells.flat().length, 2 * 4);
    const heads = await study.locator("#two-keys thead th").allInnerTexts();
    assert.deepEqual(heads.slice(1), ["16 B/cycle", "64 B/cycle", "256 B/cycle"]);
    const shortest = rows.reduce((best, row) => (Number(row.cycles) < Number(best.cycles) ? row : best));
    const shade = (row) => study.locator("#two-keys tbody tr").nth(Number(row["training.microbatch"]) - 1).locator(".shade")
      .nth(heads.indexOf(row["wafer.link.bandwidth"]) - 1).evaluate((cell) => cell.style.background);
    const darkest = await shade(shortest);
    for (const row of rows) if (row.cycles !== shortest.cycles) assert.notEqual(await shade(row), darkest);
    await study.locator("#theme").click();
    assert.deepEqual(study.troubles, []);
  });
  await check("a partial run says so", async () => {
    const partial = await open("partial");
    assert.deepEqual(partial.troubles, []);
    assert.match(await text(partial, ".notice"), /stopped by max-cycles/);
  });
} finally {
  await browser.close();
  rmSync(place, { recursive: true });
}
console.log(`${failed} of ${Object.keys(tests).length + 8} failed`);
process.exit(failed === 0 ? 0 : 1);
