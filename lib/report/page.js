// SPDX-License-Identifier: BSL-1.0
// Draws the charts of a page (lib/report/chart.hpp) with Chart.js 3 or 4. Without scripts a chart is
// the table of its numbers.
(() => {
  "use strict";
  const colour = name =>
      getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  Chart.defaults.color = colour("ink");
  Chart.defaults.borderColor = colour("grid");
  Chart.defaults.animation = false;

  const multiples = {
    s: [[1, " s"], [1e-3, " ms"], [1e-6, " us"], [1e-9, " ns"]],
    B: [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, ""]]
  };
  const shown = (value, axis) => {
    const steps = multiples[axis.unit];
    if (!steps || value === 0)
      return String(+value.toPrecision(5)) + (axis.unit ? " " + axis.unit : "");
    const [factor, name] = steps.find(([f]) => Math.abs(value) >= 0.9995 * f) || steps.at(-1);
    return String(+(value / factor).toPrecision(4)) + name;
  };

  const hasRange = p => p && p.low !== undefined;

  // One series is one dataset, and two more without lines bound its band.
  const datasetsOf = (what, series, i) => {
    const names = what.x.names;
    const aligned = values =>
        names ? names.map((_, n) => {
          const p = series.points.find(q => q.x === n);
          return p ? values(p) : null;
        }) : series.points.map(p => ({x: p.x, y: values(p)}));
    const points = names ? names.map((_, n) => series.points.find(q => q.x === n)) : series.points;
    const bars = series.mark === "bars", curve = series.mark === "curve";
    const main = {
      type: bars ? "bar" : "line", label: series.name, data: aligned(p => p.y), points, group: i,
      mark: series.mark, backgroundColor: series.colour, borderColor: series.colour, borderWidth: bars ? 0 : 2,
      grouped: false, maxBarThickness: 60, showLine: curve, pointRadius: curve ? 2 : 4, pointHitRadius: 6
    };
    if (!curve || !series.points.some(hasRange)) return [main];
    const edge = {
      type: "line", group: i, band: true, borderWidth: 0, pointRadius: 0, pointHitRadius: 0,
      backgroundColor: series.colour + "30"
    };
    return [
      main, {...edge, data: aligned(p => p.low ?? p.y), fill: false},
      {...edge, data: aligned(p => p.high ?? p.y), fill: "-1"}
    ];
  };

  const errorBars = {
    id: "errorBars",
    afterDatasetsDraw(chart) {
      const sideways = chart.options.indexAxis === "y";
      const values = chart.scales[sideways ? "x" : "y"], half = 4;
      const ctx = chart.ctx;
      ctx.save();
      chart.data.datasets.forEach((set, i) => {
        if (set.band || set.mark === "curve" || !chart.isDatasetVisible(i)) return;
        ctx.strokeStyle = set.mark === "bars" ? colour("ink") : set.borderColor;
        ctx.lineWidth = 1.5;
        chart.getDatasetMeta(i).data.forEach((element, n) => {
          if (!hasRange(set.points[n])) return;
          const from = values.getPixelForValue(set.points[n].low),
                to = values.getPixelForValue(set.points[n].high);
          const line = (a, b, c, d) => sideways ? (ctx.moveTo(b, a), ctx.lineTo(d, c))
                                                : (ctx.moveTo(a, b), ctx.lineTo(c, d));
          const at = sideways ? element.y : element.x;
          ctx.beginPath();
          line(at, from, at, to);
          line(at - half, from, at + half, from);
          line(at - half, to, at + half, to);
          ctx.stroke();
        });
      });
      ctx.restore();
    }
  };

  const axisOf = (axis, points, value) => {
    const options = {title: {display: axis.title !== "", text: axis.title}};
    if (axis.names) return {...options, type: "category", grid: {display: false}, ticks: {autoSkip: false}};
    // Of a logarithmic axis only some of each decade have room; sizes go by powers of two.
    const few = v => [1, 2, 5].includes(Math.round(v / 10 ** Math.floor(Math.log10(v) + 1e-9)));
    const ticks = {callback: v => axis.logarithmic && axis.unit !== "B" && !few(v) ? "" : shown(v, axis)};
    const powersOfTwo = scale => {
      const step = Math.max(1, Math.ceil(Math.log2(scale.max / scale.min) / 12));
      scale.ticks = [];
      for (let k = Math.ceil(Math.log2(scale.min)); 2 ** k <= scale.max; k += step)
        scale.ticks.push({value: 2 ** k});
    };
    if (axis.logarithmic && axis.unit === "B") options.afterBuildTicks = powersOfTwo;
    const ends = points.flatMap(p => value ? [p.y, p.low ?? p.y, p.high ?? p.y] : [p.x]);
    const all = ends.filter(Number.isFinite);
    if (all.length === 0) return {...options, type: "linear", ticks};
    return {
      ...options, ticks, type: axis.logarithmic ? "logarithmic" : "linear",
      suggestedMin: Math.min(...all), suggestedMax: Math.max(...all)
    };
  };

  for (const figure of document.querySelectorAll("figure.chart")) {
    const what = JSON.parse(figure.querySelector("script").textContent);
    const plot = document.createElement("div"), canvas = document.createElement("canvas");
    plot.className = "plot";
    plot.style.height = (what.sideways ? 90 + 26 * what.x.names.length : 340) + "px";
    plot.append(canvas);
    figure.querySelector("figcaption").after(plot);
    figure.querySelector("details").open = false;
    const points = what.series.flatMap(s => s.points);
    const x = axisOf(what.x, points, false), y = axisOf(what.y, points, true);
    const value = p => shown(p.y, what.y) +
        (hasRange(p) ? ` (${shown(p.low, what.y)} .. ${shown(p.high, what.y)})` : "");
    new Chart(canvas, {
      type: "line",
      data: {labels: what.x.names || [], datasets: what.series.flatMap((s, i) => datasetsOf(what, s, i))},
      options: {
        indexAxis: what.sideways ? "y" : "x",
        responsive: true,
        maintainAspectRatio: false,
        scales: what.sideways ? {x: y, y: x} : {x, y},
        plugins: {
          legend: {
            display: what.series.length > 1,
            labels: {filter: (item, data) => !data.datasets[item.datasetIndex].band},
            onClick: (event, item, legend) => {
              const show = !legend.chart.isDatasetVisible(item.datasetIndex);
              const group = legend.chart.data.datasets[item.datasetIndex].group;
              legend.chart.data.datasets.forEach((set, i) => {
                if (set.group === group) legend.chart.setDatasetVisibility(i, show);
              });
              legend.chart.update();
            }
          },
          tooltip: {
            filter: item => !item.dataset.band,
            callbacks: {
              title: () => "",
              label: item => {
                const p = item.dataset.points[item.dataIndex];
                const at = what.x.names ? what.x.names[p.x] : shown(p.x, what.x);
                return (p.hint ? [p.hint] : []).concat(at + ": " + value(p));
              }
            }
          }
        }
      },
      plugins: [errorBars]
    });
  }
})();
