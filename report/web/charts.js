// Apache ECharts with the parts that the page uses, in the page's colours.

import * as echarts from "echarts/core";
import { BarChart, CustomChart, LineChart, ParallelChart, ScatterChart } from "echarts/charts";
import { AriaComponent, DataZoomComponent, GridComponent, LegendComponent, MarkLineComponent, ParallelComponent, TooltipComponent } from "echarts/components";
import { CanvasRenderer } from "echarts/renderers";

import { element } from "./dom.js";
import { onTheme, theme } from "./theme.js";

echarts.use([
  BarChart, CustomChart, LineChart, ParallelChart, ScatterChart, AriaComponent, DataZoomComponent, GridComponent, LegendComponent,
  MarkLineComponent, ParallelComponent, TooltipComponent, CanvasRenderer,
]);

/** By name; tests look here. */
export const charts = new Map();

const font = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

/** What all charts have in common; axes without ticks, grids that step back. */
function base(colours) {
  return {
    animation: false,
    textStyle: { color: colours.text, fontFamily: font },
    tooltip: {
      confine: true, backgroundColor: colours.panel, borderColor: colours.line, textStyle: { color: colours.text, fontSize: 12 },
    },
    legend: { textStyle: { color: colours.text }, icon: "roundRect", itemWidth: 14, itemHeight: 10, top: 0, left: 0 },
  };
}

export function axisStyle(colours, axis) {
  return {
    nameTextStyle: { color: colours.muted, fontSize: 12 },
    axisLine: { show: axis.type === "category", lineStyle: { color: colours.line } },
    axisTick: { show: false },
    splitLine: { show: axis.type !== "category", lineStyle: { color: colours.line } },
    ...axis,
    axisLabel: { color: colours.muted, ...axis.axisLabel },
  };
}

/** Sliders below a chart and the wheel over it. */
export function zoomStyle(colours, more = {}) {
  return [
    { type: "inside", filterMode: "weakFilter", ...more },
    {
      type: "slider", filterMode: "weakFilter", height: 18, bottom: 6, borderColor: colours.line, textStyle: { color: colours.muted },
      fillerColor: colours.dark ? "rgba(109,184,242,0.18)" : "rgba(11,98,168,0.14)", handleStyle: { color: colours.accent },
      dataBackground: { lineStyle: { opacity: 0 }, areaStyle: { opacity: 0 } },
      selectedDataBackground: { lineStyle: { opacity: 0 }, areaStyle: { opacity: 0 } }, ...more,
    },
  ];
}

/**
 * A chart in `parent`. build(colours) gives its ECharts option, again whenever the theme changes; redraw() after the data
 * behind it changed. `label` is what a screen reader says.
 */
export function chart(parent, name, label, height, build) {
  const box = element("div", { class: "chart", role: "img", "aria-label": label, style: `height:${height}px` });
  parent.append(box);
  const instance = echarts.init(box, null, { renderer: "canvas" });
  const redraw = () => {
    const colours = theme();
    const common = base(colours);
    const option = build(colours);
    instance.setOption({
      ...common, ...option, tooltip: { ...common.tooltip, ...option.tooltip }, legend: option.legend && { ...common.legend, ...option.legend },
    }, { notMerge: true });
  };
  redraw();
  onTheme(redraw);
  new ResizeObserver(() => instance.resize()).observe(box);
  charts.set(name, instance);
  return { instance, redraw, box };
}
