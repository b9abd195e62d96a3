"use strict";

// What is drawn: of the data, lags, samples that page.js keeps.

function drawLags(name) {
  const canvas = document.querySelector(`canvas[data-lags="${CSS.escape(name)}"]`);
  if (!canvas) return;
  const known = lags.get(name) || [];
  const [width, height, day] = [canvas.clientWidth || 300, 56, 86400000];
  const pen = openCanvas(canvas, width, height);
  const end = Date.parse(data.read_at);
  const worst = Math.max(1, ...known.map((each) => each.seconds));
  pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent");
  for (const { at, seconds } of known) {
    const x = width * (1 - (end - Date.parse(at)) / day);
    const tall = Math.max(1, (height - 2) * (seconds / worst));
    pen.fillRect(Math.max(0, Math.min(x, width - 2)), height - tall, Math.max(2, width / 288), tall);
  }
}

function openCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  return pen;
}

// The heat map: a line a shard (or a group of shards), a column a count.

const heatOf = (rows) => HEAT.reduce((level, [from], n) => (rows >= from ? n : level), 0);

function drawHeat(index) {
  const canvas = document.querySelector(`canvas[data-table="${CSS.escape(index.table)}"]`);
  const known = samples.get(index.table) || [];
  const counts = known.length ? known : [{ rows: index.shards.map((s) => s.rows.rows) }];
  const group = Math.ceil(index.shards.length / LINES_MAX);
  const lines = Math.ceil(index.shards.length / group);
  const width = canvas.clientWidth || 300;
  const columns = Math.max(counts.length, width < 420 ? 30 : 60);
  const used = counts.slice(-columns);
  const lineHeight = Math.max(4, Math.min(14, Math.floor(160 / lines)));
  const style = getComputedStyle(document.documentElement);
  const colours = HEAT.map((_, n) => style.getPropertyValue(`--heat-${n}`));
  const pen = openCanvas(canvas, width, lines * lineHeight);
  const columnWidth = width / columns;
  used.forEach((sample, n) => {
    const x = width - (used.length - n) * columnWidth;
    for (let line = 0; line < lines; line += 1) {
      const rows = sample.rows.slice(line * group, (line + 1) * group).reduce((a, b) => a + b, 0);
      pen.fillStyle = colours[heatOf(rows)];
      pen.fillRect(x, line * lineHeight, Math.max(1, columnWidth - 0.5), lineHeight - 1);
    }
  });
}
