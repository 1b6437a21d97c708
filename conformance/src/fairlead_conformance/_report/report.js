"use strict";
(() => {
  const { details, statuses, cases } = JSON.parse(document.getElementById("data").textContent);
  const [search, rows, found, more] = ["search", "rows", "found", "more"].map((id) => document.getElementById(id));
  const buttons = [...document.querySelectorAll("[data-kind]")];
  const rest = cases.map(([id, status, detail]) => `${id} ${statuses[status][0]} ${details[detail]}`.toLowerCase());
  const page = 100;
  let shown = page;

  function element(name, text, ...classes) {
    const made = document.createElement(name);
    made.textContent = text;
    made.className = classes.join(" ");
    return made;
  }

  function row([id, status, detail, seconds]) {
    const made = document.createElement("tr");
    const [name, kind] = statuses[status];
    const tag = element("span", "", "tag");
    tag.append(element("span", "", "swatch", kind), name);
    const cell = element("td", "");
    cell.append(tag);
    const time = seconds >= 1 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds * 1000)} ms`;
    made.append(element("td", id, "mono"), cell, element("td", details[detail]), element("td", time, "number"));
    return made;
  }

  function draw() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kinds = buttons.filter((b) => b.getAttribute("aria-pressed") === "true").map((b) => b.dataset.kind);
    const matching = cases.filter(
      (one, i) => words.every((word) => rest[i].includes(word)) && (!kinds.length || kinds.includes(statuses[one[1]][1])),
    );
    rows.replaceChildren(...matching.slice(0, shown).map(row));
    found.textContent = `${matching.length.toLocaleString("en")} of ${cases.length.toLocaleString("en")} cases`;
    more.hidden = matching.length <= shown;
    document.documentElement.dataset.found = matching.length;
  }

  function again() {
    shown = page;
    draw();
  }

  search.addEventListener("input", again);
  more.addEventListener("click", () => { shown += 5 * page; draw(); });
  for (const button of buttons) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      again();
    });
  }
  for (const cell of document.querySelectorAll("[data-find]")) {
    cell.addEventListener("click", () => {
      search.value = cell.dataset.find;
      again();
      document.getElementById("cases").scrollIntoView();
    });
  }
  draw();
})();
