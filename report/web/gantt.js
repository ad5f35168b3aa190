// Bars over time in rows, with zoom by wheel and slider.

import { axisStyle, chart, zoomStyle } from "./charts.js";
import * as format from "./format.js";

/**
 * `view()` gives the rows (names from the top) and bars: {row, from, to, top, height, colour(theme), text()} with top and height as
 * shares of the row. Returns the chart.
 */
export function gantt(parent, run, name, label, height, view) {
  let bars = [];
  const drawn = chart(parent, name, label, height, (colours) => {
    const shown = view();
    bars = shown.bars;
    return {
      grid: { left: 96, right: 20, top: 8, bottom: 56 },
      tooltip: { trigger: "item", formatter: (item) => bars[item.dataIndex].text() },
      dataZoom: zoomStyle(colours, { xAxisIndex: 0, labelFormatter: (value) => format.timeOf(run, value) }),
      xAxis: axisStyle(colours, { type: "value", min: 0, max: run.cycles, axisLabel: { formatter: (value) => format.timeOf(run, value), hideOverlap: true } }),
      yAxis: axisStyle(colours, { type: "category", inverse: true, data: shown.rows, axisLabel: { width: 88, overflow: "truncate" } }),
      series: [{
        type: "custom", clip: true, progressive: 5000, renderItem: bar(bars, colours), encode: { x: [1, 2], y: 0 },
        data: bars.map(({ row, from, to }) => [row, from, to]),
      }],
    };
  });
  return drawn;
}

function bar(bars, colours) {
  return (params, api) => {
    const { row, from, to, top, height, colour } = bars[params.dataIndex];
    const [left, middle] = api.coord([from, row]);
    const [right] = api.coord([to, row]);
    const [, band] = api.size([0, 1]);
    const area = params.coordSys;
    const x = Math.max(left, area.x);
    const width = Math.min(right, area.x + area.width) - x;
    if (width < 0) return null;
    return {
      type: "rect",
      shape: { x, y: middle - band / 2 + band * top, width: Math.max(width - (width > 4 ? 0.6 : 0), 0.6), height: Math.max(band * height, 1) },
      style: { fill: colour(colours) },
    };
  };
}
