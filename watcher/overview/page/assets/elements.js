"use strict";

// Elements.

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") element.textContent = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

// Gives `place` the children of `wanted`; those that look the same stay, and keep the focus.
function update(place, wanted) {
  const old = new Map([...place.children].map((child) => [child.getAttribute("data-key"), child]));
  const next = wanted.map((fresh) => {
    const before = old.get(fresh.dataset.key);
    if (before && before.tagName === fresh.tagName) return merge(before, fresh);
    return fresh;
  });
  arrange(place, next);
}

// What an element was built of.
const states = new WeakMap();

// As update, for a long list: what would be built of the same state again stays, and is not built.
function updateList(place, items, keyOf, stateOf, build) {
  const old = new Map([...place.children].map((child) => [child.getAttribute("data-key"), child]));
  arrange(place, items.map((item) => {
    const [before, state] = [old.get(keyOf(item)), stateOf(item)];
    if (before && states.get(before) === state) return before;
    const after = before ? merge(before, build(item)) : build(item);
    states.set(after, state);
    return after;
  }));
}

function arrange(place, next) {
  if (next.length !== place.children.length || next.some((child, n) => place.children[n] !== child)) {
    place.replaceChildren(...next);
  }
}

function merge(before, fresh) {
  if (before === fresh || before.isEqualNode(fresh)) return before;
  const same = before.tagName === fresh.tagName && before.children.length === fresh.children.length
    && before.children.length > 0 && [...before.children].every((c, n) => c.tagName === fresh.children[n].tagName)
    && before.childNodes.length === before.children.length && fresh.childNodes.length === fresh.children.length;
  const actions = before.tagName === "BUTTON";
  if (same) {
    copyAttributes(before, fresh);
    const children = [...fresh.children]; // one that takes the place of another leaves fresh
    [...before.children].forEach((child, n) => merge(child, children[n]));
    return before;
  }
  if (before.tagName === fresh.tagName && before.children.length === 0 && fresh.children.length === 0
      && before.tagName !== "CANVAS" && !(actions && before.dataset.act !== fresh.dataset.act)) {
    copyAttributes(before, fresh);
    before.textContent = fresh.textContent;
    return before;
  }
  if (before.tagName === "CANVAS") { copyAttributes(before, fresh); return before; }
  before.replaceWith(fresh);
  return fresh;
}

function copyAttributes(to, from) {
  for (const { name } of [...to.attributes]) {
    const keeps = name === "open" || (to.tagName === "CANVAS" && (name === "width" || name === "height" || name === "style"));
    if (!from.hasAttribute(name) && !keeps) to.removeAttribute(name);
  }
  for (const { name, value } of [...from.attributes]) {
    if (to.getAttribute(name) !== value) to.setAttribute(name, value);
  }
}
