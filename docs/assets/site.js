// What the theme leaves out for people who use a keyboard or a screen reader.
"use strict";
addEventListener("load", () => {
  for (const cell of document.querySelectorAll("th:empty")) {
    const plain = document.createElement("td");
    cell.replaceWith(plain);
  }
  for (const [number, bar] of document.querySelectorAll(".md-code__nav").entries()) {
    bar.setAttribute("aria-label", `Code ${number + 1}`);
  }
  for (const area of document.querySelectorAll(".md-typeset__scrollwrap, pre > code, pre")) {
    if (area.scrollWidth > area.clientWidth) area.tabIndex = 0;
  }
});
