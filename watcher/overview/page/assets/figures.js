"use strict";

// What is drawn: of the data, lags, samples that page.js keeps.

// Of hundreds of figures only those on the screen, or near it, are drawn; others when they come near.
const near = new Set();
const observer = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) near.add(target);
    else near.delete(target);
  }
  drawNear();
}, { rootMargin: "50%" });

function drawFigures() {
  for (const canvas of document.getElementsByTagName("canvas")) observer.observe(canvas);
  drawNear();
}

function drawNear() {
  const style = getComputedStyle(document.documentElement);
  const accent = style.getPropertyValue("--accent");
  const colours = HEAT.map((_, n) => style.getPropertyValue(`--heat-${n}`));
  // Every width is read before the first figure is drawn: after that, each would cost a layout.
  for (const [canvas, width] of [...near].map((each) => [each, each.clientWidth || 300])) {
    if ("lags" in canvas.dataset) drawLags(canvas, width, accent);
    else drawHeat(canvas, width, colours);
  }
}

function drawLags(canvas, width, colour) {
  const known = lags.get(canvas.dataset.lags) || [];
  const [height, day] = [56, 86400000];
  const pen = openCanvas(canvas, width, height);
  const end = Date.parse(data.read_at);
  const worst = Math.max(1, ...known.map((each) => each.seconds));
  pen.fillStyle = colour;
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

function drawHeat(canvas, width, colours) {
  const index = data.indexes.find((each) => each.table === canvas.dataset.table);
  if (!index) return;
  const known = samples.get(index.table) || [];
  const counts = known.length ? known : [{ rows: index.shards.map((s) => s.rows.rows) }];
  const group = Math.ceil(index.shards.length / LINES_MAX);
  const lines = Math.ceil(index.shards.length / group);
  const columns = Math.max(counts.length, width < 420 ? 30 : 60);
  const used = counts.slice(-columns);
  const lineHeight = Math.max(4, Math.min(14, Math.floor(160 / lines)));
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
