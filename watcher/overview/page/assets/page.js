"use strict";

// One renderer for the first data, which comes with the page, and for what is polled. Elements are
// kept by key, so that the keyboard focus and what is open stay where they are.

// How urgent the server says that a condition is, as a class.
const LEVELS = { trouble: "bad", attention: "wait", ok: "ok", ended: "off" };
const COMMANDS = {
  pause: "Pause", resume: "Resume", drain: "Drain", stop: "Stop", replay: "Replay",
};
const QUESTIONS = {
  replay: (name) => `Deliver the dead letters of “${name}” again, where its changes go?`,
  drain: (name) => `Deliver everything up to now, then end “${name}”?`,
  stop: (name) => `End “${name}” after the window in progress?`,
};
const HEAT = [[0, "0"], [1, "1"], [10, "10"], [100, "100"], [1000, "1,000"], [10000, "10,000"], [100000, "100,000"]];
const LINES_MAX = 32;
const NOTICE_MILLISECONDS = 15000;
const WARN_SECONDS = 3600;
const ALARM_SECONDS = 900;
const THEMES = ["system", "light", "dark"];

const byId = (id) => document.getElementById(id);
const LIST_MAX = 24;
const LEVEL_NAMES = { trouble: "In trouble", attention: "Needs attention", ok: "Running", ended: "Ended" };
const COPIED_MILLISECONDS = 4000;
const opened = new Set();
const folded = new Set();
const heated = new Set();
const unlimited = new Set();
const lags = new Map();
const samples = new Map();
const exact = new Map();
let data = JSON.parse(byId("first").textContent);
let receivedAt = performance.now();
let polls = 0;
let unreachableSince = null;
let notice = { text: "", until: 0 };
const sent = new Map();

// Texts.

const NUMBERS = new Intl.NumberFormat("en-US"); // toLocaleString makes another one each time
const whole = (number) => NUMBERS.format(number);
const countText = (count) => (count === null ? "–" : (count.at_least ? "≥ " : "") + whole(count.rows));
const rateText = (rate) => (rate === null ? "–" : rate >= 100 ? whole(Math.round(rate)) : rate.toFixed(1));

function spanText(seconds) {
  const s = Math.max(0, seconds);
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 120) return `${Math.round(s)} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  if (s < 172800) return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

const elapsed = () => data.age_seconds + (performance.now() - receivedAt) / 1000;
// By Spanner's time, as it goes on since the read: the clock of this machine may be off.
const agoText = (time) => `${spanText((Date.parse(data.read_at) - Date.parse(time)) / 1000 + elapsed())} ago`;
const levelOf = (left) => (left <= ALARM_SECONDS ? "bad" : left <= WARN_SECONDS ? "wait" : "");

// What is lost when, in words. Polled rows stay in the index; only the exactness of a cut ends.
function deadline(entry) {
  if (entry.lost_in_seconds !== null) {
    const left = entry.lost_in_seconds;
    if (left <= 0) return { text: "records may be lost", level: "bad", more: "the change stream no longer keeps all of them" };
    return { text: spanText(left), level: levelOf(left), more: "then the change stream deletes unread records" };
  }
  if (entry.exact_for_seconds !== null) {
    const left = entry.exact_for_seconds;
    const more = left > 0 ? `windows are exact cuts for ${spanText(left)}` : "windows are no exact cuts any more";
    return { text: "nothing is lost", level: left > ALARM_SECONDS ? "" : "wait", more };
  }
  return { text: "–", level: "", more: "" };
}

// Sections.

function renderSummary() {
  const consumers = data.consumers;
  const running = consumers.filter((c) => c.alive).length;
  const ended = consumers.filter((c) => c.level === "ended").length;
  const trouble = consumers.filter((c) => c.level === "trouble").length;
  const lagging = consumers.filter((c) => c.lag_seconds !== null).sort((a, b) => b.lag_seconds - a.lag_seconds)[0];
  const losing = consumers.filter((c) => c.lost_in_seconds !== null).sort((a, b) => a.lost_in_seconds - b.lost_in_seconds)[0];
  const rows = data.indexes.reduce((sum, i) => ({ rows: sum.rows + i.rows.rows, at_least: sum.at_least || i.rows.at_least }), { rows: 0, at_least: false });
  const clearable = data.indexes.reduce((sum, i) => sum + (i.clearable ? i.clearable.rows : 0), 0);
  update(byId("summary"), [
    tile("running", "Consumers running", `${running} of ${consumers.length - ended}`,
      [trouble ? `${trouble} in trouble` : "none in trouble", ended ? `${ended} ended` : ""].filter(Boolean).join(", "), trouble ? "bad" : ""),
    tile("lag", "Furthest behind", lagging ? spanText(lagging.lag_seconds) : "–", lagging ? lagging.consumer : "nobody runs", ""),
    losing ? tile("loss", "First loss in", deadline(losing).text, losing.consumer, deadline(losing).level)
      : tile("loss", "First loss", "none in sight", "polled rows wait in the index", ""),
    tile("index", "Rows in the indexes", countText(rows), `${whole(clearable)} may be cleared`, ""),
  ]);
}

function tile(key, label, value, more, level) {
  return make("div", { class: "tile", "data-key": key },
    make("p", { class: "label", text: label }), make("p", { class: `value ${level}`, text: value }),
    make("p", { class: "more", text: more }));
}

const COLUMNS = [["Consumer"], ["State"], ["Lag", "number"], ["Rows behind", "number"], ["Rows/s", "number"],
  ["Delivered", "number"], ["Until data is lost"], ["Last error"]];

// What is searched, how it is sorted (the server sends the worst first), and what makes a group.
const descending = (value) => (a, b) => (value(b) ?? -1) - (value(a) ?? -1);
const SORTS = {
  worst: null,
  name: (a, b) => a.consumer.localeCompare(b.consumer),
  lag: descending((c) => c.lag_seconds),
  rows: descending((c) => c.lag_rows && c.lag_rows.rows),
  loss: (a, b) => (a.lost_in_seconds ?? Infinity) - (b.lost_in_seconds ?? Infinity) || 0,
};
const GROUPS = {
  none: null,
  level: (consumer) => LEVEL_NAMES[consumer.level],
  table: (consumer) => (consumer.tables.length === 1 ? consumer.tables[0].table : "Several tables"),
};
const wanted = () => byId("search").value.trim().toLowerCase();
const namesOf = (consumer) => [consumer.consumer, consumer.condition.replaceAll("-", " "), ...consumer.tables.map((t) => t.table)];
const matches = (names) => names.some((name) => name.toLowerCase().includes(wanted()));

function chooseConsumers() {
  const found = data.consumers.filter((consumer) => matches(namesOf(consumer)));
  const sort = SORTS[byId("sort").value];
  return sort ? found.sort(sort) : found;
}

// The first of a long list, and a button for the rest.
const limit = (list, items) => (unlimited.has(list) ? items : items.slice(0, LIST_MAX));

function moreButton(list, items, noun) {
  const hidden = items.length - limit(list, items).length;
  return hidden ? make("button", { type: "button", class: "more", "data-key": "more", "data-act": "more", "data-name": list, text: `Show all ${whole(items.length)} ${noun}` }) : null;
}

function renderConsumers() {
  const place = byId("consumer-list");
  if (!data.consumers.length) {
    update(place, [make("p", { "data-key": "none", class: "card", text: "No consumer is registered: start one with ‘spanner-watcher watch --consumer NAME’." })]);
    return;
  }
  const titles = data.control ? [...COLUMNS, ["Commands"]] : COLUMNS;
  const head = make("thead", {}, make("tr", {}, ...titles.map(([title, kind]) => make("th", { scope: "col", class: kind, text: title }))));
  if (!place.querySelector("table.wide")) {
    place.replaceChildren(make("div", { class: "card", "data-key": "table" }, make("table", { class: "wide" }, head, make("tbody"))), make("div"));
  }
  const found = chooseConsumers();
  const shown = limit("consumers", found);
  update(place.querySelector("tbody"), groupRows(shown, found, titles.length));
  const more = [moreButton("consumers", found, "consumers")].filter(Boolean);
  update(place.lastElementChild, found.length ? more : [make("p", { class: "hint", "data-key": "none", text: "No consumer matches the search." })]);
  const text = wanted() ? `${whole(found.length)} of ${whole(data.consumers.length)} consumers match` : "";
  if (byId("found").textContent !== text) byId("found").textContent = text;
}

function groupRows(shown, found, width) {
  const groupOf = GROUPS[byId("group").value];
  if (!groupOf) return shown.flatMap((consumer) => consumerRows(consumer, width));
  const sizes = new Map();
  for (const each of found) sizes.set(groupOf(each), (sizes.get(groupOf(each)) || 0) + 1);
  return [...sizes].flatMap(([group, size]) => {
    const members = shown.filter((each) => groupOf(each) === group);
    if (!members.length) return [];
    const isFolded = folded.has(group);
    const head = make("tr", { "data-key": `group ${group}`, class: "group" }, make("td", { colspan: width },
      make("button", { type: "button", class: "opens", "data-act": "fold", "data-name": group, "aria-expanded": String(!isFolded), text: `${isFolded ? "▸" : "▾"} ${group} (${whole(size)})` })));
    return [head, ...(isFolded ? [] : members.flatMap((consumer) => consumerRows(consumer, width)))];
  });
}

function consumerRows(consumer, width) {
  const findings = consumer.findings.filter((each) => each.level !== "ok");
  return [consumerRow(consumer), ...(findings.length ? [findingsRow(consumer, findings, width)] : []),
    ...(opened.has(consumer.consumer) ? [detailRow(consumer, width)] : [])];
}

// What is the matter, whole, across the table: the text, what to do, and what to paste for it.
function findingsRow(consumer, findings, width) {
  return make("tr", { "data-key": `findings ${consumer.consumer}`, class: "detail" }, make("td", { colspan: width },
    make("ul", { class: "findings", "aria-label": `What is the matter with ${consumer.consumer}` }, ...findings.map((each) =>
      make("li", { class: LEVELS[each.level] },
        make("p", { class: "text", text: `${each.since ? `since ${agoText(each.since)}: ` : ""}${each.text}` }),
        each.advice ? make("p", { class: "muted", text: each.advice }) : null,
        each.command ? commandLine(each.command) : null)))));
}

function commandLine(command) {
  return make("p", { class: "command" }, make("code", { text: command }),
    make("button", { type: "button", class: "quiet", "data-act": "copy", "data-name": command, "aria-label": `Copy: ${command}`, text: "Copy" }));
}

function cell(field, label, value, text, kind = "", more = "") {
  return make("td", { "data-field": field, "data-label": label, "data-value": JSON.stringify(value), class: kind },
    make("span", { text }), more ? make("div", { class: "muted", text: more }) : null);
}

function consumerRow(consumer) {
  const name = consumer.consumer;
  const loss = deadline(consumer);
  const count = consumer.tables.length;
  const isOpen = opened.has(name);
  const level = LEVELS[consumer.level];
  const notes = [];
  if (consumer.command) notes.push(`asked to ${consumer.command}`);
  const mine = sent.get(name);
  if (mine && performance.now() < mine.until && mine.command !== consumer.command) notes.push(`${mine.command} was sent`);
  const error = consumer.last_error;
  const told = error !== null && consumer.findings.some((each) => each.text.includes(error.message));
  return make("tr", { "data-key": `row ${name}`, "data-consumer": name },
    make("td", { class: "full", "data-field": "consumer" },
      make("div", { class: "name", text: name }),
      make("button", { type: "button", class: "opens", "data-act": "open", "data-name": name, "aria-expanded": String(isOpen),
        text: `${isOpen ? "▾" : "▸"} ${count === 1 ? consumer.tables[0].table : `${count} tables`}` }),
      make("span", { class: "muted", text: consumer.capture === "poll" ? "polled" : "change stream" })),
    make("td", { "data-field": "state", "data-label": "State", "data-value": JSON.stringify(consumer.state) },
      make("span", { class: `state ${level}`, text: consumer.condition.replaceAll("-", " ") }),
      ...notes.map((text) => make("div", { class: "muted", text }))),
    cell("lag_seconds", "Lag", consumer.lag_seconds, consumer.lag_seconds === null ? "–" : spanText(consumer.lag_seconds), "number"),
    cell("lag_rows", "Rows behind", consumer.lag_rows && consumer.lag_rows.rows, countText(consumer.lag_rows), "number"),
    cell("rows_per_second", "Rows/s", consumer.rows_per_second, rateText(consumer.rows_per_second), "number"),
    cell("delivered_rows", "Delivered", consumer.delivered_rows, consumer.delivered_rows === null ? "–" : whole(consumer.delivered_rows), "number",
      consumer.dead_letters ? `${whole(consumer.dead_letters)} dead letters` : ""),
    make("td", { "data-field": "loss", "data-label": "Until data is lost", "data-value": JSON.stringify(consumer.lost_in_seconds) },
      make("span", { class: loss.level, text: loss.text }), make("div", { class: "muted", text: loss.more })),
    make("td", { "data-field": "last_error", "data-label": "Last error", class: `error full${error ? "" : " none"}` },
      make("div", { class: error ? "bad" : "muted", text: error ? `${error.kind}, ${agoText(error.at)}` : "none" }),
      make("div", { class: "text", text: error && !told ? error.message : "" })),
    data.control ? make("td", { class: "full", "data-field": "commands" }, commandButtons(consumer)) : null);
}

function commandButtons(consumer) {
  const waits = consumer.command !== null || consumer.state === "PAUSED";
  const commands = waits ? ["resume"] : consumer.alive ? ["pause"] : [];
  if (consumer.alive && consumer.command !== "stop") commands.push(...(consumer.command === "drain" ? ["stop"] : ["drain", "stop"]));
  if (consumer.alive && consumer.dead_letters && !waits) commands.push("replay");
  if (!commands.length) return null;
  return make("div", { class: "buttons" }, ...commands.map((command) => make("button", { type: "button", "data-act": command, "data-name": consumer.consumer,
    class: command === "stop" ? "danger" : null, "aria-label": `${COMMANDS[command]} ${consumer.consumer}`, text: COMMANDS[command] })));
}

function detailRow(consumer, width) {
  const head = ["Table", "Position", "Lag", "Rows behind", "Until data is lost"];
  return make("tr", { "data-key": `detail ${consumer.consumer}`, class: "detail" }, make("td", { colspan: width },
    make("div", { class: "inner", tabindex: "0", role: "region", "aria-label": `Tables of ${consumer.consumer}` }, make("table", {},
      make("thead", {}, make("tr", {}, ...head.map((title) => make("th", { scope: "col", text: title })))),
      make("tbody", {}, ...consumer.tables.map((table) => {
        const loss = deadline(table);
        return make("tr", {},
          make("td", {}, table.table + (table.note ? ` (${table.note})` : ""),
            table.proof ? make("div", { class: "muted", text: table.proof.text }) : null),
          make("td", { class: "mono", text: table.position }),
          make("td", { text: table.lag_seconds === null ? "–" : spanText(table.lag_seconds) }),
          make("td", { text: countText(table.lag_rows) }),
          make("td", { class: loss.level, text: loss.more ? `${loss.text}; ${loss.more}` : loss.text }));
      })))), lagFigure(consumer.consumer)));
}

function lagFigure(name) {
  const known = lags.get(name) || [];
  const worst = known.reduce((most, each) => Math.max(most, each.seconds), 0);
  const text = known.length ? `Lag of the last day, the worst of every five minutes: ${spanText(worst)} at most since ${agoText(known[0].at)}` : "No lag is known yet: it is kept while the page runs.";
  return make("div", { class: "lags" }, make("p", { class: "facts muted", text }),
    make("canvas", { role: "img", "data-lags": name, "aria-label": text }));
}

function renderBackfills() {
  byId("backfills").hidden = !data.backfills.length;
  update(byId("backfill-list"), [make("div", { class: "cards", "data-key": "cards" }, ...data.backfills.map((backfill) => {
    const counted = exact.get(backfill.table);
    const mine = counted && counted.backfills.find((each) => each.consumer === backfill.consumer);
    const left = backfill.exact_for_seconds;
    const done = mine ? mine.rows - (backfill.rows_left && !backfill.rows_left.at_least ? Math.min(backfill.rows_left.rows, mine.rows_left) : mine.rows_left) : 0;
    return make("article", { class: "card", "data-key": `${backfill.consumer} ${backfill.table}`, "data-backfill": backfill.table },
      make("h3", { text: `${backfill.table} → ${backfill.consumer}` }),
      make("p", { class: "facts", text: `${countText(backfill.rows_left)} rows left, after key ${backfill.after ? JSON.stringify(backfill.after) : "none yet"}` }),
      make("p", { class: `facts ${left > ALARM_SECONDS ? "muted" : "wait"}`, text: `as of ${backfill.snapshot_at}; ${left > 0 ? `Spanner keeps these versions for ${spanText(left)}` : "rows that changed since come twice"}` }),
      mine ? make("progress", { max: mine.rows || 1, value: done, "aria-label": `${backfill.table}: ${whole(done)} of ${whole(mine.rows)} rows` }) : make("p"),
      make("p", { class: "facts", text: mine ? `${whole(done)} of ${whole(mine.rows)} rows (${mine.rows ? Math.round((100 * done) / mine.rows) : 100} %)` : "" }),
      make("p", {}, countButton(backfill.table)));
  }))]);
}

const countButton = (table) => make("button", { type: "button", "data-act": "count", "data-name": table, class: "quiet", text: "Count all", "aria-label": `Count all rows of ${table}`, title: "reads every entry, once" });

function renderIndexes() {
  const used = data.indexes.filter((index) => index.rows.rows > 0 || index.slowest_consumer !== null);
  const found = used.filter((index) => matches([index.table])).sort((a, b) => b.rows.rows - a.rows.rows || a.table.localeCompare(b.table));
  const shown = limit("indexes", found);
  byId("legend").hidden = !shown.some((index) => heated.has(index.table));
  const empty = data.indexes.filter((index) => !used.includes(index)).map((index) => index.table);
  const place = byId("index-list");
  const cards = place.querySelector(".cards") || make("div", { class: "cards", "data-key": "cards" });
  updateList(cards, shown, (index) => index.table, cardState, indexCard);
  update(place, [cards,
    ...[moreButton("indexes", found, "tables")].filter(Boolean),
    make("p", { class: "hint", "data-key": "empty", text: empty.length ? `Empty, and without a consumer: ${empty.slice(0, LIST_MAX).join(", ")}${empty.length > LIST_MAX ? `, and ${whole(empty.length - LIST_MAX)} more` : ""}` : data.indexes.length ? "" : "No table can be polled yet: ‘spanner-watcher ddl plan’ says what is missing." }),
  ]);
}

// All that a card is built of, with the texts that change as time goes on.
function cardState(index) {
  if (!heated.has(index.table)) return JSON.stringify(index);
  const [counted, history] = [exact.get(index.table), samples.get(index.table) || []];
  return JSON.stringify([index, counted, counted && agoText(counted.at), history.length > 1 && agoText(history[0].at)]);
}

// A card is closed until somebody wants its heat map: forty tables are short, too.
function indexCard(index) {
  const isOpen = heated.has(index.table);
  return make("article", { class: "card", "data-key": index.table, "data-index": index.table },
    make("h3", {}, make("button", { type: "button", class: "opens", "data-act": "heat", "data-name": index.table, "aria-expanded": String(isOpen), text: `${isOpen ? "▾" : "▸"} ${index.table}` })),
    make("p", { class: "facts" }, make("span", { "data-field": "rows", "data-value": JSON.stringify(index.rows.rows), text: `${countText(index.rows)} rows in ${index.shards.length} ${index.shards.length === 1 ? "shard" : "shards"}` })),
    make("p", { class: "facts muted", text: clearingText(index) }),
    ...(isOpen ? indexDetails(index) : []));
}

function indexDetails(index) {
  const counted = exact.get(index.table);
  const history = samples.get(index.table) || [];
  return [
    make("canvas", { role: "img", "data-table": index.table, "aria-label": `Rows of each shard of ${index.table} over time: ${countText(index.rows)} rows now` }),
    make("p", { class: "axis" }, make("span", { text: history.length > 1 ? agoText(history[0].at) : "" }), make("span", { text: "now" })),
    make("p", { class: "facts mono", text: index.shards.map((s) => `${s.shard === null ? "all" : s.shard}: ${countText(s.rows)}`).join("   ") }),
    make("p", { class: "facts", text: counted && counted.rows !== null ? `Counted ${agoText(counted.at)}: ${whole(counted.rows)} rows, ${whole(counted.clearable)} may be cleared` : "" }),
    make("p", {}, countButton(index.table)),
  ];
}

function clearingText(index) {
  if (!index.clears) return "cannot be cleared: its timestamp is NOT NULL";
  if (index.slowest_consumer === null) return "no consumer is registered: nothing may be cleared";
  const steps = index.clearable_transactions;
  const cost = index.clearable.rows ? `, in ${whole(steps)}${index.clearable.at_least ? " or more" : ""} ${steps === 1 ? "transaction" : "transactions"} by index, or one scan of the table` : "";
  return `${countText(index.clearable)} may be cleared${cost}; waits for ${index.slowest_consumer}`;
}

function renderLegend() {
  update(byId("legend"), HEAT.map(([, text], n) => make("span", { "data-key": text }, make("i", { class: `heat-${n}` }), document.createTextNode(n ? `${text} or more` : "no row"))));
}

function renderFreshness() {
  const age = elapsed();
  const place = byId("freshness");
  const old = unreachableSince !== null || data.failure !== null || age > 4 * data.poll_seconds + 10;
  place.className = old ? "old" : "";
  place.textContent = old ? `Old: read ${spanText(age)} ago` : `Live, read ${Math.round(age)} s ago`;
  const alert = byId("alert");
  const text = unreachableSince !== null ? `The page's server does not answer: ${unreachableSince}`
    : data.failure !== null ? `The database could not be read: ${data.failure}`
      : performance.now() < notice.until ? notice.text : "";
  if (alert.textContent !== text) alert.textContent = text;
  alert.hidden = !text;
}

function renderLists() {
  renderConsumers();
  renderIndexes();
  drawFigures();
}

function render() {
  byId("database").textContent = data.database;
  document.title = `${data.consumers.some((c) => c.level === "trouble") ? "▲ " : ""}spanner-watcher`;
  renderSummary();
  renderLists();
  renderBackfills();
  renderFreshness();
}

// Requests.

async function poll() {
  try {
    const answer = await fetch("api/status", { headers: { accept: "application/json" } });
    const next = await answer.json();
    if (!answer.ok) throw new Error(next.error);
    await readHistories();
    data = next;
    receivedAt = performance.now();
    unreachableSince = null;
    polls += 1;
    document.body.dataset.polls = String(polls);
    render();
  } catch (error) {
    unreachableSince = error.message;
    renderFreshness();
  }
}

// What is open, and so is drawn; nothing else is asked for.
async function readHistories() {
  const read = async (known, name, kind, member) => {
    const answer = await fetch(`api/history?${kind}=${encodeURIComponent(name)}`);
    if (answer.ok) known.set(name, (await answer.json())[member]);
  };
  await Promise.all([...[...opened].map((name) => read(lags, name, "consumer", "lags")),
    ...[...heated].map((name) => read(samples, name, "table", "samples"))]);
}

const toggle = (set, name) => set.delete(name) || set.add(name);

async function copy(button) {
  const code = button.parentElement.querySelector("code");
  const range = document.createRange();
  range.selectNodeContents(code);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
  // Without HTTPS a browser has no clipboard for scripts, but copies what is selected.
  let done = false;
  try { await navigator.clipboard.writeText(code.textContent); done = true; } catch { done = document.execCommand("copy"); }
  byId("said").textContent = done ? "Copied" : "The command is selected: copy it with the keyboard";
  setTimeout(() => { byId("said").textContent = ""; }, COPIED_MILLISECONDS);
}

async function send(path, body) {
  const answer = await fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  const value = await answer.json();
  if (!answer.ok) throw new Error(value.error);
  return value;
}

function ask(question) {
  const dialog = byId("confirm");
  byId("confirm-text").textContent = question;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }));
}

async function act(button) {
  const { act: action, name } = button.dataset;
  const set = { open: opened, fold: folded, heat: heated, more: unlimited }[action];
  if (set) {
    toggle(set, name);
    renderLists();
    if (action === "open" || action === "heat") await poll();
    return;
  }
  if (action === "copy") { await copy(button); return; }
  if (QUESTIONS[action] && !(await ask(QUESTIONS[action](name)))) return;
  button.disabled = true;
  try {
    if (action === "count") exact.set(name, await send("api/count", { table: name }));
    else {
      await send("api/commands", { consumer: name, command: action });
      sent.set(name, { command: action, until: performance.now() + NOTICE_MILLISECONDS });
    }
    await poll();
  } catch (error) {
    notice = { text: error.message, until: performance.now() + NOTICE_MILLISECONDS };
    renderFreshness();
  } finally {
    button.disabled = false;
  }
}

// The theme.

function readTheme() {
  try { return localStorage.getItem("theme") || "system"; } catch { return "system"; }
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId("theme").textContent = `Theme: ${theme}`;
  try { localStorage.setItem("theme", theme); } catch { /* a browser without storage forgets it */ }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-act]");
  if (button) act(button);
});
byId("theme").addEventListener("click", () => {
  setTheme(THEMES[(THEMES.indexOf(readTheme()) + 1) % THEMES.length]);
  renderLists();
});
for (const id of ["search", "sort", "group"]) byId(id).addEventListener("input", renderLists);
window.addEventListener("resize", renderLists);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", renderLists);
setTheme(readTheme());
renderLegend();
render();
setInterval(renderFreshness, 1000);
(async function repeat() {
  await poll();
  setTimeout(repeat, 1000 * Math.max(1, data.poll_seconds));
})();
