// The page of a run: a header, then one section for each module below; or that of a comparison, see compare.js, or of a study, see
// study.js. A module has id, title, render(section, run) and, where a run need not have its data, has(run).

import "./licenses.js";
import "./style.css";

import * as breakdown from "./breakdown.js";
import { charts } from "./charts.js";
import { compare } from "./compare.js";
import { prepare, read } from "./data.js";
import { element } from "./dom.js";
import * as energy from "./energy.js";
import { header } from "./header.js";
import * as memory from "./memory.js";
import * as network from "./network.js";
import * as path from "./path.js";
import * as roofline from "./roofline.js";
import { overview } from "./study.js";
import { startTheme } from "./theme.js";
import * as timeline from "./timeline.js";
import * as wafer from "./wafer.js";

const modules = [
  wafer, timeline, breakdown, { ...path, has: (run) => run.path !== null }, memory, network,
  { ...energy, has: (run) => Boolean(run.summary.energy) },
  { ...roofline, has: (run) => run.operations !== null && run.operations.rows.length > 0 },
];

startTheme();
const data = await read(document.getElementById("run").textContent);
const page = document.getElementById("page");
if (data.comparison) compare(page, data);
else if (data.study) overview(page, data);
else report(page, prepare(data));

function report(page, run) {
  const shown = modules.filter((module) => !module.has || module.has(run));
  page.append(header(run, shown.map(({ id, title }) => [id, title])));
  for (const { id, title, render } of shown) {
    const section = element("section", { id, "aria-labelledby": `${id}-title` }, element("h2", { id: `${id}-title` }, title));
    page.append(section);
    render(section, run);
  }
}

/** For tests and the curious. */
window.wafersim = { run: data, charts };
